"""Moves a tile of more dimensions than a transfer has by a loop of transfers: one for each index along the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.chips.description import Engine
from triton_porting_kit.compiler.structured.affine import Shape

from .editing import SLE, SLT, Editor, byte_size


@dataclass(frozen=True)
class Rows:
    """What one transfer of a tile says: sizes, strides of the side that is not contiguous, and bounds by name. `there`
    and `here`: where it begins on that side and on the contiguous one, in elements behind the tile's beginning; None:
    with the tile.
    """

    shape: Shape
    strides: Sequence[Any]
    bounds: dict[str, Any]
    there: Any | None = None
    here: Any | None = None


def _outer(shape: Shape, engine: Engine) -> int:
    """How many of the first dimensions a transfer of the engine leaves to a loop."""
    return max(0, len(shape) - engine.dimensions)


def pays(shape: Shape, element: str, engine: Engine, gathering: Engine | None) -> bool:
    """Whether transfers of the engine can move a tile, and are not slower than gathers of the engine `gathering`."""
    row = math.prod(shape[_outer(shape, engine) :])
    if row == math.prod(shape):
        return True
    aligned = row * byte_size(element) % engine.alignment == 0
    return aligned and (gathering is None or row * gathering.gather_cycles >= engine.start_cycles)


def in_rows(editor: Editor, whole: Rows, engine: Engine, move: Callable[[Rows], Any]) -> Any:
    """Have `move` start the transfers of a tile. Returns the last one's token."""
    split = _outer(whole.shape, engine)
    if not split:
        return move(whole)
    sizes, shape = whole.shape[:split], whole.shape[split:]

    def moved(_: Any, number: Any) -> list[Any]:
        places = _places(editor, number, sizes)
        there = None
        for place, stride in zip(places, whole.strides[:split], strict=True):
            step = editor.i64("arith.muli", place, stride)
            there = step if there is None else editor.add(there, step)
        here = editor.i64("arith.muli", number, editor.constant(math.prod(shape)))
        bounds = _bounds_at(editor, whole.bounds, places)
        token = move(Rows(shape, whole.strides[split:], bounds, there, here))
        return [token, editor.add(number, editor.constant(1))]

    zero, count = editor.constant(0), editor.constant(math.prod(sizes))
    return editor.loop_while([zero, zero], lambda _, number: editor.compare(SLT, number, count), moved)[0]


def _places(editor: Editor, number: Any, sizes: Shape) -> list[Any]:
    """The index of row `number` along each dimension."""
    places = []
    for d, size in enumerate(sizes):
        behind = math.prod(sizes[d + 1 :])
        place = editor.i64("arith.divsi", number, editor.constant(behind)) if behind > 1 else number
        places.append(editor.i64("arith.remsi", place, editor.constant(size)) if d else place)
    return places


def _bounds_at(editor: Editor, bounds: dict[str, Any], places: Sequence[Any]) -> dict[str, Any]:
    """The bounds within a row, which are empty if it lies outside."""
    if not bounds.get("low"):
        return bounds
    low, high = list(bounds["low"]), list(bounds["high"])
    split = len(places)
    end = high[split]
    for place, first, last in zip(places, low, high, strict=False):
        for outside in (editor.compare(SLT, place, first), editor.compare(SLE, last, place)):
            end = editor.value("arith.select", [outside, low[split], end], editor.types.i64)
    return {**bounds, "low": low[split:], "high": [end, *high[split + 1 :]]}
