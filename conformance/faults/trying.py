"""Trying one fault: its checks in a process of their own, which may crash or hang."""

from __future__ import annotations

import fnmatch
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.faults import plugin
from triton_porting_kit.conformance.faults.fault import Fault
from triton_porting_kit.conformance.faults.worker import SCRATCH
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.status import BAD, Status
from triton_porting_kit.errors import PortingKitError

_POLL_SECONDS = 0.02
_START_SECONDS = 60.0
"""For a worker to import everything."""
_WORKERS = 4
"""That one fault may use up."""


class FaultError(PortingKitError):
    """The self-test itself cannot go on."""


@dataclass(frozen=True)
class Trial:
    """What came of one fault."""

    fault: Fault
    records: Mapping[str, Record]
    seconds: float
    checks: Mapping[str, tuple[str, ...]]
    """By pattern, the names of the checks that should have noticed."""

    def noticed(self, name: str) -> bool:
        """Whether a check failed because of the fault, and not of the suite or of an absurd rewriting."""
        record = self.records.get(name)
        if record is None or record.status not in BAD or record.status is Status.HARNESS_ERROR:
            return False
        return not (self.fault.compiles and record.stage.startswith("compiled"))

    @property
    def missed(self) -> list[str]:
        """The patterns none of whose checks noticed."""
        return [
            pattern for pattern, names in self.checks.items() if not any(self.noticed(name) for name in names)
        ]

    @property
    def caught(self) -> bool:
        return bool(self.checks) and not self.missed


def chosen(patterns: Sequence[str], checks: Sequence[Check]) -> dict[str, tuple[str, ...]]:
    """By pattern, the names of checks that it matches."""
    names = [check.name for check in checks]
    return {pattern: tuple(fnmatch.filter(names, pattern)) for pattern in patterns}


def try_fault(fault: Fault, checks: Sequence[Check], folder: Path) -> Trial:
    """Run the checks that must notice a fault. `folder`: where the test backend is installed."""
    start = time.monotonic()
    found = chosen(fault.caught_by, checks)
    wanted = {name for names in found.values() for name in names}
    records = run_checks(fault, [check for check in checks if check.name in wanted], folder)
    return Trial(fault, records, time.monotonic() - start, found)


def run_checks(fault: Fault, checks: Sequence[Check], folder: Path) -> dict[str, Record]:
    """The records of checks on the test backend with a fault. Where a worker dies, another does the rest."""
    records: dict[str, Record] = {}
    waiting = list(checks)
    for _ in range(_WORKERS):
        if not waiting:
            break
        found, death = _work(fault, waiting, folder)
        records |= found
        waiting = [check for check in waiting if check.name not in records]
        if waiting and death:
            culprit = waiting[0]
            records[culprit.name] = Record.of(culprit, [death], 0.0, 0, None)
            waiting = [
                check for check in waiting[1:] if not check.batch or check.batch != culprit.batch
            ]  # its batch was in one kernel
    return records


def _work(
    fault: Fault, checks: Sequence[Check], folder: Path
) -> tuple[dict[str, Record], dict[str, Any] | None]:
    """What one worker made of checks, and how it died where it did."""
    environment = dict(plugin.environment(folder, fault.name))
    own = Path(environment["TRITON_CACHE_DIR"]).parent.parent / "work" / fault.name
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    file, output = own / "records.jsonl", own / "output"
    file.write_text("")
    environment[SCRATCH] = str(own)
    with output.open("wb") as sink:
        worker = subprocess.Popen(
            [sys.executable, "-m", "triton_porting_kit.conformance.faults.worker", str(file)],
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        assert worker.stdin is not None
        try:
            worker.stdin.write("\n".join(check.name for check in checks).encode())
            worker.stdin.close()
        except BrokenPipeError:
            pass
        timeout = _watch(worker, file, fault.seconds)
    said = output.read_bytes()[-2000:].decode(errors="replace")
    lines = file.read_text().splitlines(keepends=True)
    if not lines:
        raise FaultError(f"the worker of fault {fault.name} ended before it could run a check: {said}")
    records = [Record.from_json(json.loads(line)) for line in lines[1:] if line.endswith("\n")]
    by_name = {record.name: record for record in records}
    if len(by_name) == len(checks):
        return by_name, None
    return by_name, _death(worker, timeout, said)


def _watch(worker: subprocess.Popen[bytes], file: Path, seconds: float) -> float | None:
    """Wait for a worker; end it when no check ends for too long. Returns the limit that it broke."""
    size, limit = 0, _START_SECONDS
    deadline = time.monotonic() + limit
    while worker.poll() is None:
        time.sleep(_POLL_SECONDS)
        if file.stat().st_size > size:
            size, limit = file.stat().st_size, seconds
            deadline = time.monotonic() + limit
        elif time.monotonic() > deadline:
            worker.kill()
            worker.wait()
            return limit
    return None


def _death(worker: subprocess.Popen[bytes], timeout: float | None, said: str) -> dict[str, Any]:
    """The evidence of a worker's end."""
    if timeout is not None:
        return {
            "kind": "process",
            "stage": "launched",
            "timeout": timeout,
            "message": f"the worker was ended: no check had ended for {timeout:g} s",
        }
    code = worker.returncode
    how = f"signal {-code}" if code < 0 else f"exit status {code}"
    key = "signal" if code < 0 else "exit"
    return {
        "kind": "process",
        "stage": "launched",
        key: abs(code),
        "message": f"the worker ended with {how}: {said}",
    }
