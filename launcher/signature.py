"""A kernel's signature as Triton writes it, flattened to the parameters that the compiled function takes.

Constexprs are dropped, nested tuples are flattened depth first, and a host tensor descriptor becomes the pointer, the
integers and the flags that `tt.func` has in its place once descriptors are rewritten to pointers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from triton_porting_kit.errors import SignatureError
from triton_porting_kit.launcher.types import scalar_type
from triton_porting_kit.launcher.values import check_count, descriptor_fields, tuple_members
from triton_porting_kit.toolchain import compat

Path = tuple[int | str, ...]
"""The path to a value in the arguments of a launch: positions in tuples, then fields of a descriptor."""

CONSTEXPR = "constexpr"

_DESCRIPTOR = re.compile(r"tensordesc(?:_im2col)?<([^\[\]<>]+)\[([^\]]*)\]")
_INPUT_RANK = re.compile(r",input_rank=(\d+)")


@dataclass(frozen=True)
class Parameter:
    """One parameter of the compiled function.

    `path` leads to its value, `name` is that path in readable form (``cfg[1]``, ``desc.shape[0]``), `type` is Triton's
    name of its type. Raises `SignatureError` for an unknown type.
    """

    path: Path
    name: str
    type: str

    def __post_init__(self) -> None:
        scalar_type(self.type, self.name)


@dataclass(frozen=True)
class Argument:
    """One argument of a launch, or one member of a tuple.

    `type` is a scalar type, ``constexpr``, ``tensordesc<...>`` or ``tuple``. `members` are those of a tuple, and
    `fields` their names if it is a named tuple. `parameters` are those that the argument itself becomes.
    """

    name: str
    type: str
    parameters: tuple[Parameter, ...] = ()
    members: tuple[Argument, ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def is_tuple(self) -> bool:
        return self.type == "tuple"

    @property
    def is_descriptor(self) -> bool:
        return self.type.startswith("tensordesc")

    @property
    def rank(self) -> int:
        """A tensor descriptor's number of dimensions."""
        return len(self.parameters) // 4  # a pointer, one or two flags, and four per dimension


@dataclass(frozen=True)
class Signature:
    """The arguments of a launch as Triton passes them, and the flat `parameters` that they become."""

    arguments: tuple[Argument, ...]
    parameters: tuple[Parameter, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(_parameters_of(self.arguments)))

    @classmethod
    def from_source(cls, src: Any) -> Signature:
        """From the source object that Triton passes to a launcher (its `signature`, `constants` and `fn`)."""
        names = list(src.signature)
        # Triton numbers constants by position among the function's arguments, of which a hand-written signature may
        # list only a part.
        arg_names = list(getattr(getattr(src, "fn", None), "arg_names", None) or names)
        constants: set[Path] = set()
        for key in getattr(src, "constants", None) or {}:
            path = key if isinstance(key, tuple) else (key,)
            name = arg_names[path[0]] if isinstance(path[0], int) else path[0]
            if name in src.signature:
                constants.add((names.index(name), *path[1:]))
        return cls._make(src.signature.items(), constants)

    @classmethod
    def from_types(cls, types: Mapping[Any, Any] | Sequence[Any]) -> Signature:
        """From type strings: a mapping of names to types, or types alone (named ``arg0``, ``arg1``, ...).

        A type is a string, None (a constexpr), a tuple or list of types, or a mapping (a named tuple).
        """
        if isinstance(types, Mapping):
            return cls._make(types.items(), set())
        return cls._make(((f"arg{i}", type_) for i, type_ in enumerate(types)), set())

    @classmethod
    def _make(cls, items: Iterable[tuple[Any, Any]], constants: set[Path]) -> Signature:
        return cls(
            tuple(_argument(str(name), type_, (i,), constants) for i, (name, type_) in enumerate(items))
        )

    @property
    def required(self) -> int:
        """The least number of arguments of a launch: trailing constexprs may be left out.

        Triton itself passes all of them, but callers of a compiled kernel often do not have them any more.
        """
        count = len(self.arguments)
        while count and self.arguments[count - 1].type == CONSTEXPR:
            count -= 1
        return count

    def check_count(self, given: int) -> None:
        """Raise `SignatureError` if a launch cannot have `given` arguments."""
        names = ", ".join(argument.name for argument in self.arguments)
        check_count(names, len(self.arguments), self.required, given)

    def flatten(self, args: Sequence[Any]) -> list[Any]:
        """The values of `parameters`, in order, from the arguments of one launch (constexprs included).

        Raises `SignatureError` for a wrong number of arguments or tuple members, and for a value that is not a tensor
        descriptor where one is required. The values themselves are not checked.
        """
        self.check_count(len(args))
        values: list[Any] = []
        _flatten(self.arguments[: len(args)], args, values)
        return values

    def to_dict(self) -> dict[str, Any]:
        """Plain data that survives JSON; `from_dict` reads it."""
        return {"arguments": [[argument.name, _plain_type(argument)] for argument in self.arguments]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Signature:
        """The signature that `to_dict` wrote."""
        return cls._make(((name, type_) for name, type_ in data["arguments"]), set())


def _argument(name: str, type_: Any, path: Path, constants: set[Path]) -> Argument:
    if type_ is None or type_ == CONSTEXPR or path in constants:
        return Argument(name, CONSTEXPR)
    if isinstance(type_, Mapping):
        return _tuple(name, list(type_.values()), tuple(map(str, type_)), path, constants)
    if isinstance(type_, list | tuple):
        return _tuple(name, type_, tuple(getattr(type_, "_fields", ())), path, constants)
    if not isinstance(type_, str):
        raise SignatureError(
            f"argument '{name}' has {type_!r} for its type; a type is a string such as 'i32' or '*fp32', "
            "or a tuple of types"
        )
    if type_.startswith("tensordesc"):
        return Argument(name, type_, _descriptor_parameters(name, type_, path))
    return Argument(name, type_, (Parameter(path, name, type_),))


def _tuple(
    name: str, types: Sequence[Any], fields: tuple[str, ...], path: Path, constants: set[Path]
) -> Argument:
    labels = [f".{field}" for field in fields] or [f"[{i}]" for i in range(len(types))]
    members = tuple(
        _argument(name + label, type_, (*path, i), constants)
        for i, (label, type_) in enumerate(zip(labels, types, strict=True))
    )
    return Argument(name, "tuple", members=members, fields=fields)


def _descriptor_parameters(name: str, type_: str, path: Path) -> tuple[Parameter, ...]:
    match = _DESCRIPTOR.match(type_)
    if match is None:
        raise SignatureError(
            f"argument '{name}' has the type '{type_}', which is not a tensor descriptor; "
            "it is written tensordesc<T[sizes]>, e.g. tensordesc<fp16[64, 32]>"
        )
    element, block = match.groups()
    input_rank = _INPUT_RANK.search(type_)
    rank = int(input_rank.group(1)) if input_rank else block.count(",") + 1
    shape = [("shape", i) for i in range(rank)]
    strides = [("strides", i) for i in range(rank)]
    # The shape and the strides occur twice: for the descriptor itself, and because Triton passes them beside every
    # descriptor.
    pieces: list[tuple[Path, str]] = [
        (("base",), "*" + element),
        *((piece, "i64") for piece in shape + strides),
        *(((flag,), "i1") for flag in compat.descriptor_flags()),
        *((piece, "i32") for piece in shape),
        *((piece, "i64") for piece in strides),
    ]
    return tuple(Parameter((*path, *piece), _piece_name(name, piece), type_) for piece, type_ in pieces)


def _piece_name(name: str, piece: Path) -> str:
    return f"{name}.{piece[0]}" + "".join(f"[{i}]" for i in piece[1:])


def _parameters_of(arguments: Iterable[Argument]) -> Iterable[Parameter]:
    for argument in arguments:
        yield from argument.parameters
        yield from _parameters_of(argument.members)


def _flatten(arguments: Sequence[Argument], args: Sequence[Any], values: list[Any]) -> None:
    for argument, value in zip(arguments, args, strict=True):
        if argument.is_tuple:
            _flatten(argument.members, tuple_members(argument.name, len(argument.members), value), values)
        elif argument.is_descriptor:
            values.extend(descriptor_fields(argument.name, argument.type, len(argument.parameters), value))
        elif argument.parameters:
            values.append(value)


def _plain_type(argument: Argument) -> Any:
    if not argument.is_tuple:
        return argument.type
    members = [_plain_type(member) for member in argument.members]
    return dict(zip(argument.fields, members, strict=True)) if argument.fields else members
