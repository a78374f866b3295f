"""The kernel line that each line of the loops artefact comes from: a number after ``// @`` at its end.

Normal artefacts do not have these numbers. They are needed when a kernel has crashed, which is then lowered once more
(`compiler.crashes`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.errors import SourceLocation

_MARK = re.compile(r" // @(\d+)$")


class SourceLines:
    """Lets a builder end each line with the location of the operation that it was written for."""

    def __init__(self, builder: LoopBuilder) -> None:
        self._builder = builder
        self._numbers: dict[SourceLocation, int] = {}

    @contextmanager
    def of(self, operation: Operation) -> Iterator[None]:
        """A context in which emitted lines get the source line of `operation`."""
        before, location = self._builder.mark, operation.location
        if location is not None:
            number = self._numbers.setdefault(location, len(self._numbers))
            self._builder.mark = f" // @{number}"
        try:
            yield
        finally:
            self._builder.mark = before

    def lines(self, text: str) -> list[SourceLocation | None]:
        """The location of each line of the emitted text."""
        known = list(self._numbers)
        marks = map(_MARK.search, text.splitlines())
        return [None if mark is None else known[int(mark[1])] for mark in marks]
