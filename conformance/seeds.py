"""Seeds of the checks' random generators."""

from __future__ import annotations

import zlib


def seed_of(seed: int, check: str) -> int:
    """The seed of a check, by its name, in a run with `seed`: the same whatever else is run."""
    return zlib.crc32(f"{seed}:{check}".encode())
