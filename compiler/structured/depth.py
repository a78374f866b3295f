"""Keeping recursion shallow where a kernel's unrolled loops make chains of thousands of operations."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

LIMIT = 50
"""Beyond this depth, what a value is made of is looked at before the value."""


class Depth:
    """How deep a recursion over what values are made of is."""

    def __init__(self) -> None:
        self._now = 0

    def deeper(self) -> Depth:
        """A context one step deeper; what it is entered as says whether that is beyond the limit."""
        return self

    def __enter__(self) -> bool:
        self._now += 1
        return self._now > LIMIT

    def __exit__(self, *_: object) -> None:
        self._now -= 1


def made_of(value: Any, operands: Callable[[Any], Iterable[Any]], known: Container[Any]) -> list[Any]:
    """What `value` is made of and is not known yet, the first of a chain first; without `value` itself."""
    found: dict[Any, None] = {}
    pending = list(operands(value))
    while pending:
        current = pending.pop()
        if current not in found and current not in known:
            found[current] = None
            pending += operands(current)
    return list(reversed(found))
