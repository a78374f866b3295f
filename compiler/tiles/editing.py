"""Creates operations of the stage ``tiles``: buffers, transfers, waits, and the tensors of offsets and masks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from triton_porting_kit.chips.description import ChipDescription, Engine
from triton_porting_kit.compiler.dialect import Op
from triton_porting_kit.compiler.dialect.npu import NpuBuffer, NpuDma, NpuRead, NpuWait, NpuWrite
from triton_porting_kit.compiler.structured.affine import Shape
from triton_porting_kit.compiler.structured.analysis import Analysis
from triton_porting_kit.compiler.structured.emit import Emitter
from triton_porting_kit.compiler.structured.types import Types, element_bits
from triton_porting_kit.toolchain.mlir import ir

from .memories import vector_memory

SLT, SLE, SGT, SGE, EQ, NE = 2, 3, 4, 5, 0, 1
"""Predicates of ``arith.cmpi``."""


_GO_ON, _OUTER_FIRST = ir.WalkResult.ADVANCE, ir.WalkOrder.PRE_ORDER

Branch = Callable[[], Sequence[Any]]
"""Creates the operations of a branch, and returns the values that it yields."""


def byte_size(element: str) -> int:
    """Bytes of an element in memory: a boolean, and a number of 4 bits, takes one."""
    return max(1, element_bits(element) // 8)


def shape_of(value: Any) -> Shape | None:
    """The sizes of a tensor; None for a scalar."""
    kind = value.type
    return tuple(kind.shape) if isinstance(kind, ir.RankedTensorType) else None


def element_of(value: Any) -> str:
    """The type of a scalar, or of a tensor's elements."""
    return str(getattr(value.type, "element_type", value.type))


def bytes_of(value: Any) -> int:
    """Bytes of a tensor in memory."""
    return math.prod(shape_of(value) or ()) * byte_size(element_of(value))


def number_of(value: Any) -> int | None:
    """The integer that a scalar is known to be."""
    owner = value.owner
    if getattr(owner, "name", "") != "arith.constant":
        return None
    return int(owner.attributes["value"].value)


class Editor(Emitter):
    """Creates operations in one function, for one chip."""

    def __init__(self, function: Any, chip: ChipDescription) -> None:
        types = Types()
        super().__init__(types, Analysis(types, promises=False), function.regions[0].blocks[0])
        self.chip = chip
        self.entry = function.regions[0].blocks[0]
        """The function's first block."""
        self.vector = vector_memory(chip).name
        """The memory of vector code."""
        self.everywhere = chip.global_memory.name

    # --- buffers ---------------------------------------------------------------------------------

    def buffer(self, shape: Shape, element: str, holds: str, memory: str | None = None) -> Any:
        """A buffer for a tile."""
        size = math.prod(shape) * byte_size(element)
        attributes = {
            "memory": ir.StringAttr.get(memory or self.vector),
            "bytes": self.integer(max(size, 1)),
            "holds": ir.StringAttr.get(holds),
        }
        return self.create(NpuBuffer, [self.types.pointer], attributes).results[0]

    def copies(self, buffer: Any, count: int) -> None:
        """Let there be some copies of a buffer, each of which a transfer can begin at."""
        view = NpuBuffer(buffer)
        alignment = self.chip.buffer_alignment(self.chip.memory(view.memory))
        buffer.attributes["bytes"] = self.integer(-(-view.bytes // alignment) * alignment)
        buffer.attributes["copies"] = self.integer(count)

    def written(self, value: Any, holds: str) -> Any:
        """A buffer that vector code computes `value` into."""
        buffer = self.buffer(shape_of(value) or (), element_of(value), holds)
        self.write(buffer, value)
        return buffer

    def write(self, buffer: Any, value: Any) -> None:
        """Vector code computes `value` into a buffer."""
        self.create(NpuWrite, [], buffer=buffer, value=value)

    def read(self, buffer: Any, kind: Any) -> Any:
        """The tensor in a buffer."""
        return self.create(NpuRead, [kind], buffer=buffer).results[0]

    def unit(self, source: str, target: str, element: str, *, gather: bool = False) -> str | None:
        """The DMA channel for a route and a type of elements; None if there is none.

        What comes from global memory takes the first channel, everything else the last one, so that it does not queue
        behind what is loaded ahead.
        """
        channels = self.chip.routed(source, target, element_bytes=byte_size(element), gather=gather)
        if not channels:
            return None
        return f"dma{channels[0] if source == self.everywhere else channels[-1]}"

    def engine(self, unit: str) -> Engine:
        """The engine of a DMA channel."""
        return self.chip.channels[int(unit.removeprefix("dma"))]

    def way(self, source: str, target: str, element: str) -> list[str] | None:
        """The memories through which a tile gets from one local memory to another, the last of which is `target`; the
        fewest. None if there is no way.
        """
        ways = [[source]]
        seen = {source}
        for way in ways:
            if way[-1] == target:
                return way[1:]
            for memory in self.chip.local_memories:
                if memory.name not in seen and self.unit(way[-1], memory.name, element) is not None:
                    seen.add(memory.name)
                    ways.append([*way, memory.name])
        return None

    def wait(self, token: Any, unit: str) -> None:
        """The core waits for a command."""
        self.create(NpuWait, [], {"unit": ir.StringAttr.get(unit)}, token=token)

    def start(self, cls: type[Op[Any]], unit: str, attributes: dict[str, Any], **operands: Any) -> Any:
        """Start a command of a unit. Returns its token."""
        given = {"unit": ir.StringAttr.get(unit), **attributes}
        return self.create(cls, [self.types.i64], given, **operands).results[0]

    def dma(self, unit: str, direction: str, shape: Shape, element: str, **operands: Any) -> Any:
        """Start a transfer of a tile. Returns its token."""
        attributes = {
            "direction": ir.StringAttr.get(direction),
            "shape": ir.DenseI64ArrayAttr.get(list(shape)),
            "element": ir.StringAttr.get(element),
        }
        return self.start(NpuDma, unit, attributes, **operands)

    # --- scalars and tensors ---------------------------------------------------------------------

    def advanced(self, base: Any, offset: Any | None, element: str) -> Any:
        """`base` plus an i64 offset in elements, if there is one."""
        if offset is None:
            return base
        attributes = {
            "elem_type": ir.TypeAttr.get(self.types.parse(f"i{8 * byte_size(element)}")),
            "rawConstantIndices": ir.DenseI32ArrayAttr.get([-(2**31)]),
        }
        return self.value("llvm.getelementptr", [base, offset], self.types.pointer, attributes)

    def compare(self, predicate: int, a: Any, b: Any) -> Any:
        """``arith.cmpi`` of scalars or of tensors."""
        shaped = isinstance(a.type, ir.RankedTensorType)
        kind = self.types.tensor(tuple(a.type.shape), self.types.i1) if shaped else self.types.i1
        return self.value("arith.cmpi", [a, b], kind, {"predicate": self.integer(predicate)})

    def both(self, conditions: Sequence[Any]) -> Any | None:
        """All of the conditions, scalars or tensors; None if there are none."""
        total = None
        for condition in conditions:
            total = (
                condition if total is None else self.value("arith.andi", [total, condition], condition.type)
            )
        return total

    def index(self, d: int, shape: Shape) -> Any:
        """The index along dimension `d` as a 1-D tensor of i64."""
        return self.to_i64(self.range(0, shape[d]))

    def spread(self, along: Any, d: int, shape: Shape) -> Any:
        """A 1-D tensor along dimension `d`, broadcast to `shape`."""
        return self.broadcast(along, shape, [k for k in range(len(shape)) if k != d])

    def if_else(self, condition: Any, kinds: Sequence[Any], then: Branch, otherwise: Branch) -> Sequence[Any]:
        """``scf.if``: the callables create the branches and return the values they yield."""
        operation = self.op("scf.if", [condition], list(kinds), regions=2)
        place = self.at
        for region, branch in zip(operation.regions, (then, otherwise), strict=True):
            block = region.blocks.append()
            self.at = ir.InsertionPoint(block)
            self.op("scf.yield", list(branch()), [])
        self.at = place
        return list(operation.results)

    def loop_while(
        self,
        initial: Sequence[Any],
        condition: Callable[..., Any],
        body: Callable[..., Sequence[Any]],
    ) -> Sequence[Any]:
        """``scf.while``: the callables get the carried values. Returns the last ones."""
        kinds = [value.type for value in initial]
        operation = self.op("scf.while", initial, kinds, regions=2)
        before, after = (region.blocks.append(*kinds) for region in operation.regions)
        place = self.at
        self.at = ir.InsertionPoint(before)
        self.op("scf.condition", [condition(*before.arguments), *before.arguments], [])
        self.at = ir.InsertionPoint(after)
        self.op("scf.yield", list(body(*after.arguments)), [])
        self.at = place
        return list(operation.results)


def copied(module: Any) -> Any:
    """A copy of a module."""
    with module.context, module.operation.location:
        made = ir.Module.create()
        for named in module.operation.attributes:
            name = named if isinstance(named, str) else named.name
            made.operation.attributes[name] = module.operation.attributes[name]
        place = ir.InsertionPoint(made.body)
        for operation in module.body.operations:
            operation.operation.clone(ip=place)
    return made


def functions(module: Any) -> Iterator[Any]:
    """The functions of a module."""
    for operation in module.body.operations:
        if operation.operation.name == "func.func":
            yield operation


def walked(operation: Any) -> list[Any]:
    """An operation, and every one in its regions, inner ones after the operation that contains them."""
    found: list[Any] = []

    def visit(each: Any) -> Any:
        found.append(each)
        return _GO_ON

    operation.walk(visit, _OUTER_FIRST)
    return found


def nested(block: Any) -> list[Any]:
    """Every operation of a block, inner ones after the operation that contains them."""
    found: list[Any] = []
    for view in block.operations:
        operation = view.operation
        if len(operation.regions):
            found += walked(operation)
        else:
            found.append(operation)
    return found


def is_inside(operation: Any, block: Any) -> bool:
    """Whether an operation is in a block, or in a region of an operation that is."""
    while operation is not None and operation.block != block:
        operation = operation.parent and operation.parent.operation
        if operation is not None and operation.name == "func.func":
            return False
    return operation is not None


def origin(pointer: Any) -> Any:
    """The buffer that a pointer leads into."""
    while not isinstance(pointer.owner, ir.Block) and pointer.owner.operation.name == "llvm.getelementptr":
        pointer = pointer.owner.operation.operands[0]
    return pointer
