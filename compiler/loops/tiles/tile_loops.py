"""Loops over the points of a tile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.tiles.tensors import Point

Line: TypeAlias = Callable[[Point, Value, Value], None]
"""Emits a loop along the lanes' dimension. Takes its first point, the first index, and the index after the last."""


@contextmanager
def in_order(builder: LoopBuilder) -> Iterator[None]:
    """Loops over points that are written inside have iterations that depend on earlier ones."""
    before, builder.marks_points = builder.marks_points, False
    yield
    builder.marks_points = before


def innermost_axis(shape: Sequence[int]) -> int:
    """The last dimension of more than one element; -1 for a tile of one element."""
    return max((d for d, size in enumerate(shape) if size > 1), default=-1)


def chunk(size: int, lanes: int) -> int:
    """Lanes of one step along a dimension of `size` elements. Sizes above `lanes` are powers of two."""
    if size <= lanes:
        return size
    while size % lanes:
        lanes //= 2
    return lanes


def joined_shape(shape: Sequence[int], joins: Callable[[int], bool]) -> tuple[int, ...]:
    """`shape` with dimensions d and d + 1 joined into d + 1 wherever ``joins(d)`` allows it.

    Loops over the result visit the same elements in fewer and longer loops. See `Tensor.joins`.
    """
    sizes = list(shape)
    for d in range(len(sizes) - 1):
        if sizes[d] > 1 and joins(d):
            sizes[d], sizes[d + 1] = 1, sizes[d] * sizes[d + 1]
    return tuple(sizes)


def joined_around(shape: Sequence[int], axis: int, joins: Callable[[int], bool]) -> tuple[int, ...]:
    """The dimensions of `shape` other than `axis`, with neighbours joined where `joins` allows it."""
    kept = [*shape[:axis], *shape[axis + 1 :]]
    return joined_shape(kept, lambda d: d + 1 != axis and joins(d if d < axis else d + 1))


def tile_loop(
    builder: LoopBuilder,
    shape: Sequence[int],
    lanes: int,
    body: Callable[[Point], None],
    *,
    axis: int | None = None,
    bounds: dict[int, tuple[Value, Value]] | None = None,
    line: Line | None = None,
    written_out: int = 1,
    in_order: bool = False,
) -> None:
    """Emit loops that call `body` at every point of the tile, `lanes` elements along `axis` at a time.

    `bounds` may restrict a dimension to indices [first, last); along `axis`, whole chunks are visited. `line`, if
    given, emits the loop along `axis`. If that loop has at most `written_out` iterations, it is unrolled. The
    points are visited one after another if they must be `in_order`, or if `body` has loops over points itself.
    """
    axis = innermost_axis(shape) if axis is None else axis
    width = chunk(shape[axis], lanes) if axis >= 0 else 1
    order = [d for d in range(len(shape)) if d != axis] + ([axis] if axis >= 0 else [])
    indices: list[Value] = [builder.i64(0)] * len(shape)

    def nest(position: int) -> None:
        if position == len(order):
            body(Point(tuple(indices), axis if width > 1 else -1, width))
            return
        dimension = order[position]
        step = width if dimension == axis else 1
        if shape[dimension] == step:
            nest(position + 1)
            return
        bounded = bounds is not None and dimension in bounds
        if dimension == axis and not bounded and line is None and shape[dimension] <= written_out * step:
            for index in range(0, shape[dimension], step):
                indices[dimension] = builder.i64(index)
                nest(position + 1)
            indices[dimension] = builder.i64(0)
            return
        first, last = builder.i64(0), builder.i64(shape[dimension])
        if bounds and dimension in bounds:
            first, last = bounds[dimension]
            if step > 1:
                first = rounded_down(builder, first, step)
        if dimension == axis and line is not None:
            line(Point(tuple(indices), axis if width > 1 else -1, width), first, last)
            return
        points = 0 if in_order else shape[dimension] // step
        with builder.loop(first, last, builder.i64(step), points=points) as region:
            indices[dimension] = region.induction
            nest(position + 1)
            indices[dimension] = builder.i64(0)

    nest(0)


def rounded_down(builder: LoopBuilder, value: Value, step: int) -> Value:
    """The largest multiple of `step` that is at most `value`, which must not be negative."""
    if value.constant == 0 or step == 1:
        return value
    if step & (step - 1) == 0:
        return builder.binary("arith.andi", value, builder.i64(-step))
    return builder.sub(value, builder.binary("arith.remui", value, builder.i64(step)))
