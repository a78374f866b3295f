"""Measured durations, from which shards are computed.

``python -m triton_porting_kit.conformance.execution.durations DIR...`` reads the records of runs and
writes ``durations.json`` beside this file.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.execution.runfolder import records_in
from triton_porting_kit.conformance.execution.shards import DURATIONS, unit_of
from triton_porting_kit.conformance.record import Record

_SMALLEST = 0.01


def measured(checks: Iterable[Check], records: Iterable[Record]) -> dict[str, float]:
    """Seconds by unit of work, for units whose checks all have a record."""
    seconds = {record.name: record.seconds for record in records}
    found: defaultdict[str, float] = defaultdict(float)
    incomplete = set()
    for check in checks:
        if check.name in seconds:
            found[unit_of(check)] += seconds[check.name]
        else:
            incomplete.add(unit_of(check))
    return {unit: max(round(found[unit], 2), _SMALLEST) for unit in sorted(found) if unit not in incomplete}


def main(folders: Iterable[str]) -> None:
    """Write the durations measured by the runs in some folders."""
    from triton_porting_kit.conformance import catalogue

    records = [record for folder in folders for record in records_in(Path(folder)).values()]
    found = measured(catalogue.checks(), records)
    DURATIONS.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    print(f"{len(found)} durations, {sum(found.values()):.0f} seconds in total")


if __name__ == "__main__":
    main(sys.argv[1:])
