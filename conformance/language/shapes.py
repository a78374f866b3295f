"""The shapes on which operations are tested."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Shape:
    """The elements that a case works on, and the other arguments of its operation.

    The tile is the smallest one of Triton's that holds `extents`, with the rest masked off. With `scalar`, `extents`
    has one entry: the number of scalars, which are tested one after the other.
    """

    name: str
    extents: tuple[int, ...]
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Arguments by name. They are substituted in the kernel's source and passed to the oracle."""
    scalar: bool = False

    @property
    def block(self) -> tuple[int, ...]:
        """The shape of the tile."""
        return block_of(self.extents)

    @property
    def count(self) -> int:
        return math.prod(self.extents)

    def __str__(self) -> str:
        return self.name


def block_of(extents: tuple[int, ...]) -> tuple[int, ...]:
    """The smallest tile that Triton has for these extents: each dimension rounded up to a power of two."""
    return tuple(1 << (extent - 1).bit_length() for extent in extents)


def tile(*extents: int, **params: Any) -> Shape:
    """A tile, named after its extents and parameters: ``tile_17x4_axis0``."""
    return Shape(_name(extents, params), extents, params)


def _name(extents: tuple[int, ...], params: Mapping[str, Any]) -> str:
    parts = ["tile_" + "x".join(map(str, extents))]
    for name, value in params.items():
        if isinstance(value, bool):
            parts += [name] if value else []
        elif isinstance(value, tuple):
            parts.append(name + "".join(map(str, value)))
        else:
            parts.append(f"{name}{value}")
    return "_".join(parts)


SCALAR = Shape("scalar", (324,), scalar=True)
PAIRS = tile(324)
"""Each of 18 values combined with each."""
ODD = tile(17, 4)
DENORMALS = Shape("denormals", (200,))
"""Denormal operands and results: some chips flush them in some functions."""
DEEP = tile(2, 1, 3, 2, 4)
ONE = tile(1)

ELEMENTWISE = (SCALAR, PAIRS, ODD, DEEP)
RANKS = (SCALAR, ONE, PAIRS, ODD, tile(1, 64), tile(5, 1), tile(2, 3, 8), tile(4, 1, 2, 8), DEEP)
"""Every rank from 0 to 5, including dimensions of 1."""
WHOLE = Shape("every_value", (1 << 16,))
"""Every value of a type with at most 16 bits."""
