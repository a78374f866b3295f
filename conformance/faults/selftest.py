"""The self-test: every fault on the checks that must notice it, and those checks without a fault."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.faults.fault import PARTS, Fault
from triton_porting_kit.conformance.faults.plugin import installed
from triton_porting_kit.conformance.faults.table import CLEAN_FAULT, FAULTS
from triton_porting_kit.conformance.faults.trying import Trial, run_checks, try_fault
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.status import BAD

DEMANDED = 0.97
"""The part of the faults that must be caught."""

Report = Callable[[str], None]


@dataclass
class SelfTest:
    """What came of the self-test."""

    trials: list[Trial] = field(default_factory=list)
    clean: dict[str, Record] = field(default_factory=dict)
    """The checks of all these faults on the backend without one."""

    @property
    def rate(self) -> float:
        """The part of the faults that was caught."""
        return sum(trial.caught for trial in self.trials) / len(self.trials) if self.trials else 0.0

    @property
    def false_alarms(self) -> list[Record]:
        """Checks that fail where nothing is wrong."""
        return [record for record in self.clean.values() if record.status in BAD]

    @property
    def passed(self) -> bool:
        return bool(self.clean) and self.rate >= DEMANDED and not self.false_alarms

    def summary(self) -> str:
        """A table by part, what was missed, and the verdict."""
        lines = [f"{'part':<10} {'faults':>6} {'caught':>6}"]
        for part in PARTS:
            trials = [trial for trial in self.trials if trial.fault.part == part]
            if trials:
                lines.append(f"{part:<10} {len(trials):>6} {sum(t.caught for t in trials):>6}")
        for trial in self.trials:
            if not trial.caught:
                lines.append(f"not caught: {trial.fault.name} ({trial.fault.sentence})")
                lines += [f"    missed by {pattern}" for pattern in trial.missed]
        for record in self.false_alarms:
            lines.append(f"fails without a fault: {record.name}: {record.status}: {record.message[:300]}")
        caught = sum(trial.caught for trial in self.trials)
        lines.append(
            f"{caught} of {len(self.trials)} faults are caught: {100 * self.rate:.1f}% ({100 * DEMANDED:.0f}% are "
            f"demanded); of {len(self.clean)} checks, {len(self.false_alarms)} fail without a fault"
        )
        return "\n".join(lines)


def run_self_test(select: str = "*", jobs: int = 1, report: Report = print) -> SelfTest:
    """Try the faults whose names match the pattern `select`, `jobs` at a time. `report` is given a line for each.

    Raises ValueError where no fault matches.
    """
    faults = [fault for fault in FAULTS if fnmatch.fnmatchcase(fault.name, select)]
    if not faults:
        raise ValueError(f"no fault matches {select!r}; the names are {', '.join(f.name for f in FAULTS)}")
    checks = list(catalogue.checks())
    result = SelfTest()
    with installed() as folder, ThreadPoolExecutor(jobs) as pool:
        shares = [pool.submit(run_checks, CLEAN_FAULT, share, folder) for share in _shares(faults, checks, jobs)]
        trials = [pool.submit(_tried, fault, checks, folder, report) for fault in faults]
        result.trials = [trial.result() for trial in trials]
        for share in shares:
            result.clean |= share.result()
    return result


def _tried(fault: Fault, checks: Sequence[Check], folder: Path, report: Report) -> Trial:
    trial = try_fault(fault, checks, folder)
    outcome = "caught" if trial.caught else "NOT CAUGHT by " + ", ".join(trial.missed)
    report(f"{fault.part}/{fault.name}: {outcome} ({trial.seconds:.1f} s)")
    return trial


def _shares(faults: Sequence[Fault], checks: Sequence[Check], jobs: int) -> list[list[Check]]:
    """The checks of all faults in as many lots as there are jobs, batches whole."""
    patterns = {pattern for fault in faults for pattern in fault.caught_by}
    wanted = {
        name for pattern in patterns for name in fnmatch.filter([check.name for check in checks], pattern)
    }
    lots: list[list[Check]] = [[] for _ in range(jobs)]
    place: dict[str, int] = {}
    for number, check in enumerate(check for check in checks if check.name in wanted):
        lot = place.setdefault(check.batch or check.name, number % jobs)
        lots[lot].append(check)
    return [lot for lot in lots if lot]
