"""The self-test: each fault with the checks that must catch it, and these checks without a fault."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.faults.degenerate import DEGENERATE, PROFILES, sample, write_profile
from triton_porting_kit.conformance.faults.fault import PARTS, Fault
from triton_porting_kit.conformance.faults.plugin import installed
from triton_porting_kit.conformance.faults.table import CLEAN_BINARY, CLEAN_FAULT, FAULTS, find
from triton_porting_kit.conformance.faults.trying import Trial, chosen, run_checks, try_fault
from triton_porting_kit.conformance.levels import DEFAULT_LEVELS as LEVELS
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.status import BAD, Verdict, verdict
from triton_porting_kit.errors import PortingKitError

DEMANDED = 0.97
"""The share of the faults that must be caught."""

LOT = 60
"""The number of checks in one job on the clean backend."""

Report = Callable[[str], None]


@dataclass
class SelfTest:
    """The result of the self-test."""

    trials: list[Trial] = field(default_factory=list)
    clean: dict[tuple[str, str], Record] = field(default_factory=dict)
    """The records of these checks on the clean backends, by names of the backend and of the check."""
    degenerate: dict[tuple[str, str, str], Verdict] = field(default_factory=dict)
    """The verdicts on degenerate backends, by name, profile and level."""

    @property
    def rate(self) -> float:
        """The share of the faults that was caught; 1 if none was tried."""
        return sum(trial.caught for trial in self.trials) / len(self.trials) if self.trials else 1.0

    @property
    def false_alarms(self) -> list[Record]:
        """Checks that fail on a clean backend."""
        return [record for record in self.clean.values() if record.status in BAD]

    @property
    def green(self) -> list[tuple[str, str, str]]:
        """The cases in which a degenerate backend passed."""
        return [key for key, found in self.degenerate.items() if found in (Verdict.PASS, Verdict.CONDITIONAL)]

    @property
    def passed(self) -> bool:
        complete = bool(self.clean) if self.trials else bool(self.degenerate)
        return complete and self.rate >= DEMANDED and not self.false_alarms and not self.green

    def summary(self) -> str:
        """A table by part, the missed faults, and the verdict."""
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
        for backend, profile, level in self.green:
            lines.append(f"green though it can do nothing: {backend} in level {level} (profile: {profile})")
        caught = sum(trial.caught for trial in self.trials)
        lines.append(
            f"{caught} of {len(self.trials)} faults are caught: {100 * self.rate:.1f}% ({100 * DEMANDED:.0f}% are "
            f"demanded); of {len(self.clean)} checks, {len(self.false_alarms)} fail without a fault; of "
            f"{len(self.degenerate)} verdicts on backends that can do nothing, {len(self.green)} are green"
        )
        return "\n".join(lines)


class NoSuchFault(PortingKitError):
    """A pattern matches no fault."""


def run_self_test(select: Sequence[str] = ("*",), jobs: int = 1, report: Report = print) -> SelfTest:
    """Try the faults and degenerate backends whose names match one of the patterns `select`, `jobs` at a time.

    `report` receives a line for each that ends. Raises `NoSuchFault` for a pattern that matches none.
    """
    names = [fault.name for fault in (*FAULTS, *DEGENERATE)]
    for pattern in select:
        if not fnmatch.filter(names, pattern):
            raise NoSuchFault(f"no fault matches {pattern!r}; there are {', '.join(names)}")

    def wanted(fault: Fault) -> bool:
        return any(fnmatch.fnmatchcase(fault.name, pattern) for pattern in select)

    faults = [fault for fault in FAULTS if wanted(fault)]
    result = SelfTest()
    # Processes instead of threads, because each fault is selected by an environment variable of its workers.
    with installed() as folder, ProcessPoolExecutor(jobs, get_context("spawn"), _start) as pool:
        checks = list(catalogue.checks())
        shares = []
        for clean in (CLEAN_FAULT, CLEAN_BINARY):
            like = [fault for fault in faults if (fault.part == "binary") == (clean is CLEAN_BINARY)]
            shares += [pool.submit(_clean, clean.name, share, folder) for share in _shares(like, checks)]
        runs = {pool.submit(_tried, fault.name, folder): fault for fault in faults}
        trials = {}
        for run in as_completed(runs):
            trials[runs[run].name] = trial = Trial(runs[run], *run.result())
            report(_line(trial))
        result.trials = [trials[fault.name] for fault in faults]
        for share in shares:
            result.clean |= share.result()
        if shares:
            report(f"no fault: {len(result.clean)} checks, {len(result.false_alarms)} fail")
        degenerate = [
            pool.submit(_degenerate, fault.name, profile, folder)
            for fault in DEGENERATE
            for profile in PROFILES
            if wanted(fault)
        ]
        for verdicts in as_completed(degenerate):
            result.degenerate |= verdicts.result()
            for (backend, profile, level), found in verdicts.result().items():
                report(f"{backend} (profile: {profile}), {level}: {found}")
    return result


_CHECKS: list[Check] = []


def _start() -> None:
    """Initialize a process: collect the checks once."""
    _CHECKS.extend(catalogue.checks())


def _tried(name: str, folder: Path) -> tuple[dict[str, Record], float, dict[str, tuple[str, ...]]]:
    trial = try_fault(find(name), _CHECKS, folder)
    return dict(trial.records), trial.seconds, dict(trial.checks)


def _clean(clean: str, names: set[str], folder: Path) -> dict[tuple[str, str], Record]:
    found = run_checks(find(clean), [check for check in _CHECKS if check.name in names], folder)
    return {(clean, name): record for name, record in found.items()}


def _degenerate(name: str, profile: str, folder: Path) -> dict[tuple[str, str, str], Verdict]:
    """The verdicts on a degenerate backend, as if the sample of a level were its mandatory list."""
    samples = {level: sample([check for check in _CHECKS if check.level == level]) for level in LEVELS}
    checks = [check for level in LEVELS for check in samples[level]]
    records = run_checks(find(name), checks, folder, write_profile(folder, profile))
    found = {}
    for level, its in samples.items():
        names = [check.name for check in its]
        found[name, profile, level] = verdict({n: records[n].status for n in names if n in records}, names)
    return found


def _line(trial: Trial) -> str:
    outcome = "caught" if trial.caught else "NOT CAUGHT by " + ", ".join(trial.missed)
    return f"{trial.fault.part}/{trial.fault.name}: {outcome} ({trial.seconds:.1f} s)"


def _shares(faults: Sequence[Fault], checks: Sequence[Check]) -> list[set[str]]:
    """Split the names of the checks of all faults into lots without splitting batches."""
    patterns = {pattern for fault in faults for pattern in fault.caught_by}
    wanted = {name for names in chosen(sorted(patterns), checks).values() for name in names}
    lots: list[set[str]] = [set()]
    batch = ""
    for check in checks:
        if check.name in wanted:
            if len(lots[-1]) >= LOT and not (check.batch and check.batch == batch):
                lots.append(set())
            lots[-1].add(check.name)
            batch = check.batch
    return [lot for lot in lots if lot]
