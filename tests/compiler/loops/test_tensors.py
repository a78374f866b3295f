"""Tensors that are evaluated where they are consumed: their points, dimensions and places in scratch."""

from __future__ import annotations

import pytest

from triton_porting_kit.compiler.loops.control.control_flow import reads_buffer
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.shapes.rearrange import Half, Joined
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.graph import closure, cost, reads_memory
from triton_porting_kit.compiler.loops.tiles.tensors import (
    Buffer,
    Elementwise,
    Point,
    Range,
    Reindexed,
    Splat,
    Tensor,
    row_major,
    unit_reshape,
)


@pytest.fixture
def builder() -> LoopBuilder:
    return LoopBuilder()


def buffer(builder: LoopBuilder, *shape: int) -> Buffer:
    return Buffer(shape, "f32", builder.fresh("!llvm.ptr", level=0))


def doubled(tensor: Tensor) -> Elementwise:
    def double(builder: LoopBuilder, values: list[Value]) -> Value:
        return builder.binary("arith.addf", values[0], values[0])

    return Elementwise(tensor.shape, tensor.element, [tensor], double)


def at_start(builder: LoopBuilder, rank: int, axis: int, width: int) -> Point:
    return Point((builder.i64(0),) * rank, axis, width)


@pytest.mark.parametrize(
    ("source", "target", "dimensions"),
    [
        ((8,), (8, 1), [0]),
        ((8,), (1, 8), [1]),
        ((8, 1, 4), (8, 4), [0, None, 1]),
        ((1, 1), (), [None, None]),
        ((8, 4), (4, 8), None),
        ((8, 4), (32,), None),
    ],
)
def test_unit_reshape(source: tuple[int, ...], target: tuple[int, ...], dimensions: list[int] | None) -> None:
    assert unit_reshape(source, target) == dimensions


def test_row_major() -> None:
    assert row_major((2, 3, 4)) == [12, 4, 1]
    assert row_major(()) == []


def test_points_follow_dimensions(builder: LoopBuilder) -> None:
    i, j, zero = builder.fresh("i64"), builder.fresh("i64"), builder.i64(0)
    point = Point((i, j), 1, 16)
    assert point.pick([1, 0], zero) == Point((j, i), 0, 16)
    # A tensor that does not follow the lanes' dimension has one element for all of them.
    assert point.pick([0], zero) == Point((i,), -1, 1)
    assert point.pick([None, 1], zero) == Point((zero, j), 1, 16)


def test_values_are_computed_once_per_point(builder: LoopBuilder) -> None:
    tensor = doubled(doubled(buffer(builder, 64)))
    evaluation = Evaluation(builder, frozenset(), {})
    point = at_start(builder, 1, 0, 16)
    assert evaluation.at(tensor, point) is evaluation.at(tensor, point)
    text = "\n".join(builder.text())
    assert text.count("llvm.load") == 1
    assert text.count("arith.addf") == 2


def test_what_is_kept_is_written_when_it_is_evaluated(builder: LoopBuilder) -> None:
    tensor, place = doubled(buffer(builder, 64)), buffer(builder, 64)
    evaluation = Evaluation(builder, frozenset(), {tensor: place})
    evaluation.at(doubled(tensor), at_start(builder, 1, 0, 16))
    assert sum("llvm.store" in line for line in builder.text()) == 1
    tensor.buffer = place
    later = Evaluation(builder, frozenset(), {})
    assert later.at(tensor, at_start(builder, 1, 0, 16)).type == "vector<16xf32>"


def test_lanes_that_are_not_neighbours_are_gathered(builder: LoopBuilder) -> None:
    tensor = Reindexed((8, 16), buffer(builder, 16, 8), [1, 0])
    Evaluation(builder, frozenset(), {}).at(tensor, at_start(builder, 2, 1, 16))
    assert any("masked.gather" in line for line in builder.text())


def test_ranges_count_along_the_lanes(builder: LoopBuilder) -> None:
    value = Evaluation(builder, frozenset(), {}).at(Range(64, 5), at_start(builder, 1, 0, 16))
    assert value.type == "vector<16xi32>"
    single = Evaluation(builder, frozenset(), {}).at(Range(64, 5), at_start(builder, 1, -1, 1))
    assert single.type == "i32"


def test_what_an_evaluation_reads(builder: LoopBuilder) -> None:
    place = buffer(builder, 64)
    tensor = doubled(doubled(place))
    assert set(closure([tensor])) == {tensor, *tensor.operands, place}
    assert cost(tensor, {}) == 3
    assert not reads_memory(tensor)
    assert tensor.depth == 3
    tensor.operands[0].buffer = buffer(builder, 64)
    assert closure([tensor]) == [tensor]
    assert cost(tensor, {}) == 2


def test_reading_a_buffer_elsewhere(builder: LoopBuilder) -> None:
    place = buffer(builder, 16, 16)
    aligned, turned = doubled(place), Reindexed((16, 16), place, [1, 0])
    assert reads_buffer(aligned, place, aligned_only=False)
    assert not reads_buffer(aligned, place, aligned_only=True)
    assert reads_buffer(doubled(turned), place, aligned_only=True)
    assert not reads_buffer(aligned, buffer(builder, 16, 16), aligned_only=False)
    # The same place under another shape is read elsewhere.
    assert reads_buffer(doubled(place.reshaped((256,))), place, aligned_only=True)


def test_joined_and_split_tensors(builder: LoopBuilder) -> None:
    first, second = buffer(builder, 8), buffer(builder, 8)
    joined = Joined(first, second)
    assert joined.shape == (8, 2)
    evaluation = Evaluation(builder, frozenset(), {})
    assert evaluation.at(joined, at_start(builder, 2, 1, 2)).type == "vector<2xf32>"
    assert evaluation.at(joined, at_start(builder, 2, 0, 8)).type == "vector<8xf32>"
    half = Half(joined, 1)
    assert half.shape == (8,)
    assert evaluation.at(half, at_start(builder, 1, 0, 8)).type == "vector<8xf32>"
    assert not joined.joins(0)


def test_buffers_share_and_change_names(builder: LoopBuilder) -> None:
    place = buffer(builder, 4, 8)
    assert not place.shared
    assert place.renamed().pointer == place.pointer
    assert not place.shared
    other = place.reshaped((32,))
    assert place.shared
    assert other.shared
    assert other.strides == [1]


def test_splats_have_no_lanes(builder: LoopBuilder) -> None:
    splat = Splat((4, 8), builder.constant(1.5, "f32"), "f32")
    assert Evaluation(builder, frozenset(), {}).at(splat, at_start(builder, 2, 1, 8)).type == "f32"
