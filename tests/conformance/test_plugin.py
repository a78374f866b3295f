"""The suite under pytest: its items, their outcomes, and what other projects' tests notice of the plugin."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conformance_helpers import install_broken_backend

pytestmark = pytest.mark.xdist_group("plugin")

FAKE = Path(__file__).parent / "execution"


def run_pytest(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit status and output of pytest in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(FAKE)}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr


def judge(folder: Path, *arguments: str) -> tuple[int, str]:
    """The same of the suite, on the fake catalogue."""
    suite = ("--pyargs", "triton_porting_kit.conformance", "--conformance-catalogue", "fake_catalogue")
    return run_pytest(folder, *suite, *arguments)


def test_each_check_is_an_item(tmp_path: Path) -> None:
    status, printed = judge(tmp_path, "--backend", "cpu", "-v", "-k", "passes or computes_garbage or aborts")
    assert status == 1
    assert re.search(r"conformance::runtime/fake/passes PASSED", printed)
    assert re.search(r"conformance::runtime/fake/computes_garbage FAILED", printed)
    assert "fail: wrong result: two is two: it is 3" in printed
    assert "crash: check: the worker process died of SIGABRT" in printed
    assert "2 failed, 1 passed" in printed


def test_levels_are_markers_and_processes_share_the_checks(tmp_path: Path) -> None:
    status, printed = judge(tmp_path, "--backend", "cpu", "-n", "2", "-m", "language", "-rA", "-v")
    assert status == 1
    assert "1 failed, 4 passed" in printed
    assert "FAILED conformance::language/fake/crash" in printed
    # Those that share a kernel have one process.
    assert len(set(re.findall(r"^\[(gw\d)\].*language/fake/", printed, re.MULTILINE))) == 1


def test_outcomes_of_what_is_declared(tmp_path: Path) -> None:
    profile = tmp_path / "conformance.toml"
    profile.write_text(
        '[[expected_failures]]\npattern = "runtime/fake/raises"\nreason = "not yet"\n'
        '[[expected_failures]]\npattern = "runtime/fake/passes"\nreason = "soon"\n'
        '[[waivers]]\npattern = "runtime/fake/computes_garbage"\nreason = "agreed"\n'
    )
    wanted = (
        "--backend",
        "cpu",
        "--profile",
        str(profile),
        "-rxX",
        "--select",
        "raises or passes or computes",
    )
    status, printed = judge(tmp_path, *wanted)
    assert status == 0, printed
    assert "2 xfailed, 1 xpassed" in printed
    assert "expected failure: not yet" in printed
    assert "waived: agreed" in printed
    status, printed = judge(tmp_path, *wanted, "--fail-unexpected-pass")
    assert status == 1
    assert "1 failed, 2 xfailed" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name it with --backend"),
        (("--backend", "cpu", "--level", "speed"), "there is no level 'speed'"),
        (("--backend", "cpu", "--select", "nothing_of_this_name"), "is selected by 'nothing_of_this_name'"),
        (("--backend", "nosuch"), "no worker can be started"),
    ],
)
def test_mistakes(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    status, printed = judge(tmp_path, *arguments)
    assert status not in (0, 5)
    assert message in printed


def test_a_backend_that_crashes_when_it_is_imported(tmp_path: Path) -> None:
    """It crashes a worker, not pytest."""
    install_broken_backend(tmp_path, "import os; os.abort()")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{__name__}.FAKE", f"{FAKE}{os.pathsep}{tmp_path}")
        status, printed = judge(tmp_path, "--backend", "broken", "--level", "kernels")
    assert status == 1
    assert "crash: imported: the worker process died of SIGABRT" in printed


def test_other_projects_notice_nothing(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--backend', default='none')\n"
    )
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it(request):\n"
        "    assert request.config.getoption('--backend') == 'mine'\n"
        "    assert 'triton' not in sys.modules\n"
        "    assert 'triton_porting_kit' not in sys.modules\n"
        "    assert request.config.pluginmanager.has_plugin('triton-porting-kit')\n"
    )
    status, printed = run_pytest(tmp_path, "--backend", "mine")
    assert status == 0, printed
