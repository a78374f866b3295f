"""Runs checks with pytest in one or several processes, and passes on each record as it arrives."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from triton_porting_kit.conformance.execution.settings import Settings
from triton_porting_kit.conformance.plugin import record_in
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.errors import PortingKitError

_PACKAGE = "triton_porting_kit.conformance"


class PytestError(PortingKitError):
    """pytest failed, which is a defect of the suite."""


class _Listener:
    """A plugin of the main pytest process, to which the others report."""

    def __init__(self, settings: Settings, listen: Callable[[Record], None]) -> None:
        self._settings, self._listen = settings, listen
        self.trouble: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        record = record_in(report)
        if record is not None:
            self._listen(record)
        elif report.failed:
            self.trouble.append(f"{report.nodeid}: {report.longreprtext}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.trouble.append(report.longreprtext)

    def pytest_internalerror(self, excrepr: object) -> None:
        self.trouble.append(str(excrepr))

    def pytest_keyboard_interrupt(self) -> None:
        self._settings.stop()


def run_checks(settings: Settings, names: Sequence[str], jobs: int, listen: Callable[[Record], None]) -> bool:
    """Run the checks with these names. False if the run was interrupted. Raises `PytestError`.

    `settings` must have a scratch folder. `jobs`: the number of processes, each with a worker.
    """
    folder = Path(settings.scratch)
    plan, ini = folder / "plan.json", folder / "pytest.ini"
    plan.write_text(json.dumps({"settings": settings.to_json(), "checks": list(names), "strict": False}))
    ini.write_text("[pytest]\n")
    listener = _Listener(settings, listen)
    arguments = ["--pyargs", _PACKAGE, "--conformance-run", str(plan)]
    arguments += ["-c", str(ini), "--rootdir", str(folder), "--import-mode", "importlib", "--capture", "no"]
    for plugin in ("terminal", "cacheprovider", "faulthandler", "warnings", "junitxml"):
        arguments += ["-p", f"no:{plugin}"]
    if jobs > 1:
        arguments += ["-p", "xdist", "-n", str(jobs), "--dist", "loadgroup"]
    with _only_the_suite(folder):
        status = pytest.main(arguments, plugins=[listener])
    if status == pytest.ExitCode.INTERRUPTED and not listener.trouble:
        return False
    if listener.trouble or status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise PytestError("\n".join(listener.trouble) or f"pytest ended with status {int(status)}")
    return True


@contextmanager
def _only_the_suite(folder: Path) -> Iterator[None]:
    """Disable the pytest plugins and options of the user's project."""
    wanted = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "",
        "PYTEST_PLUGINS": "triton_porting_kit_pytest",
    }
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


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private temporary folder for all processes of a run."""
    with tempfile.TemporaryDirectory(prefix="tpk-conform-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
