"""Moves a tile whose indices wrap around by a transfer for each part of it that does not: one or two for a tile that is
smaller than what it wraps around in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from triton_porting_kit.compiler.dialect.operations import StructuredAccess
from triton_porting_kit.compiler.structured.affine import Shape

from .addresses import divisor
from .editing import SLT, Editor


@dataclass(frozen=True)
class Part:
    """A part of a tile: the `first` of its indices along each dimension that wraps around, and `end`, the one behind.
    `offset`: how many elements from the base on the tile would begin if it went on around the part as within it.
    """

    offset: Any
    first: dict[int, Any] = field(default_factory=dict)
    end: dict[int, Any] = field(default_factory=dict)


def in_parts(editor: Editor, view: StructuredAccess[Any], shape: Shape, move: Callable[[Part], Any]) -> Any:
    """Have `move` start a transfer for each part of an access. Returns the last one's token."""

    def along(number: int, part: Part) -> Any:
        if number == len(view.wrap_dims):
            return move(part)
        d = view.wrap_dims[number]
        start, size = view.wrap_start[number], divisor(editor, view.wrap_size[number])
        size = editor.i64(
            "arith.maxsi", size, _minus(editor, editor.constant(0), size)
        )  # leaves the same remainders
        extent = editor.constant(shape[d])

        def moved(_: Any, at: Any) -> list[Any]:
            index, length = _unbroken(editor, editor.add(start, at), size)
            end = editor.i64("arith.minsi", editor.add(at, length), extent)
            step = editor.i64("arith.muli", _minus(editor, index, at), view.strides[d])
            own = Part(editor.add(part.offset, step), {**part.first, d: at}, {**part.end, d: end})
            return [along(number + 1, own), end]

        zero = editor.constant(0)
        return editor.loop_while([zero, zero], lambda _, at: editor.compare(SLT, at, extent), moved)[0]

    return along(0, Part(view.offset))


def _unbroken(editor: Editor, index: Any, size: Any) -> tuple[Any, Any]:
    """What an index is modulo a size, with the sign of the dividend, and how many indices from it on lead one after the
    other through memory: up to the end, or, if it is below -size, up to 0.
    """
    i64, one = editor.types.i64, editor.constant(1)
    first = editor.i64("arith.remsi", index, size)
    near = editor.compare(SLT, _minus(editor, editor.constant(0), size), index)
    end = editor.value("arith.select", [near, size, one], i64)
    return first, _minus(editor, end, first)


def _minus(editor: Editor, a: Any, b: Any) -> Any:
    return editor.i64("arith.subi", a, b)
