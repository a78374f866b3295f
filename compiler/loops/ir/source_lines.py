"""Which line of the kernel each line of the loops artefact comes from: a number at its end, behind ``// @``.

Artefacts go without. The numbers are wanted where a kernel has crashed, which is then lowered once more
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
    """Lets a builder end its lines with the place of the operation that they were written for."""

    def __init__(self, builder: LoopBuilder) -> None:
        self._builder = builder
        self._numbers: dict[SourceLocation, int] = {}

    @contextmanager
    def of(self, operation: Operation) -> Iterator[None]:
        """While this holds, what is written comes from the line of `operation`."""
        before, location = self._builder.mark, operation.location
        if location is not None:
            number = self._numbers.setdefault(location, len(self._numbers))
            self._builder.mark = f" // @{number}"
        try:
            yield
        finally:
            self._builder.mark = before

    def lines(self, text: str) -> list[SourceLocation | None]:
        """The place of each line of what was written."""
        known = list(self._numbers)
        marks = map(_MARK.search, text.splitlines())
        return [None if mark is None else known[int(mark[1])] for mark in marks]
