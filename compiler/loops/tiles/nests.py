"""The loop nest over a tile, in parts or in two versions where accesses have bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.tiles.access import Access
from triton_porting_kit.compiler.loops.tiles.access import Load as LoadTensor
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.graph import reads_memory
from triton_porting_kit.compiler.loops.tiles.peeling import PeeledLoop, Streams, tile_in_parts
from triton_porting_kit.compiler.loops.tiles.run_width import run_width
from triton_porting_kit.compiler.loops.tiles.tensors import (
    Buffer,
    Point,
    Splat,
    Tensor,
    closure,
    is_operation,
    joining,
)
from triton_porting_kit.compiler.loops.tiles.tile_loops import chunk, innermost_axis, joined_shape, tile_loop
from triton_porting_kit.compiler.loops.tiles.transposed import UNIT_BYTES, elements_of_unit, transpose_tile
from triton_porting_kit.compiler.target import CpuTarget

CONSTANT_STORES = 4
"""Up to so many vectors of one value are stored without a loop, which would be longer."""


def emit_tile(
    builder: LoopBuilder,
    target: CpuTarget,
    shape: tuple[int, ...],
    inputs: Sequence[Tensor],
    body: Callable[[Evaluation, Point], None],
    kept: dict[Tensor, Buffer],
    *,
    written: Sequence[Access],
    lanes: int | None,
    anywhere: bool,
    everywhere: bool,
    streams: Streams | None,
    scalars: bool,
    wanted: Tensor | None,
) -> None:
    """Emit loops over a tile as `Lowering.tile` describes them. Values in `kept` are written to their buffers, too."""
    if anywhere:
        shape = joined_shape(shape, joining(inputs))

    width = target.lanes if lanes is None else lanes
    if lanes is None and (streams is None or streams.branches):
        width = run_width(builder, shape, inputs, width, scalars=scalars)
        streams = streams if width == target.lanes else None
    bounds = None
    boxes = {access.box for access in written}
    if len(boxes) == 1 and written[0].low and not kept and not everywhere:
        bounds = dict(enumerate(zip(written[0].low, written[0].high, strict=True)))
    axis = innermost_axis(shape)
    step = chunk(shape[axis], width) if axis >= 0 else 1
    span = PeeledLoop(builder, inputs, shape, axis, written=written, bounds=bounds)
    if wanted is not None and not kept and (end := span.end_of(wanted)) is not None:
        bounds = {axis: (builder.i64(0), end)}
    if axis >= 0 and shape[axis] > step and (span.is_split or streams is not None):
        builder.forget_reads()
        masks_gathers = target.masks_gathers
        tile_in_parts(builder, shape, width, body, span, bounds, kept, streams, masks_gathers=masks_gathers)
        builder.forget_reads()
    else:

        def emit(unmasked: frozenset[object]) -> list[Value]:
            limits = None if unmasked.issuperset(written) else bounds
            evaluation = Evaluation(builder, unmasked, kept)
            tile_loop(
                builder,
                shape,
                width,
                partial(body, evaluation),
                bounds=limits,
                written_out=written_out,
            )
            return []

        written_out = CONSTANT_STORES if all(isinstance(tensor, Splat) for tensor in inputs) else 1

        specialise(builder, inputs, emit, written)


def changes_where(tensor: Tensor, buffer: Buffer) -> Tensor | None:
    """A mask without which `tensor` is what `buffer` holds already, as in ``x = tl.where(mask, new, x)``, or None."""
    if tensor.buffer is not None or not is_operation(tensor, "arith.select"):
        return None
    mask, _, before = tensor.operands
    before = before.buffer or before
    same = isinstance(before, Buffer) and before.pointer == buffer.pointer and before.shape == buffer.shape
    return mask if same else None


def specialise(
    builder: LoopBuilder,
    inputs: Iterable[Tensor],
    emit: Callable[[frozenset[object]], list[Value]],
    written: Sequence[Access] = (),
) -> list[Value]:
    """Emit a loop nest twice where that pays: for tiles wholly in bounds, and for the others.

    `emit` takes the accesses that are known to be in bounds, and returns the values that it yields.
    """
    accesses = [tensor.access for tensor in closure(inputs) if isinstance(tensor, LoadTensor)]
    accesses += written
    accesses = [access for access in accesses if not access.is_plain]
    builder.forget_reads()
    if not accesses:
        results = emit(frozenset())
    else:
        condition = builder.constant(1, "i1")
        for access in accesses:
            condition = builder.logical_and(condition, access.plain_condition(builder))

        def general() -> list[Value]:
            builder.forget_reads()
            return emit(frozenset())

        results = builder.if_else(condition, lambda: emit(frozenset(accesses)), general)
    builder.forget_reads()
    return results


def transpose_into(builder: LoopBuilder, target: CpuTarget, tensor: Tensor, buffer: Buffer) -> None:
    """Write a tensor that lies across memory into `buffer`, in blocks that are transposed in registers."""

    count = elements_of_unit(tensor.element)
    unit = tensor.element if count == 1 else f"i{8 * UNIT_BYTES}"

    def write(point: Point, value: Value) -> None:
        if count == 1:
            buffer.write(builder, point, value)
            return
        bits = types.BITS[tensor.element]
        *outer, down, across = point.indices
        first = builder.mul(down, builder.i64(count))
        for index in range(count):
            moved = builder.binary("arith.shrui", value, builder.constant(bits * index, value.type))
            part = builder.cast("arith.trunci", moved, vector_type(f"i{bits}", value.lanes))
            place = (*outer, builder.add(first, builder.i64(index)), across)
            buffer.write(builder, Point(place, point.axis, point.width), part)

    def emit(unmasked: frozenset[object]) -> list[Value]:
        evaluation = Evaluation(builder, unmasked, {})
        transpose_tile(evaluation, tensor, target, write, unit=unit, count=count)
        return []

    specialise(builder, [tensor], emit)


def is_run(builder: LoopBuilder, target: CpuTarget, tensor: Tensor) -> bool:
    """Whether a chunk of it takes a few scalar operations: positions, and what is equal in a run of lanes."""
    if not tensor.divides or not tensor.shape:
        return False
    axis = innermost_axis(tensor.shape)
    width = chunk(tensor.shape[axis], target.lanes) if axis >= 0 else 1
    point = Point((builder.i64(0),) * len(tensor.shape), axis if width > 1 else -1, width)
    run = Evaluation(builder, frozenset(), {}).run(tensor, point)
    return run is not None and (run.step == 0 or not reads_memory(tensor))
