"""A process that runs checks on the test backend. Triton has chosen it by its environment; see `plugin`.

Usage: ``python -m triton_porting_kit.conformance.faults.worker RECORDS``, with the names of checks on standard input,
one a line. Writes a record of each to the file RECORDS, one a line, as checks end.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.batches import try_checks
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.faults.plugin import NAME
from triton_porting_kit.conformance.profile import Profile
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.sessions import open_session
from triton_porting_kit.conformance.stages import IMPORTED
from triton_porting_kit.conformance.trial import error_evidence

SCRATCH = "TPK_FAULT_SCRATCH"


def main() -> None:
    """See the module."""
    names = sys.stdin.read().split("\n")
    wanted = set(filter(None, names))
    levels = [level for level in catalogue.MODULES if any(name.startswith(f"{level}/") for name in wanted)]
    checks = [check for check in catalogue.checks(levels) if check.name in wanted]
    with Path(sys.argv[1]).open("a") as file:
        file.write("\n")  # the suite and Triton have been imported: what goes wrong now is the backend's
        file.flush()

        def write(record: Record) -> None:
            file.write(json.dumps(record.to_json()) + "\n")
            file.flush()

        run(checks, write)


def run(checks: list[Check], write: Callable[[Record], None]) -> None:
    """Run checks. Where the backend cannot even be activated, that is each check's result."""
    try:
        session = open_session(NAME, Profile(), scratch=os.environ.get(SCRATCH, ""))
    except Exception as error:
        evidence = {**error_evidence(error), "kind": "error", "stage": IMPORTED}
        for check in checks:
            write(Record.of(check, [evidence], 0.0, 0, None))
        return
    for record in try_checks(checks, session):
        write(record)


if __name__ == "__main__":
    main()
