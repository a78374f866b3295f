"""Atomic updates without locks of the bus, in calls of the kernel during which no other thread updates memory, or only
threads that take the same locks (see `stripes`).

The host says so in a number in scratch, which is zero for hosts that do not know of it. Then an update is a load and a
store, and a run of addresses side by side is updated as a vector. Operations of scope ``sys`` keep their locks, because
other processes may share their memory.

A call that excludes others must end without them. A kernel has no such code if it waits for memory to change, or may
wait for whoever reads what it prints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from triton_porting_kit.abi import kernel as abi
from triton_porting_kit.compiler.dialect.operations import AtomicPoll, AtomicRmw, Print
from triton_porting_kit.compiler.loops.arithmetic.elementwise import narrow, widen
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Block, Def, Operation, walk
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory.stripes import Stripes
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.explicit import is_consecutive, locate_explicit, run_of_offsets
from triton_porting_kit.compiler.loops.tiles.run_width import lanes_in_run
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Point, Tensor, closure

_WAITS = {AtomicPoll.OPERATION_NAME, Print.OPERATION_NAME, "scf.while"}

_OPERATIONS = {
    "add": "arith.addi", "fadd": "arith.addf", "max": "arith.maxsi", "umax": "arith.maxui", "min": "arith.minsi",
    "umin": "arith.minui", "and": "arith.andi", "or": "arith.ori", "xor": "arith.xori",
}  # fmt: skip


@dataclass
class Exclusive:
    """A part of the lowering: i1, whether updates are loads and stores; None if the kernel does not ask."""

    condition: Value | None = None
    stripes: Stripes | None = None


def prepare(lowering: Lowering, body: Block, *, wanted: bool) -> dict[str, int]:
    """Read what the host says in scratch, in a kernel with operations that updates without locks could disturb.

    Returns the constants that tell the host where, by symbol suffix: an offset in bytes; -1 if the kernel has no use
    for it.
    """
    operations = [*walk(body)]
    suits = any(AtomicRmw.isa(operation) and _suits(AtomicRmw(operation)) for operation in operations)
    if not (wanted and suits) or any(operation.name in _WAITS for operation in operations):
        return {abi.EXCLUSIVE: -1}
    builder = lowering.builder
    offset = lowering.scratch.cleared.size
    place = lowering.scratch.keep_cleared(types.byte_size("i64"))
    number = builder.effect(f"llvm.load {place.name} : !llvm.ptr -> i64", "i64")
    assert number is not None
    alone = builder.compare("ne", number, builder.i64(0))
    stripes = Stripes.of(lowering)
    exclusive = lowering.part(Exclusive)
    exclusive.condition, exclusive.stripes = builder.binary("arith.ori", alone, stripes.condition), stripes
    return {abi.EXCLUSIVE: offset, abi.STRIPES: stripes.at}


def _suits(op: AtomicRmw[Def]) -> bool:
    is_float = types.is_float(op.value.type.element)
    known = op.kind in _OPERATIONS and (op.kind == "fadd" or not is_float)
    return op.result.type.is_tensor and op.scope != "sys" and known


@dataclass(frozen=True)
class Update:
    """An atomic operation as a load and a store, where `condition` is set."""

    builder: LoopBuilder
    condition: Value
    stripes: Stripes
    kind: str
    element: str

    def perform(self, pointer: Value, operand: Value, mask: Value | None = None) -> Value:
        """Update the elements at `pointer`, as many as `operand` has. Returns the old ones, or 0 in other lanes."""
        builder, element = self.builder, self.element
        builder.forget_reads()
        old = lane_memory.read(builder, pointer, element, operand.lanes, floor=builder.level, mask=mask)
        name = _OPERATIONS[self.kind]
        if self.kind == "fadd" and element in types.NARROW_FLOATS:
            total = builder.binary(name, widen(builder, old, element), widen(builder, operand, element))
            new = narrow(builder, total, element)
        else:
            new = builder.binary(name, old, operand)
        lane_memory.write(builder, pointer, new, mask)
        return old

    def scalar(self, pointer: Value, values: list[Value]) -> Value:
        """`perform` for one element under its lock, in the form that `atomics.each` takes."""
        self.stripes.enter(pointer)
        return self.perform(pointer, *values)


def update_of(lowering: Lowering, op: AtomicRmw[Def]) -> Update | None:
    """The operation without locks; None if it always needs them."""
    exclusive = lowering.part(Exclusive)
    if exclusive.condition is None or exclusive.stripes is None or not _suits(op):
        return None
    return Update(lowering.builder, exclusive.condition, exclusive.stripes, op.kind, op.value.type.element)


@dataclass(frozen=True)
class Tile:
    """The operands of an update of a tile, in the terms of `explicit`."""

    base: Value
    offsets: Tensor
    unit: str
    operand: Tensor
    mask: Tensor | None
    old: Buffer | None
    """Where the old elements go."""

    @property
    def inputs(self) -> list[Tensor]:
        return [self.offsets, self.operand, *([] if self.mask is None else [self.mask])]


def update_tile(
    lowering: Lowering,
    operation: Operation,
    tile: Tile,
    update: Update,
    one: Callable[[Evaluation, Point], Value],
) -> list[Value]:
    """Emit the loop over a tile: chunks whose elements lie side by side as vectors, others by `one` at a time."""
    builder = lowering.builder

    def keep(point: Point, old: Value) -> None:
        if tile.old is not None:
            tile.old.write(builder, point, old)

    def each_lane(evaluation: Evaluation, point: Point) -> None:
        if point.width == 1:
            keep(point, one(evaluation, point))
            return
        with builder.loop(builder.i64(0), builder.i64(point.width), builder.i64(1)) as region:
            index = builder.add(point.indices[point.axis], region.induction)
            here = Point(point.moved(point.axis, index).indices, -1, 1)
            keep(here, one(Evaluation(builder, evaluation.unmasked, {}), here))

    def body(evaluation: Evaluation, point: Point) -> None:
        run = run_of_offsets(evaluation, point, tile.offsets)
        if run is None or not is_consecutive(run.step, tile.unit, update.element):
            assert point.width == 1, "the width of the loop was chosen for runs"
            each_lane(evaluation, point)
            return
        step = run.step

        def emit(inner: Evaluation, here: Point, whole: bool) -> list[Value]:
            if not whole:
                each_lane(inner, here)
                return []
            pointer, _ = locate_explicit(inner, here, tile.base, tile.offsets, tile.unit, step)
            operand = builder.broadcast(inner.at(tile.operand, here), here.width)
            mask = None if tile.mask is None else inner.at(tile.mask, here)
            size = here.width * types.byte_size(update.element)

            def as_vector() -> list[Value]:
                keep(here, update.perform(pointer, operand, mask))
                return []

            def one_by_one() -> list[Value]:
                each_lane(inner, here)
                return []

            update.stripes.update(pointer, size, as_vector, one_by_one)
            return []

        evaluation.on_condition(run, point, closure(tile.inputs), emit)

    shape = tile.offsets.shape
    consecutive = partial(is_consecutive, unit=tile.unit, element=update.element)
    lanes = lanes_in_run(builder, shape, tile.offsets, lowering.target.lanes, consecutive)
    ordered = AtomicRmw(operation).sem != "relaxed"
    if ordered:
        update.stripes.fence()
    lowering.tile(operation, shape, tile.inputs, body, lanes=1 if lanes == 1 else None)
    update.stripes.leave()
    if ordered:
        update.stripes.fence()
    return []
