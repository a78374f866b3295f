"""The copies of a buffer that take turns in a loop: the loop carries their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .editing import EQ, Editor


@dataclass(frozen=True)
class Ring:
    """The numbers of `count` copies, which a loop carries: that of this iteration's, and of the last one's, if more
    than two take turns. `rotated`: the loop begins count - 1 iterations early. The numbers are multiples of `unit`,
    which is the bytes of a copy if they are the same of all buffers: offsets need no multiplication then.
    """

    count: int
    rotated: bool
    unit: int

    @property
    def first(self) -> list[int]:
        """The values that the loop begins with."""
        number = 1 if self.rotated else 0
        found = [number] if self.count == 2 else [number, (number - 1) % self.count]
        return [each * self.unit for each in found]

    def around(self, editor: Editor, carried: Iterator[Any]) -> tuple[Any, Any, list[Any]]:
        """The number of this iteration's copy, of the last one's, and the values that the loop goes on with."""
        i64, number, one = editor.types.i64, next(carried), editor.constant(self.unit)
        if self.count == 2:
            other = editor.value("arith.subi", [one, number], i64)
            return number, other, [other]
        before, last = next(carried), editor.constant((self.count - 1) * self.unit)
        up = editor.value("arith.addi", [number, one], i64)
        ends = editor.compare(EQ, number, last)
        following = editor.value("arith.select", [ends, editor.constant(0), up], i64)
        return number, before, [following, number]
