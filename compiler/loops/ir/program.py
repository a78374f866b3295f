"""The structured form as plain Python objects: read once from MLIR, then cheap to walk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from triton_porting_kit.compiler.dialect.operations import Access, Call
from triton_porting_kit.compiler.dialect.schema import all_of
from triton_porting_kit.compiler.locations import parameter_name, source_location
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.errors import CompilationError, SourceLocation

_ACCESSES = frozenset(cls.OPERATION_NAME for cls in all_of(Access))


RETURN_ONCE = "return once, at the end: put what follows an early return into an `else`"
"""The remedy for unstructured control flow."""


class Type(NamedTuple):
    """A value's type: `shape` is None for scalars (rank-0 tensors have an empty shape)."""

    element: str
    shape: tuple[int, ...] | None

    @property
    def is_tensor(self) -> bool:
        return self.shape is not None


@dataclass(eq=False, slots=True, repr=False)
class Def:
    """An SSA value of the structured form; `users` are the operations that read it, in order."""

    type: Type
    block: Block
    owner: Operation | None
    users: list[Operation] = field(default_factory=list)


@dataclass(eq=False, slots=True, repr=False)
class Block:
    arguments: list[Def]
    operations: list[Operation] = field(default_factory=list)
    parent: Operation | None = None


@dataclass(eq=False, slots=True, repr=False)
class Operation:
    """One operation. `handle` is MLIR's own object, for attributes and the location."""

    name: str
    operands: list[Def]
    results: list[Def]
    regions: list[Block]
    block: Block
    handle: Any
    position: int

    @property
    def attributes(self) -> Any:
        """MLIR's attributes."""
        return self.handle.attributes

    def attribute(self, name: str) -> Any | None:
        """MLIR's attribute of that name, or None."""
        attributes = self.handle.attributes
        return attributes[name] if name in attributes else None  # noqa: SIM401 (MLIR's map has no `get`)

    def required(self, name: str) -> Any:
        """The MLIR attribute of that name, which the operation must have."""
        return self.handle.attributes[name]

    def integer(self, name: str, default: int | None = None) -> int:
        attribute = self.attribute(name)
        if attribute is None:
            if default is None:
                raise KeyError(f"{self.name} has no attribute {name}")
            return default
        return int(attribute.value)

    def string(self, name: str, default: str = "") -> str:
        attribute = self.attribute(name)
        return default if attribute is None else str(attribute.value)

    def integers(self, name: str) -> list[int]:
        attribute = self.attribute(name)
        return [] if attribute is None else [int(x) for x in attribute]

    @property
    def location(self) -> SourceLocation | None:
        return source_location(self.handle.location)

    @property
    def is_volatile(self) -> bool:
        """Whether it is a volatile or atomic access, whose order other threads observe."""
        return self.name in _ACCESSES and self.attribute("volatile") is not None

    def unsupported(self, why: str, remedy: str) -> CompilationError:
        """The error for an operation that this lowering cannot handle."""
        return CompilationError(why, operation=self.name, location=self.location, remedy=remedy)

    def ancestor_in(self, block: Block) -> Operation | None:
        """The operation of `block` that is this one or contains it."""
        operation: Operation | None = self
        while operation is not None and operation.block is not block:
            operation = operation.block.parent
        return operation


@dataclass(eq=False, slots=True, repr=False)
class Program:
    """A kernel function of the structured form.

    The handles of its operations point into the MLIR module, which it therefore keeps alive.
    """

    name: str
    body: Block
    argument_names: list[str]
    promises: list[int]
    """The attribute `tpk.promises`: three numbers for each step."""
    module: Any


class _Reader:
    """Reads one kernel and inlines calls."""

    def __init__(self, functions: dict[str, Any]) -> None:
        self._functions = functions
        self._calls: list[str] = []
        self._defs: dict[Any, Def] = {}
        self._types: dict[Any, Type] = {}
        self._foreign: set[str] = set()
        """Element types that the lowering cannot compute with."""

    def type(self, mlir_type: Any) -> Type:
        known = self._types.get(mlir_type)
        if known is None:
            text = str(mlir_type)
            if text.startswith("tensor<"):
                inner = text[7:-1]
                *dims, element = _split_shape(inner)
                known = Type(element, tuple(int(d) for d in dims))
            else:
                known = Type(text, None)
            self._types[mlir_type] = known
            if known.element not in types.BITS and known.element != "index":
                self._foreign.add(known.element)
        return known

    def block(self, handle: Any, parent: Operation | None) -> Block:
        block = Block([], parent=parent)
        block.arguments = [self.define(argument, block, None) for argument in handle.arguments]
        for op in handle.operations:
            self.append(op.operation, block)
        return block

    def append(self, handle: Any, block: Block) -> None:
        """Read an operation, or the body of the function that it calls, to the end of `block`."""
        operation = self.operation(handle, block)
        if operation.name not in ("func.call", Call.OPERATION_NAME):
            block.operations.append(operation)
            return
        name = handle.attributes["callee"].value
        if name in self._calls:
            raise operation.unsupported(f"{name} calls itself", "write the recursion as a loop")
        for operand in operation.operands:
            operand.users.remove(operation)
        body = self._functions[name].regions[0].blocks[0]
        self._defs.update(zip(body.arguments, operation.operands, strict=True))
        self._calls.append(name)
        for op in body.operations:
            if op.operation.name == "func.return":
                returned = [self._defs[value] for value in op.operation.operands]
                self._defs.update(zip(handle.results, returned, strict=True))
            else:
                self.append(op.operation, block)
        self._calls.pop()

    def define(self, value: Any, block: Block, owner: Operation | None) -> Def:
        definition = Def(self.type(value.type), block, owner)
        self._defs[value] = definition
        return definition

    def operation(self, handle: Any, block: Block) -> Operation:
        """Read an operation and its regions, and number it as the next one of `block`."""
        # Half of the time goes into crossing to MLIR and back.
        defs = self._defs
        operands = [defs[value] for value in handle.operands]
        op = Operation(handle.name, operands, [], [], block, handle, len(block.operations))
        for operand in operands:
            operand.users.append(op)
        for result in handle.results:
            definition = self.define(result, block, op)
            op.results.append(definition)
            if definition.type.element in self._foreign:
                raise op.unsupported(
                    f"the CPU backend does not compute with elements of type {definition.type.element}",
                    "load and store such elements as integers of their size, and compute in a type of Triton's",
                )
        for region in handle.regions if len(handle.regions) else ():
            blocks = list(region.blocks)
            if len(blocks) > 1:
                raise op.unsupported("the control flow in this region is not structured", RETURN_ONCE)
            if blocks:
                op.regions.append(self.block(blocks[0], op))
        return op


def _split_shape(text: str) -> list[str]:
    """``4x8xf32`` -> ["4", "8", "f32"]. The element type may contain an ``x``."""
    parts: list[str] = []
    while True:
        head, _, rest = text.partition("x")
        if not head.isdigit():
            return [*parts, text]
        parts.append(head)
        text = rest


def read_program(module: Any) -> Program:
    """The kernel of a structured module (the one function marked ``tpk.kernel``)."""
    functions = {
        handle.operation.attributes["sym_name"].value: handle.operation
        for handle in module.body.operations
        if handle.operation.name == "func.func"
    }
    for operation in functions.values():
        if operation.name == "func.func" and "tpk.kernel" in operation.attributes:
            name = operation.attributes["sym_name"].value
            reader = _Reader(functions)
            blocks = list(operation.regions[0].blocks)
            if len(blocks) > 1:
                raise CompilationError(
                    f"kernel {name} returns early through unstructured control flow",
                    operation="cf.cond_br",
                    remedy=RETURN_ONCE,
                )
            names = [parameter_name(argument) or str(i) for i, argument in enumerate(blocks[0].arguments)]
            return Program(name, reader.block(blocks[0], None), names, _promises(operation), module)
    raise CompilationError(
        "the structured module holds no function marked tpk.kernel",
        remedy="give what `tpk compile --emit structured` prints",
    )


def _promises(function: Any) -> list[int]:
    return list(function.attributes["tpk.promises"]) if "tpk.promises" in function.attributes else []


def walk(block: Block) -> Iterator[Operation]:
    """Every operation of a block; nested ones come after the operation that contains them."""
    # Generators in generators would pass each operation on through all of them.
    stack = [iter(block.operations)]
    while stack:
        for operation in stack[-1]:
            yield operation
            if operation.regions:
                stack += [iter(region.operations) for region in reversed(operation.regions)]
                break
        else:
            stack.pop()


def only_operation(region: Block) -> Operation | None:
    """The operation that a region applies to its arguments, in any order, and yields; None if it does anything else."""
    first, last = region.operations[0], region.operations[-1]
    alone = len(region.operations) == 2 and set(first.operands) == set(region.arguments)
    return first if alone and last.operands == first.results else None


def last_user(definition: Def) -> int:
    """The position of the last operation, in the value's own block, that uses the value or contains a use."""
    ancestors = (user.ancestor_in(definition.block) for user in definition.users)
    return max((operation.position for operation in ancestors if operation is not None), default=-1)
