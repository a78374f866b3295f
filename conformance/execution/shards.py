"""Shards: parts of a run for several machines, of about equal duration."""

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
"""Seconds by batch, or by name of checks outside of batches, on the CPU reference. Written by `durations.py`."""

UNKNOWN_SECONDS = 0.5
"""The assumed duration of a unit that was never measured."""


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
        """Parse a shard such as ``2/5``. Raises `ShardError`."""
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
    """The checks of a shard, in their order. Each check belongs to exactly one shard.

    Batches stay together. The longest units are assigned first, each to the shard with the smallest load.
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
    """The unit that is measured and assigned as a whole: the batch of a check, or the check itself."""
    return check.batch or check.name
