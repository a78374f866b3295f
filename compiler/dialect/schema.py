"""How an operation of the structured form is declared: operands, results, attributes and traits as class attributes.

A class is a view of an operation, which may be an object of MLIR's bindings or of `compiler.loops.ir.program`: both
have a name, operands, results and attributes. ``Load(operation).strides`` is the list of its strides.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, overload

V = TypeVar("V")
"""A value: of MLIR's bindings, or a `Def` of `compiler.loops.ir.program`."""
V_co = TypeVar("V_co", covariant=True)
T = TypeVar("T")


class Trait(enum.Flag):
    """What a compiler may do with an operation."""

    NONE = 0
    READS = enum.auto()
    """Reads memory."""
    WRITES = enum.auto()
    """Writes memory, or waits for writes of other threads. Earlier loads must be read before it."""
    DEFERRABLE = enum.auto()
    """Its elements may be computed where they are consumed."""
    MOVABLE = enum.auto()
    """May move across any other operation: it accesses no memory and cannot fail."""
    TELLS = enum.auto()
    """Reports something to the user, with the program's id."""
    POSITION = enum.auto()
    """Reads the program's id, or the grid's size."""
    TERMINATOR = enum.auto()
    """Ends a region."""


class AnyOperation(Protocol[V_co]):
    """The interface of an operation that a view needs."""

    @property
    def name(self) -> str: ...
    @property
    def operands(self) -> Sequence[V_co]: ...
    @property
    def results(self) -> Sequence[V_co]: ...
    @property
    def attributes(self) -> Any: ...


class Kind(enum.Enum):
    """The type constraint that the verifier checks for an operand or a result."""

    ANY = "any"
    TENSOR = "tensor"
    POINTER = "!llvm.ptr"
    I64 = "i64"
    INTEGERS = "i32 or i64, a scalar or a tensor"
    BOOLEANS = "i1, a scalar or a tensor"


class Group:
    """A named group of operands, at least `least` and at most `most` (None: any number)."""

    least: ClassVar[int]
    most: ClassVar[int | None]

    def __init__(self, kind: Kind = Kind.ANY) -> None:
        self.kind = kind
        self.name = ""
        self.index = -1

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


class operand(Group):
    """Exactly one operand."""

    least, most = 1, 1

    @overload
    def __get__(self, instance: None, owner: type) -> operand: ...
    @overload
    def __get__(self, instance: Op[V], owner: type) -> V: ...
    def __get__(self, instance: Op[V] | None, owner: type) -> operand | V:
        return self if instance is None else instance.groups()[self.index][0]


class optional(Group):
    """One operand or none."""

    least, most = 0, 1

    @overload
    def __get__(self, instance: None, owner: type) -> optional: ...
    @overload
    def __get__(self, instance: Op[V], owner: type) -> V | None: ...
    def __get__(self, instance: Op[V] | None, owner: type) -> optional | V | None:
        if instance is None:
            return self
        found = instance.groups()[self.index]
        return found[0] if found else None


class variadic(Group):
    """Any number of operands."""

    least, most = 0, None

    @overload
    def __get__(self, instance: None, owner: type) -> variadic: ...
    @overload
    def __get__(self, instance: Op[V], owner: type) -> Sequence[V]: ...
    def __get__(self, instance: Op[V] | None, owner: type) -> variadic | Sequence[V]:
        return self if instance is None else instance.groups()[self.index]


_MISSING: Any = object()


class attribute(Generic[T]):
    """An attribute.

    `read` converts it to a Python value; `default` is the value if it is absent, unless it is required.
    """

    def __init__(self, read: Callable[[Any], T], default: T = _MISSING, *, choices: Sequence[T] = ()) -> None:
        self._read = read
        self._default = default
        self.required = default is _MISSING
        self.choices = tuple(choices)
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> attribute[T]: ...
    @overload
    def __get__(self, instance: Op[Any], owner: type) -> T: ...
    def __get__(self, instance: Op[Any] | None, owner: type) -> attribute[T] | T:
        if instance is None:
            return self
        attributes = instance.operation.attributes
        if self.name in attributes:
            return self._read(attributes[self.name])
        if self.required:
            raise KeyError(f"{instance.OPERATION_NAME} has no attribute {self.name}")
        return self._default


def integer(*default: int) -> attribute[int]:
    """An integer attribute."""
    return attribute(lambda found: int(found.value), *default)


def text(*default: str, choices: Sequence[str] = ()) -> attribute[str]:
    """A string attribute."""
    return attribute(lambda found: str(found.value), *default, choices=choices)


def integers() -> attribute[tuple[int, ...]]:
    """An array of integers; empty if absent."""
    return attribute(lambda found: tuple(int(number) for number in found), ())


def flag() -> attribute[bool]:
    """A unit or boolean attribute: whether it is present and not false."""
    return attribute(lambda found: bool(getattr(found, "value", True)), False)


class Op(Generic[V]):
    """One operation of the dialect. Subclasses declare it; docs/architecture.md has the table generated from them."""

    OPERATION_NAME: ClassVar[str] = ""
    """The name with the dialect, ``tpk.load``, as in MLIR's bindings; empty for base classes."""
    traits: ClassVar[Trait] = Trait.NONE
    segmented: ClassVar[bool] = False
    """Whether ``operandSegmentSizes`` gives the size of each group (MLIR's AttrSizedOperandSegments)."""
    result_count: ClassVar[int | None] = 1
    """The number of results; None: any number."""
    region_count: ClassVar[int] = 0
    group_table: ClassVar[tuple[Group, ...]] = ()
    attribute_table: ClassVar[Mapping[str, attribute[Any]]] = {}

    def __init_subclass__(cls) -> None:
        own = [member for member in vars(cls).values() if isinstance(member, Group)]
        cls.group_table = (*cls.group_table, *own)
        for index, group in enumerate(own, len(cls.group_table) - len(own)):
            group.index = index
        attributes = {name: member for name, member in vars(cls).items() if isinstance(member, attribute)}
        cls.attribute_table = {**cls.attribute_table, **attributes}

    def __init__(self, operation: AnyOperation[V]) -> None:
        self.operation = operation
        self._groups: list[Sequence[V]] | None = None

    @classmethod
    def attributes_in(cls, operation: AnyOperation[Any]) -> dict[str, Any]:
        """The attributes of an operation, as MLIR's objects, that this class declares."""
        return {
            name: operation.attributes[name] for name in cls.attribute_table if name in operation.attributes
        }

    @classmethod
    def isa(cls, operation: AnyOperation[Any] | None) -> bool:
        """Whether an operation is of this class."""
        return operation is not None and operation.name == cls.OPERATION_NAME

    @classmethod
    def dyn_cast(cls, operation: AnyOperation[V] | None) -> Self | None:
        """The view of an operation of this class; None for others."""
        return cls(operation) if operation is not None and cls.isa(operation) else None

    @classmethod
    def meaning(cls) -> str:
        """The first paragraph of the docstring, on one line."""
        return " ".join((cls.__doc__ or "").partition("\n\n")[0].split())

    @classmethod
    def sizes(cls, operation: AnyOperation[Any]) -> list[int]:
        """The size of each group of operands. Raises ValueError if the operands do not fit the groups."""
        count = len(operation.operands)
        if cls.segmented:
            if "operandSegmentSizes" not in operation.attributes:
                raise ValueError("it lacks the attribute operandSegmentSizes")
            found = [int(size) for size in operation.attributes["operandSegmentSizes"]]
        else:  # at most one group has other than one operand
            rest = count - sum(group.least for group in cls.group_table)
            found = [1 if group.least else rest for group in cls.group_table]
        if len(found) != len(cls.group_table) or sum(found) != count:
            names = ", ".join(group.name for group in cls.group_table)
            raise ValueError(f"its {count} operands are not the groups ({names}) of sizes {found}")
        for group, size in zip(cls.group_table, found, strict=True):
            if size < group.least or (group.most is not None and size > group.most):
                raise ValueError(f"it has {size} operands for `{group.name}`")
        return found

    def groups(self) -> list[Sequence[V]]:
        """The operands, group by group."""
        if self._groups is None:
            operands, start = list(self.operation.operands), 0
            found: list[Sequence[V]] = []
            # The verifier has checked that the sizes fit.
            given = self.operation.attributes["operandSegmentSizes"] if self.segmented else None
            for size in self.sizes(self.operation) if given is None else given:
                found.append(operands[start : start + size])
                start += size
            self._groups = found
        return self._groups

    def by_name(self) -> dict[str, Sequence[V]]:
        """The operands by the names of their groups, as for `operands_of`."""
        return {group.name: values for group, values in zip(self.group_table, self.groups(), strict=True)}

    def position(self, name: str) -> int:
        """The index of the first operand of the group `name`."""
        index = next(group.index for group in self.group_table if group.name == name)
        return sum(map(len, self.groups()[:index]))

    @property
    def results(self) -> Sequence[V]:
        return self.operation.results

    @property
    def result(self) -> V:
        """The only result."""
        return self.operation.results[0]

    @classmethod
    def operands_of(cls, given: Mapping[str, Any]) -> tuple[list[Any], list[int]]:
        """All operands in order, and the sizes of the groups, from operands by the names of their groups.

        A group may be given as one value, as a sequence, or as None. Raises TypeError for unknown names.
        """
        unknown = given.keys() - {group.name for group in cls.group_table}
        if unknown:
            raise TypeError(f"{cls.OPERATION_NAME} has no operands {', '.join(sorted(unknown))}")
        operands: list[Any] = []
        sizes = []
        for group in cls.group_table:
            found = given.get(group.name)
            values = [] if found is None else list(found) if isinstance(found, list | tuple) else [found]
            operands += values
            sizes.append(len(values))
        return operands, sizes

    def verify(self) -> Iterator[str]:
        """What is wrong with this operation, beyond the number and the kinds of its operands, a sentence each."""
        return iter(())


def all_of(base: type[Op[Any]]) -> Iterator[type[Op[Any]]]:
    """The subclasses of `base` that declare an operation, in the order of their definition."""
    for cls in base.__subclasses__():
        if cls.OPERATION_NAME:
            yield cls
        yield from all_of(cls)
