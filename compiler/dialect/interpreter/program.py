"""A module of the structured form as Python objects, which are faster to walk many times than MLIR's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from triton_porting_kit.compiler.dialect.registry import OPERATIONS
from triton_porting_kit.compiler.dialect.schema import Op
from triton_porting_kit.compiler.locations import parameter_name, source_location
from triton_porting_kit.errors import CompilationError, SourceLocation

from .errors import NotInterpreted
from .formats import DTYPES

_STRUCTURED = "write it with scf.if, scf.for and scf.while: a region has one block"


@dataclass(frozen=True, slots=True)
class Type:
    """A value's type: `shape` is None for scalars."""

    element: str
    shape: tuple[int, ...] | None


@dataclass(eq=False, slots=True)
class Value:
    """An SSA value."""

    type: Type


@dataclass(eq=False, slots=True)
class Block:
    """A region's only block."""

    arguments: list[Value]
    operations: list[Operation] = field(default_factory=list)


@dataclass(eq=False)
class Operation:
    """One operation. The classes of the dialect are views of it."""

    name: str
    operands: list[Value]
    results: list[Value]
    attributes: Mapping[str, Any]
    """MLIR's attributes."""
    regions: list[Block]
    handle: Any
    """MLIR's own object."""

    @cached_property
    def view(self) -> Any:
        """The view by the dialect class that declares it. Raises KeyError for upstream's operations."""
        cls: type[Op[Value]] = OPERATIONS[self.name]
        return cls(self)

    @cached_property
    def location(self) -> SourceLocation | None:
        """The kernel's line."""
        return source_location(self.handle.location)

    @property
    def element(self) -> str:
        """The type of the first result's elements."""
        return self.results[0].type.element

    @property
    def shape(self) -> tuple[int, ...]:
        """The first result's shape; () for a scalar."""
        return self.results[0].type.shape or ()

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The types of the operands' elements."""
        return tuple(value.type.element for value in self.operands)

    def integer(self, name: str, default: int = 0) -> int:
        """An attribute that is an integer."""
        return int(self.attributes[name].value) if name in self.attributes else default

    def integers(self, name: str) -> tuple[int, ...]:
        """An attribute that is an array of integers."""
        return tuple(int(number) for number in self.attributes[name]) if name in self.attributes else ()

    def unknown(self, what: str, remedy: str) -> NotInterpreted:
        """The error for what the interpreter cannot execute."""
        return NotInterpreted(what, operation=self.name, location=self.location, remedy=remedy)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel: its name in the source, its type, and the element type that a pointer points to."""

    name: str
    type: str
    pointee: str = ""

    @property
    def is_pointer(self) -> bool:
        return self.type == "!llvm.ptr"


@dataclass(frozen=True)
class Kernel:
    """A kernel and the functions that it calls, by name. It keeps the module alive, which owns its operations."""

    name: str
    parameters: tuple[Parameter, ...]
    body: Block
    functions: Mapping[str, Block]
    promises: tuple[int, ...]
    """The attribute `tpk.promises`: three numbers for each step."""
    module: Any


def read_kernel(module: Any) -> Kernel:
    """The kernel of a module of the structured form, in MLIR's bindings.

    Raises `CompilationError` if there is none, and `NotInterpreted` for element types that the form does not have.
    """
    functions = {
        handle.operation.attributes["sym_name"].value: handle.operation
        for handle in module.body.operations
        if handle.operation.name == "func.func"
    }
    kernels = [name for name, function in functions.items() if "tpk.kernel" in function.attributes]
    if not kernels:
        raise CompilationError(
            "the module holds no function marked tpk.kernel",
            remedy="give what `tpk compile --emit structured` prints",
        )
    blocks = {name: _Reader().only_block(function) for name, function in functions.items()}
    name = kernels[0]
    attributes = functions[name].attributes
    promises = tuple(attributes["tpk.promises"]) if "tpk.promises" in attributes else ()
    return Kernel(name, _parameters(functions[name]), blocks[name], blocks, promises, module)


def _parameters(function: Any) -> tuple[Parameter, ...]:
    arguments = list(function.regions[0].blocks[0].arguments)
    described = (
        function.attributes["arg_attrs"] if "arg_attrs" in function.attributes else [{}] * len(arguments)
    )
    found = []
    for number, (argument, attributes) in enumerate(zip(arguments, described, strict=True)):
        pointee = str(attributes["tpk.pointee"].value) if "tpk.pointee" in attributes else ""
        found.append(Parameter(parameter_name(argument) or f"argument {number}", str(argument.type), pointee))
    return tuple(found)


class _Reader:
    """Reads one function."""

    def __init__(self) -> None:
        self._values: dict[Any, Value] = {}
        self._types: dict[Any, Type] = {}

    def only_block(self, function: Any) -> Block:
        blocks = list(function.regions[0].blocks)
        if len(blocks) != 1:
            raise CompilationError(
                "the function's control flow is not structured", operation="cf.cond_br", remedy=_STRUCTURED
            )
        return self._block(blocks[0])

    def _block(self, handle: Any) -> Block:
        block = Block([self._define(argument) for argument in handle.arguments])
        for operation in handle.operations:
            block.operations.append(self._operation(operation.operation))
        return block

    def _operation(self, handle: Any) -> Operation:
        attributes = {name: handle.attributes[name] for name in _names(handle.attributes)}
        operands = [self._values[value] for value in handle.operands]
        operation = Operation(handle.name, operands, [], attributes, [], handle)
        operation.results = [self._define(result) for result in handle.results]
        for value in operation.results:
            if value.type.element not in DTYPES:
                raise operation.unknown(
                    f"the interpreter knows no elements of type {value.type.element}",
                    f"use one of {', '.join(DTYPES)}",
                )
        if operation.name not in (
            "linalg.matmul",
            "linalg.batch_matmul",
        ):  # the name says what their regions compute
            for region in handle.regions:
                blocks = list(region.blocks)
                if len(blocks) > 1:
                    raise operation.unknown("the control flow in this region is not structured", _STRUCTURED)
                operation.regions.append(self._block(blocks[0]) if blocks else Block([]))
        return operation

    def _define(self, handle: Any) -> Value:
        kind = handle.type
        if kind not in self._types:
            shape = getattr(kind, "shape", None)
            element = str(getattr(kind, "element_type", kind))
            self._types[kind] = Type(element, None if shape is None else tuple(shape))
        value = self._values[handle] = Value(self._types[kind])
        return value


def _names(attributes: Any) -> list[str]:
    return [named if isinstance(named, str) else named.name for named in attributes]
