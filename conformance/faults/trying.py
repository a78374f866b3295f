"""Tries one fault: runs the checks that must catch it under the suite's supervisor."""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.execution.settings import Settings
from triton_porting_kit.conformance.execution.supervisor import Supervisor
from triton_porting_kit.conformance.faults.fault import Fault
from triton_porting_kit.conformance.faults.plugin import GPU_NAME, GPU_TARGET, NAME, environment
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.stages import IMPORTED
from triton_porting_kit.conformance.status import BAD, Status


@dataclass(frozen=True)
class Trial:
    """The result of trying one fault."""

    fault: Fault
    records: Mapping[str, Record]
    seconds: float
    checks: Mapping[str, tuple[str, ...]]
    """By pattern, the names of the checks that must catch it."""

    def noticed(self, name: str) -> bool:
        """Whether a check failed because of the fault, and not because of an error of the suite or of the test
        backend."""
        record = self.records.get(name)
        if record is None or record.status not in BAD or record.status is Status.HARNESS_ERROR:
            return False
        if record.stage == IMPORTED:
            return False
        return not (self.fault.compiles and record.stage.startswith("compiled"))

    @property
    def missed(self) -> list[str]:
        """The patterns of which no check caught the fault."""
        return [
            pattern for pattern, names in self.checks.items() if not any(self.noticed(name) for name in names)
        ]

    @property
    def caught(self) -> bool:
        return bool(self.checks) and not self.missed


def chosen(patterns: Sequence[str], checks: Sequence[Check]) -> dict[str, tuple[str, ...]]:
    """The names of the checks that match each pattern."""
    names = [check.name for check in checks]
    return {pattern: tuple(fnmatch.filter(names, pattern)) for pattern in patterns}


def try_fault(fault: Fault, checks: Sequence[Check], folder: Path) -> Trial:
    """Run the checks that must catch a fault. `folder`: the folder in which the test backend is installed."""
    start = time.monotonic()
    found = chosen(fault.caught_by, checks)
    wanted = {name for names in found.values() for name in names}
    records = run_checks(fault, [check for check in checks if check.name in wanted], folder)
    return Trial(fault, records, time.monotonic() - start, found)


def run_checks(fault: Fault, checks: Sequence[Check], folder: Path, profile: str = "") -> dict[str, Record]:
    """Run checks on the test backend with a fault and a profile, which is a path. Returns their records by name.

    Changes the environment of this process temporarily.
    """
    limited = [replace(check, seconds=min(check.seconds, fault.seconds)) for check in checks]
    scratch = folder / "runs" / fault.name
    scratch.mkdir(
        mode=0o700, parents=True, exist_ok=True
    )  # also holds the compile cache, separate for each fault
    with _environment(environment(folder, fault.name)):
        binary = fault.part == "binary"
        name, target = (GPU_NAME, GPU_TARGET) if binary else (NAME, "")
        with Supervisor(Settings(name, profile, target=target, scratch=str(scratch))) as supervisor:
            return {record.name: record for record in supervisor.run(limited)}


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
