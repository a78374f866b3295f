"""The suite as a pytest plugin: ``pytest --pyargs triton_porting_kit.conformance --backend NAME``.

Each check is an item. Each pytest process has its own worker process, which runs the checks.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.execution.captures import Capturer
from triton_porting_kit.conformance.execution.plan import load_checks, make_plan
from triton_porting_kit.conformance.execution.run import Choice
from triton_porting_kit.conformance.execution.settings import CATALOGUE, Settings
from triton_porting_kit.conformance.execution.shards import Shard
from triton_porting_kit.conformance.execution.supervisor import CannotStart, Supervisor
from triton_porting_kit.conformance.levels import DEFAULT_LEVELS, LEVELS
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.stages import IMPORTED
from triton_porting_kit.conformance.status import BAD, Status
from triton_porting_kit.conformance.torch.support import LEVEL as TORCH
from triton_porting_kit.conformance.torch.support import verify as verify_torch
from triton_porting_kit.errors import PortingKitError

RECORD = "conformance_record"
"""The attribute of pytest's reports that holds a check's record as JSON."""
PACKAGE = Path(__file__).parent


# --- options -----------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, with the same names as in `tpk conform`."""
    group = parser.getgroup("conformance", "the Triton Porting Kit's conformance suite")
    group.addoption("--backend", metavar="NAME", help="the backend to judge, as it is registered with Triton")
    group.addoption(
        "--level", action="append", default=[], metavar="LEVEL", help=f"one of {', '.join(LEVELS)}"
    )
    group.addoption("--select", action="append", default=[], metavar="EXPR", help="checks, by their names")
    group.addoption("--shard", metavar="K/N", help="part K of N, of about equal duration")
    group.addoption(
        "--profile", metavar="FILE", default="", help="the vendor's declarations: conformance.toml"
    )
    group.addoption(
        "--target", metavar="BACKEND:ARCH:WARP", default="", help="compile for this target, and run nothing"
    )
    group.addoption("--seed", type=int, default=0, help="seed of all random data")
    group.addoption(
        "--stress", type=int, default=0, metavar="N", help="number of random programs of the level stress"
    )
    group.addoption(
        "--capture-failures",
        metavar="DIR",
        default="",
        help="folder in which launches of failed checks are recorded",
    )
    group.addoption("--fail-unexpected-pass", action="store_true", help="as --strict of `tpk conform`")
    group.addoption("--conformance-run", metavar="FILE", help=argparse.SUPPRESS)  # from `tpk conform`
    group.addoption("--conformance-catalogue", metavar="MODULE", default=CATALOGUE, help=argparse.SUPPRESS)


def pytest_configure(config: pytest.Config) -> None:
    """Register the levels as markers."""
    for level in LEVELS.values():
        config.addinivalue_line("markers", f"{level.name}: {level.meaning}")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Make pytest-xdist send all checks of a batch to one process, because they share a kernel."""
    if getattr(config.option, "numprocesses", None) and config.option.dist in ("no", "load"):
        config.option.dist = "loadgroup"


# --- collection --------------------------------------------------------------------------------------


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the suite for the suite's package."""
    if path.resolve() == PACKAGE.resolve():
        return Suite.from_parent(parent, path=path, nodeid="conformance")
    return None


class Suite(pytest.Directory):
    """All checks of a run."""

    def collect(self) -> Iterable[pytest.Item]:
        try:
            checks = _runner(self.config).plan()
        except PortingKitError as error:
            raise self.CollectError(str(error)) from error
        return [CheckItem.from_parent(self, name=self._item(check), check=check) for check in checks]

    def _item(self, check: Check) -> str:
        """The name of a check's item. pytest-xdist sends items whose names end in the same ``@GROUP`` to one process.

        The mark ``xdist_group``, which normally adds this suffix, has no effect with pytest 9.2.
        """
        grouped = check.batch and hasattr(self.config, "workerinput")
        return f"{check.name}@{check.batch}" if grouped else check.name


class CheckItem(pytest.Item):
    """One check."""

    def __init__(self, *, check: Check, **fields: Any) -> None:
        super().__init__(**fields)
        self.check = check
        self.record: Record | None = None
        self.add_marker(check.level)

    def runtest(self) -> None:
        runner = _runner(self.config)
        self.record = record = runner.record_of(self.check)
        if record.status in (Status.EXPECTED_FAILURE, Status.WAIVED):
            pytest.xfail(_explained(record))
        if record.status is Status.UNSUPPORTED:
            pytest.skip(_explained(record))
        if record.status in BAD or (record.status is Status.UNEXPECTED_PASS and runner.strict):
            if record.stage == IMPORTED:
                self.session.shouldfail = "no worker can be started"
            raise CheckFailed(record)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CheckFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name


class CheckFailed(Exception):
    """A check failed in any way."""

    def __init__(self, record: Record) -> None:
        super().__init__(described(record))


def described(record: Record) -> str:
    """A description of a check that did not pass."""
    lines = [f"{record.requirement}", f"{record.status}: {record.stage}: {record.message}"]
    for item in record.evidence:
        lines += [str(item[key]) for key in ("traceback", "output") if item.get(key)]
    return "\n".join(lines)


def _explained(record: Record) -> str:
    reason = record.listing.reason if record.listing else record.message
    return f"{record.status}: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the record to the report, so that other processes can read it."""
    report = yield
    if isinstance(item, CheckItem) and item.record is not None and call.when == "call":
        setattr(report, RECORD, json.dumps(item.record.to_json()))
        if item.record.status is Status.UNEXPECTED_PASS and report.passed:
            report.wasxfail = _explained(item.record)
    return report


def record_in(report: pytest.TestReport) -> Record | None:
    """The record of the check that a pytest report belongs to."""
    found = getattr(report, RECORD, None)
    return Record.from_json(json.loads(found)) if found is not None and report.when == "call" else None


# --- running -----------------------------------------------------------------------------------------


class Runner:
    """The supervisor of a pytest process, and the records that it has found."""

    def __init__(self, config: pytest.Config) -> None:
        option = config.option
        if option.conformance_run:
            given = json.loads(Path(option.conformance_run).read_text())
            self._settings = Settings.from_json(given["settings"])
            self._names: list[str] | None = given["checks"]
            self.strict = bool(given["strict"])
        else:
            if not option.backend:
                raise pytest.UsageError("the conformance suite judges a backend: name it with --backend")
            self._settings = Settings(
                backend=option.backend,
                profile=option.profile,
                seed=option.seed,
                target=option.target,
                stress=option.stress,
                catalogue=option.conformance_catalogue,
                captures=option.capture_failures,
                torch=TORCH in option.level,
            )
            self._names, self.strict = None, option.fail_unexpected_pass
        shard = Shard.parse(option.shard) if option.shard else None
        self._choice = Choice(tuple(option.level), tuple(option.select), shard)
        self._supervisor = Supervisor(self._settings)
        self._capturer = Capturer(self._settings) if self._settings.captures else None
        self._batches: dict[str, list[Check]] = {}
        self._found: dict[str, Record] = {}
        self._expected: set[str] = set()
        self._stream: Iterator[Record] = iter(())

    def plan(self) -> list[Check]:
        """The checks of the run."""
        if self._names is not None:
            levels = [level for level in LEVELS if any(name.startswith(f"{level}/") for name in self._names)]
            by_name = {check.name: check for check in load_checks(self._settings, levels)}
            return [by_name[name] for name in self._names]
        try:
            description = self._supervisor.start()
        except CannotStart:
            description = None
        if self._settings.torch:
            verify_torch(description)
        chosen = self._choice
        plan = make_plan(self._settings, chosen.levels, chosen.selections, chosen.shard, description)
        if self._supervisor.profile.entries:
            levels = [level for level in LEVELS if level in (*DEFAULT_LEVELS, *chosen.levels)]
            self._supervisor.profile.verify_patterns(load_checks(self._settings, levels), levels)
        return list(plan.checks)

    def choose(self, checks: Iterable[Check]) -> None:
        """Set the checks that pytest has not deselected."""
        self._batches = {}
        for check in checks:
            if check.batch:
                self._batches.setdefault(check.batch, []).append(check)

    def record_of(self, check: Check) -> Record:
        """The record of a check. The first check of a batch starts the whole batch."""
        while check.name not in self._found:
            if check.name not in self._expected:
                for late in self._stream:  # exhaust the stream, because the worker sends more than records
                    self._found[late.name] = late
                batch = self._batches.get(check.batch, [check]) if check.batch else [check]
                self._expected = {c.name for c in batch}
                self._stream = self._supervisor.run(batch)
            record = next(self._stream)
            self._expected.discard(record.name)
            self._found[record.name] = record
        found = self._found.pop(check.name)
        if self._capturer is None or not self._capturer.wants(found):
            return found
        for late in self._stream:  # finish what the worker has begun before it is ended
            self._found[late.name] = late
        self._expected = set()
        self._supervisor.close()
        return self._capturer.captured(check, found)

    def close(self) -> None:
        """End the worker."""
        self._supervisor.close()


_RUNNER = pytest.StashKey[Runner]()


def _runner(config: pytest.Config) -> Runner:
    if _RUNNER not in config.stash:
        try:
            config.stash[_RUNNER] = Runner(config)
        except PortingKitError as error:
            raise pytest.UsageError(str(error)) from error
    return config.stash[_RUNNER]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Pass the remaining checks of each batch to the runner."""
    checks = [item.check for item in session.items if isinstance(item, CheckItem)]
    if checks:
        _runner(session.config).choose(checks)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the worker process."""
    if _RUNNER in config.stash:
        config.stash[_RUNNER].close()
