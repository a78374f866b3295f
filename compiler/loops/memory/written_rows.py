"""Which memory a thread's programs have written so far by scatters of rows: a range of addresses that grows.

Where a list chooses the rows that a kernel writes, nothing is known of them before a launch. Its scatters then record
in scratch what they are about to write. A thread records its own programs only. Without atomic operations, programs
have no order: to read what programs of other threads write would be a race.
"""

from __future__ import annotations

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory.writes import Write
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.explicit import conjuncts, is_consecutive, run_of_offsets
from triton_porting_kit.compiler.loops.tiles.tensors import Point, Reindexed, Tensor
from triton_porting_kit.compiler.loops.tiles.tile_loops import chunk

LARGEST, SMALLEST = (1 << 63) - 1, -(1 << 63)


class Recorded(dict[Operation, "Value | None"]):
    """Where in scratch each scatter records; None for one that was lowered without."""


def place_of(lowering: Lowering, scatter: Operation) -> Value | None:
    """Where a scatter will record. None if it was lowered before anyone asked."""
    recorded = lowering.part(Recorded)
    if scatter not in recorded:
        recorded[scatter] = lowering.scratch.keep_cleared(2 * types.byte_size("i64"))
    return recorded[scatter]


def written(builder: LoopBuilder, place: Value) -> tuple[Value, Value]:
    """The lowest address that was written, and the one after the highest."""
    below, end = _read(builder, place)
    return builder.sub(builder.i64(LARGEST), below), end


def record(lowering: Lowering, write: Write) -> None:
    """Record what a write is about to write, if it is a scatter for which `place_of` was called."""
    if write.access is not None:
        return
    place = lowering.part(Recorded).setdefault(write.operation, None)
    if place is None:
        return
    builder = lowering.builder
    rows = _rows(builder, write)
    if rows is None:  # anything
        _write(builder, place, (builder.i64(LARGEST),) * 2)
        return
    least, most = _extremes(lowering, *rows)
    unit, width = types.byte_size(write.unit), write.shape[1] * types.byte_size(write.value.element)
    start = builder.cast("llvm.ptrtoint", write.base, "i64")
    low, high = (builder.add(start, builder.mul(offset, builder.i64(unit))) for offset in (least, most))
    here = builder.sub(builder.i64(LARGEST), low), builder.add(high, builder.i64(width))
    any_row, before = builder.compare("sle", least, most), _read(builder, place)
    grown = (builder.binary("arith.maxsi", *pair) for pair in zip(before, here, strict=True))
    _write(builder, place, tuple(map(builder.select, (any_row,) * 2, grown, before)))


def _read(builder: LoopBuilder, place: Value) -> tuple[Value, Value]:
    """What is recorded: how far the lowest address is below `LARGEST`, and the end. Both are 0 if nothing is."""
    found = []
    for pointer in _slots(builder, place):
        value = builder.effect(f"llvm.load {pointer.name} : !llvm.ptr -> i64", "i64")
        assert value is not None
        found.append(value)
    return found[0], found[1]


def _write(builder: LoopBuilder, place: Value, values: tuple[Value, ...]) -> None:
    for pointer, value in zip(_slots(builder, place), values, strict=True):
        builder.effect(f"llvm.store {value.name}, {pointer.name} : i64, !llvm.ptr")


def _slots(builder: LoopBuilder, place: Value) -> list[Value]:
    return [builder.address(place, [builder.i64(slot)], "i64") for slot in range(2)]


def _rows(builder: LoopBuilder, write: Write) -> tuple[Tensor, list[Tensor]] | None:
    """The offset at which each row of a scatter begins, and the masks of whole rows.

    None if neighbours in a row do not lie side by side.
    """
    offsets = write.offsets
    if offsets is None or len(offsets.shape) != 2:
        return None
    m, n = offsets.shape
    builder.open()  # what is emitted to find out is dropped
    evaluation, row, column = Evaluation(builder, frozenset(), {}), builder.fresh("i64"), builder.fresh("i64")
    builder.aligned(row, m)
    builder.aligned(column, n)
    along = Point((row, column), 1, n)
    run = run_of_offsets(evaluation, along, offsets)
    whole = run is not None and is_consecutive(run.step, write.unit, write.value.element)
    whole = whole and run is not None and not evaluation.breaks(run)
    masks = []
    for part in conjuncts(write.mask):
        alike = evaluation.run(part, along)
        if alike is not None and alike.step == 0 and not evaluation.breaks(alike):
            masks.append(part)
    builder.close()
    if not whole:
        return None
    of_rows = [Reindexed((m,), tensor, [0, None]) for tensor in (offsets, *masks)]
    return of_rows[0], list(of_rows[1:])


def _extremes(lowering: Lowering, offsets: Tensor, masks: list[Tensor]) -> tuple[Value, Value]:
    """The least and the greatest of the offsets whose masks are all true; `LARGEST` and `SMALLEST` of none."""
    builder = lowering.builder
    (rows,) = offsets.shape
    lanes = chunk(rows, lowering.target.lanes)
    builder.forget_reads()
    limits = [builder.i64(LARGEST), builder.i64(SMALLEST)]
    with builder.loop(builder.i64(0), builder.i64(rows), builder.i64(lanes), limits) as region:
        point = Point((region.induction,), 0 if lanes > 1 else -1, lanes)
        evaluation = Evaluation(builder, frozenset(), {})
        offset = builder.broadcast(evaluation.at(offsets, point), lanes)
        offset = builder.cast("arith.extsi", offset, vector_type("i64", lanes))
        found = []
        for name, limit, carried in zip(("minsi", "maxsi"), limits, region.arguments, strict=True):
            value = offset
            for mask in masks:
                there = builder.broadcast(evaluation.at(mask, point), lanes)
                value = builder.select(there, value, builder.broadcast(limit, lanes))
            if value.is_vector:
                text = f"vector.reduction <{name}>, {value.name} : {value.type} into i64"
                value = builder.pure(text, "i64", (value,))
            found.append(builder.binary(f"arith.{name}", carried, value))
        region.yields = found
    builder.forget_reads()
    return region.results[0], region.results[1]
