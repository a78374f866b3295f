"""Shards: the parts of a run on several machines, of about the same length."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from triton_porting_kit import untrusted
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.errors import PortingKitError

DURATIONS = Path(__file__).parent / "durations.json"
"""Seconds by batch, or by name of a check that is in none, on the CPU reference; `durations.py` writes it."""

UNKNOWN_SECONDS = 0.5
"""Of what was never measured."""


class ShardError(PortingKitError):
    """A shard is not ``K/N`` with 1 <= K <= N."""


@dataclass(frozen=True)
class Shard:
    """Part `number`, from 1, of `count`."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """``2/5``. Raises `ShardError`."""
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise ShardError(f"shard {text!r} is not K/N with K from 1 to N, for example 2/5")
        return cls(int(found[1]), int(found[2]))


@functools.cache
def _measured() -> dict[str, float]:
    if not DURATIONS.is_file():
        return {}
    content: dict[str, float] = untrusted.read_json(DURATIONS, untrusted.RESULTS, ShardError, follow=True)
    return content


def share(checks: Sequence[Check], shard: Shard, durations: Mapping[str, float] | None = None) -> list[Check]:
    """The checks that fall to a shard, in their order: each check falls to exactly one.

    Batches stay together. The longest is given first, each to the shard that has least so far.
    """
    seconds = _measured() if durations is None else durations
    units: dict[str, float] = {}
    for check in checks:
        units[unit_of(check)] = seconds.get(unit_of(check), UNKNOWN_SECONDS)
    loads = [0.0] * shard.count
    owner = {}
    for unit in sorted(units, key=lambda unit: (-units[unit], unit)):
        owner[unit] = min(range(shard.count), key=lambda k: (loads[k], k))
        loads[owner[unit]] += units[unit]
    return [check for check in checks if owner[unit_of(check)] == shard.number - 1]


def unit_of(check: Check) -> str:
    """What a check is measured and given with: its batch, or itself."""
    return check.batch or check.name
