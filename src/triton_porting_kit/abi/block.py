"""The argument block: where each parameter of a kernel lies in memory.

Every parameter lies at the next multiple of its own size. The block is aligned to `ALIGNMENT`, and its size is a
multiple of it. Compilers read it by this rule and launchers fill it by the same.
"""

from __future__ import annotations

from collections.abc import Iterable

ALIGNMENT = 8
"""Bytes."""


def offsets(sizes: Iterable[int]) -> tuple[list[int], int]:
    """Where parameters of these sizes lie, in order, and where the last of them ends; in bytes.

    What comes behind them, such as the bounds of a kernel that checks its accesses, begins at the next multiple of its
    own alignment.
    """
    found, end = [], 0
    for size in sizes:
        start = round_up(end, size)
        found.append(start)
        end = start + size
    return found, end


def round_up(value: int, alignment: int) -> int:
    """The next multiple of `alignment`, `value` itself included."""
    return -(-value // alignment) * alignment
