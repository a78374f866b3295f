"""Lines of kernels, for errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from triton_porting_kit.compiler.locations import call_sites


class Sites:
    """Numbers operations, and knows the lines that they come from."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._texts = [""]

    def number(self, operation: Any) -> int:
        """The number of an operation of an interpreted kernel."""
        found = self._numbers.get(operation)
        if found is None:
            found = self._numbers[operation] = len(self._texts)
            self._texts.append(where(operation))
        return found

    def text(self, number: int) -> str:
        """' at' the line, and the lines that called it; ' by a copy' for what is no operation."""
        return f" at {self._texts[number]}" if number else " by a copy of the host's"


def where(operation: Any) -> str:
    """The lines of an operation: the innermost one, and the lines that call it."""
    return ", called at ".join(
        f"{Path(place.file).name}:{place.line}" for place in call_sites(operation.handle.location)
    )
