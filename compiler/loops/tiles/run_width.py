"""How many lanes a loop takes at a time where its tensors are runs: several vectors share what one lane tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.explicit import Gather, run_of_offsets
from triton_porting_kit.compiler.loops.tiles.tensors import Point, Tensor, closure
from triton_porting_kit.compiler.loops.tiles.tile_loops import chunk, innermost_axis

VECTORS = 4
"""Most vectors at a time: the values of a simple loop then still fit registers."""

SIMPLE = 40
"""A loop is simple if its elements take at most so many simple operations, not counted what all lanes share."""


def run_width(
    builder: LoopBuilder, shape: Sequence[int], inputs: Sequence[Tensor], lanes: int, *, scalars: bool
) -> int:
    """The lanes of one step of a loop over `shape` that evaluates `inputs`: `lanes`, or a multiple where all of them
    are in runs. `scalars`: the loop's body has use for scalars only, if all `inputs` are equal in a chunk.
    """
    axis = innermost_axis(shape)
    parts = closure(inputs)
    others = [length for d, length in enumerate(shape) if d != axis and length > 1]
    if axis < 0 or shape[axis] <= lanes or others or not any(part.divides for part in parts):
        return lanes
    size = shape[axis]
    widths = [size] if scalars else []
    widths += [lanes << step for step in reversed(range(1, VECTORS.bit_length()))]
    for width in widths:
        if size % width == 0 and _is_run(
            builder, shape, axis, width, inputs, parts, scalars and width == size
        ):
            return width
    return lanes


def lanes_in_run(
    builder: LoopBuilder, shape: Sequence[int], offsets: Tensor, lanes: int, suits: Callable[[int], bool]
) -> int:
    """The lanes of one step of a loop over `shape` if the offsets in them are a run whose step `suits`; else 1."""
    axis = innermost_axis(shape)
    width = chunk(shape[axis], lanes) if axis >= 0 else 1
    if width == 1:
        return 1
    builder.open()  # what is emitted to find out is dropped
    run = run_of_offsets(
        Evaluation(builder, frozenset(), {}), _some_point(builder, shape, axis, width), offsets
    )
    builder.close()
    return width if run is not None and suits(run.step) else 1


def _some_point(builder: LoopBuilder, shape: Sequence[int], axis: int, width: int) -> Point:
    index = builder.fresh("i64")
    builder.aligned(index, width)
    zero = builder.i64(0)
    return Point(tuple(index if d == axis else zero for d in range(len(shape))), axis, width)


def _is_run(
    builder: LoopBuilder,
    shape: Sequence[int],
    axis: int,
    width: int,
    inputs: Iterable[Tensor],
    parts: Iterable[Tensor],
    uniform: bool,
) -> bool:
    """Whether everything that divides is a run without breaks in chunks of `width`; `uniform`: and equal there."""
    builder.open()  # what is emitted to find out is dropped
    point = _some_point(builder, shape, axis, width)
    evaluation = Evaluation(builder, frozenset(), {})
    found, cost = True, 0
    for part in parts:
        if part.shape != tuple(shape):
            found = found and not part.divides
            cost += part.own_cost
            continue
        run = evaluation.run(part, point)
        if run is None or run.step or evaluation.breaks(run):
            cost += part.own_cost
        if isinstance(part, Gather):
            run = run_of_offsets(evaluation, point, part.offsets)
        elif not part.divides or part.element == "i1" or not part.element.startswith("i"):
            continue  # what is loaded at such places need be no run
        found = found and run is not None and not evaluation.breaks(run)
    found = found and cost <= SIMPLE
    for tensor in inputs if uniform else ():
        run = evaluation.run(tensor, point)
        found = found and run is not None and run.step == 0 and not evaluation.breaks(run)
    builder.close()
    return found
