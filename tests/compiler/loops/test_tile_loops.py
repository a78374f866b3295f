"""Loops over tiles: which points they visit."""

from __future__ import annotations

import pytest

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Point, Reindexed, Splat, joins
from triton_porting_kit.compiler.loops.tiles.tile_loops import (
    chunk,
    innermost_axis,
    joined_around,
    joined_shape,
    tile_loop,
)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((), -1), ((1,), -1), ((8,), 0), ((8, 1), 0), ((4, 8), 1), ((2, 1, 1), 0), ((1, 1), -1)],
)
def test_innermost_axis(shape: tuple[int, ...], axis: int) -> None:
    assert innermost_axis(shape) == axis


@pytest.mark.parametrize(
    ("size", "lanes", "width"), [(64, 16, 16), (16, 16, 16), (8, 16, 8), (24, 16, 8), (3, 16, 3), (1, 16, 1)]
)
def test_chunk_divides_the_size(size: int, lanes: int, width: int) -> None:
    assert chunk(size, lanes) == width
    assert size % width == 0


@pytest.mark.parametrize(
    ("shape", "lanes", "loops", "width", "axis"),
    [
        ((64,), 16, 1, 16, 0),
        ((16,), 16, 0, 16, 0),
        ((4, 64), 16, 2, 16, 1),
        ((4, 8), 16, 1, 8, 1),
        ((64, 1), 16, 1, 16, 0),
        ((4, 2, 32), 16, 3, 16, 2),
        ((1, 1), 16, 0, 1, -1),
        ((), 16, 0, 1, -1),
        ((4, 64), 1, 2, 1, -1),
    ],
)
def test_loop_nest_of_a_tile(shape: tuple[int, ...], lanes: int, loops: int, width: int, axis: int) -> None:
    builder = LoopBuilder()
    points: list[Point] = []
    tile_loop(builder, shape, lanes, points.append)
    (point,) = points
    assert (point.width, point.axis) == (width, axis)
    assert len(point.indices) == len(shape)
    assert sum("scf.for" in line for line in builder.text()) == loops


def test_few_iterations_are_written_out() -> None:
    for size, points in ((64, 4), (128, 1)):
        builder = LoopBuilder()
        found: list[Point] = []
        tile_loop(builder, (8, size), 16, found.append, written_out=4)
        assert len(found) == points
        assert sum("scf.for" in line for line in builder.text()) == (1 if points > 1 else 2)
    builder = LoopBuilder()
    first, last = builder.fresh("i64", level=0), builder.fresh("i64", level=0)
    tile_loop(builder, (32,), 16, lambda point: None, bounds={0: (first, last)}, written_out=4)
    assert any("scf.for" in line for line in builder.text())


def test_bounds_are_rounded_to_whole_chunks_along_the_lanes() -> None:
    builder = LoopBuilder()
    low, high = builder.fresh("i64", level=0), builder.fresh("i64", level=0)
    tile_loop(builder, (8, 64), 16, lambda point: None, bounds={0: (low, high), 1: (low, high)})
    text = "\n".join(builder.text())
    assert "arith.andi" in text
    rows = next(line for line in builder.text() if "scf.for" in line)
    assert f"{low.name} to {high.name}" in rows


def test_joined_dimensions() -> None:
    assert joined_shape((2, 4, 8), lambda d: True) == (1, 1, 64)
    assert joined_shape((2, 4, 8), lambda d: d == 0) == (1, 8, 8)
    assert joined_shape((2, 4, 8), lambda d: d == 1) == (2, 1, 32)
    assert joined_shape((), lambda d: True) == ()
    # Neighbours only: the dimensions on both sides of the axis are not.
    assert joined_around((2, 4, 8, 16), 1, lambda d: True) == (2, 1, 128)
    assert joined_around((2, 4, 8, 16), 3, lambda d: True) == (1, 1, 64)
    assert joined_around((2, 4), 0, lambda d: True) == (4,)


def test_what_joins() -> None:
    builder = LoopBuilder()
    buffer = Buffer((4, 8, 2), "f32", builder.fresh("!llvm.ptr", level=0))
    assert joins([buffer, Splat((4, 8, 2), builder.constant(1, "f32"), "f32")], 0)
    turned = Reindexed((8, 4, 2), buffer, [1, 0, 2])
    assert not joins([turned], 0)
    assert not joins([turned], 1)
    rows = Reindexed((4, 8, 2), Buffer((4,), "f32", buffer.pointer), [0])
    assert not joins([rows], 0)
    assert joins([rows], 1)
    moved = Reindexed((2, 4, 8), buffer, [1, 2, 0])
    assert joins([moved], 1)
    assert not joins([moved], 0)
