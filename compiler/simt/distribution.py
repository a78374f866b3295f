"""Loops over points of a tile, strided by work-items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from triton_porting_kit.compiler.simt.accesses import Survey, inner, points
from triton_porting_kit.compiler.simt.writer import Writer


class Distribution:
    """Distributes loop nests over `items` work-items, a power of two. `item` is the number of this one, an i64."""

    def __init__(self, survey: Survey, writer: Writer, item: Any, items: int) -> None:
        self._survey = survey
        self._writer = writer
        self._item = item
        self._items = items

    def spread(self, loop: Any) -> None:
        """Distribute a loop over points, and those directly in it, so that each point has one work-item.

        Neighbours along the innermost dimension get neighbouring work-items, which then access memory side by side.
        """
        self._spread(loop, self._items, 1)

    def _spread(self, loop: Any, items: int, stride: int) -> None:
        """Give a loop and those in it `items` work-items, whose numbers differ by `stride`."""
        nested = list(_nested(loop)) if not self._acts(loop) else []
        within = min(items, max((_power(_all_points(each)) for each in nested), default=1))
        if within > 1:
            for each in nested:
                self._spread(each, within, stride)
        share = items // within
        if share > 1:
            self._stride(loop, share, stride * within)

    def _stride(self, loop: Any, share: int, stride: int) -> None:
        """Let each of `share` work-items run its iterations of a loop."""
        writer = self._writer.before(loop)
        start, step = loop.operands[0], loop.operands[2]
        position = self._item
        if stride > 1:
            position = writer.binary("arith.divui", position, writer.integer(stride))
        if share * stride < self._items:
            position = writer.binary("arith.remui", position, writer.integer(share))
        loop.operands[0] = writer.binary("arith.addi", start, writer.binary("arith.muli", position, step))
        loop.operands[2] = writer.binary("arith.muli", step, writer.integer(share))

    def _acts(self, loop: Any) -> bool:
        """Whether a loop does more than to run the loops over points that are directly in it."""
        for operation in inner(loop):
            if points(operation):
                continue
            found = self._survey.of(operation)
            if (found.once or found.writes) and (not found.spreads or self._acts(operation)):
                return True
        return False


def _nested(operation: Any) -> Iterator[Any]:
    """The loops over points directly in an operation, or in its conditions."""
    for each in inner(operation):
        if points(each):
            yield each
        elif each.name == "scf.if":
            yield from _nested(each)


def _all_points(loop: Any) -> int:
    """The points of a loop and those directly in it."""
    return points(loop) * max(map(_all_points, _nested(loop)), default=1)


def _power(count: int) -> int:
    """The smallest power of two that is not less than a count."""
    return 1 << (count - 1).bit_length()
