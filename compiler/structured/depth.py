"""Bounded recursion for kernels whose unrolled loops make chains of thousands of operations."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

LIMIT = 50
"""Beyond this depth, the operands of a value are analysed before the value."""


class Depth:
    """The current depth of a recursion over operands."""

    def __init__(self) -> None:
        self._now = 0

    def deeper(self) -> Depth:
        """A context one step deeper. Entering it returns whether the depth is beyond the limit."""
        return self

    def __enter__(self) -> bool:
        self._now += 1
        return self._now > LIMIT

    def __exit__(self, *_: object) -> None:
        self._now -= 1


def made_of(value: Any, operands: Callable[[Any], Iterable[Any]], known: Container[Any]) -> list[Any]:
    """The transitive operands of `value` that are not in `known`, each after its own operands."""
    found: dict[Any, None] = {}
    pending = list(operands(value))
    while pending:
        current = pending.pop()
        if current not in found and current not in known:
            found[current] = None
            pending += operands(current)
    return list(reversed(found))
