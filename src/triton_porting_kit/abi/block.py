"""The layout of the argument block: where each parameter of a kernel lies in memory.

The offset of each parameter is the next multiple of its own size. The block is aligned to `ALIGNMENT`, and its size is
a multiple of it. Compilers read it, and launchers fill it, by this rule.
"""

from __future__ import annotations

from collections.abc import Iterable

ALIGNMENT = 8
"""The alignment of the block in bytes."""


def offsets(sizes: Iterable[int]) -> tuple[list[int], int]:
    """The offsets of parameters of these sizes, in order, and the end of the last one; in bytes.

    Data that follows, such as the bounds of a kernel in checked mode, begins at the next multiple of its own alignment.
    """
    found, end = [], 0
    for size in sizes:
        start = round_up(end, size)
        found.append(start)
        end = start + size
    return found, end


def round_up(value: int, alignment: int) -> int:
    """The smallest multiple of `alignment` that is at least `value`."""
    return -(-value // alignment) * alignment
