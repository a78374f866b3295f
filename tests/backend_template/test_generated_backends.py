"""The whole way of a vendor's first day: `tpk new`, install, tests and verdicts, with other backends beside it.

Everything runs in the fresh environment, as somebody else's programs.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from generated import Maker, Repository
from installing import GROUP, pip, run

sys.path.insert(0, str(Path(__file__).parents[1] / "compiler" / "tiles"))
from other_chips import CHANGES, described

pytestmark = GROUP
MINUTES = 2
"""From `tpk new` to the verdict of the level `runtime`, on as many cores."""
CORES = 2


@dataclass(frozen=True)
class Judged:
    """A backend, and what its first minutes came to."""

    repository: Repository
    report: Path
    wall: float
    """Seconds that passed."""
    cpu: float
    """Seconds of all processors together, which other programs on the machine add nothing to."""


@pytest.fixture(scope="module")
def judged(maker: Maker, fresh: Path, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """Made, installed as a wheel, and judged up to the level `runtime`."""
    folder = tmp_path_factory.mktemp("first")
    began, spent = time.monotonic(), cpu_seconds()
    repository = maker.make(fresh / "tpk", "normal", folder)
    pip("install", "--no-deps", "--no-build-isolation", repository.path, python=fresh / "python")
    conform(fresh, repository, folder / "report", "registration", "runtime")
    return Judged(repository, folder / "report", time.monotonic() - began, cpu_seconds() - spent)


@pytest.fixture(scope="module")
def second(judged: Judged, maker: Maker, fresh: Path, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Another one beside it, of the other shape, installed as one that is being worked on."""
    repository = maker.make(fresh / "tpk", "long", tmp_path_factory.mktemp("second"), "cores")
    pip("install", "--no-deps", "--no-build-isolation", "-e", repository.path, python=fresh / "python")
    return repository


@pytest.fixture(scope="module")
def handing_over(
    second: Repository, maker: Maker, fresh: Path, tmp_path_factory: pytest.TempPathFactory
) -> Repository:
    """A third one, whose compiler is an external program."""
    repository = maker.make(fresh / "tpk", "normal", tmp_path_factory.mktemp("third"), "mlir")
    pip("install", "--no-deps", "--no-build-isolation", repository.path, python=fresh / "python")
    return repository


def conform(fresh: Path, repository: Repository, report: Path, *levels: str, shard: str = "1/1") -> None:
    """Judge a backend by a `shard` of the checks. What is mandatory among them has to pass."""
    asked = [word for level in levels for word in ("--level", level)]
    command = [fresh / "tpk", "conform", "--backend", repository.names.backend, *asked, "--shard", shard]
    run([*command, "--jobs", str(CORES), "--report", report], cwd=repository.path)


def cpu_seconds() -> float:
    """Of all programs that were run and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_first_minutes_end_in_a_pass(judged: Judged) -> None:
    report = json.loads((judged.report / "report.json").read_text())
    verdicts = {level["level"]: level["verdict"] for level in report["levels"]}
    assert (verdicts["registration"], verdicts["runtime"]) == ("pass", "pass")
    assert report["run"]["backend"] == judged.repository.names.backend
    print(f"from `tpk new` to the verdict: {judged.wall:.0f} s, {judged.cpu:.0f} s of CPU time")
    assert judged.cpu < MINUTES * 60 * CORES


def test_the_badge_says_what_was_reached(judged: Judged, fresh: Path, tmp_path: Path) -> None:
    run([fresh / "tpk", "report", "badge", judged.report, "--out", tmp_path / "badge.svg"])
    assert ">runtime<" in (tmp_path / "badge.svg").read_text()


def test_its_own_tests_pass(judged: Judged, fresh: Path) -> None:
    """But for the levels that it was judged by just now."""
    judged_already = "tests/test_conformance.py::test_level"
    command = [fresh / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--deselect", judged_already]
    said = run(command, cwd=judged.repository.path)
    assert " passed" in said
    assert "skipped" not in said


@pytest.mark.parametrize("chip", CHANGES)
def test_its_tests_hold_for_other_chips(judged: Judged, fresh: Path, chip: str, tmp_path: Path) -> None:
    """A vendor describes a chip first, and runs the tests again."""
    names = judged.repository.names
    (installed,) = fresh.parent.glob(f"lib/python3*/site-packages/{names.package}")
    package = shutil.copytree(installed, tmp_path / names.package)
    text = (
        Path(described(chip, tmp_path)).read_text().replace(f'name = "{chip}"', f'name = "{names.backend}"')
    )
    (package / f"{names.backend}.toml").write_text(text)
    command = [fresh / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_chip.py"]
    said = run(command, cwd=judged.repository.path, PYTHONPATH=str(tmp_path))
    assert " passed" in said
    assert "skipped" not in said


def test_an_external_program_compiles_its_kernels(handing_over: Repository, fresh: Path) -> None:
    """Results, errors at the kernel's line, and what a program that is missing ends in."""
    tests = ("tests/test_compiler.py", "tests/test_kernels.py")
    said = run(
        [fresh / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], cwd=handing_over.path
    )
    assert " passed" in said
    assert "deselected" not in said


SOME = ("-k", "(dies or counted or chip) and not test_pytorch")
DIES = """
import os
import pytest

@pytest.mark.alone
def test_that_dies():
    os.abort()
"""


def test_on_a_chip_that_stands_less_tests_are_left_out_and_named(
    judged: Judged, fresh: Path, tmp_path: Path
) -> None:
    """And a test that takes its process down is one that fails."""
    names, made = judged.repository.names, judged.repository.path
    tests = shutil.copytree(made / "tests", tmp_path / "tests")
    shutil.copy(made / "pyproject.toml", tmp_path)
    with (tests / "conftest.py").open("a") as conftest:
        conftest.write(f"\n\n{names.class_prefix}Device.abilities = frozenset()\n")
    (tests / "test_dying.py").write_text(DIES)
    done = subprocess.run(
        [fresh / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *SOME],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "its process ended with status -6" in done.stdout
    assert re.search(r"\n1 failed, \d passed", done.stdout), done.stdout
    said = done.stdout.partition("not run on this chip")[2]
    assert (
        "tests/test_virtual_npu.py::test_a_lost_chip_comes_back_by_a_reset[die:1]: needs virtual-npu" in said
    )
    assert "[endless]: needs outlives-kernels" in said
    assert "test_a_forked_process_has_no_chip_before_a_reset: needs refuses-forks" in said


def test_status_says_that_all_is_the_virtual_npu_s(judged: Judged, fresh: Path) -> None:
    run([fresh / "tpk", "status"], cwd=judged.repository.path)


def test_installing_leaves_the_repository_clean(judged: Judged, second: Repository) -> None:
    for repository in (judged.repository, second):
        assert run(["git", "status", "--porcelain"], cwd=repository.path) == ""


PICK = """
import json, triton
try:
    driver = triton.runtime.driver.active
    found = type(driver).__module__, driver.get_current_target().backend
except Exception as error:
    found = type(error).__name__, str(error)
print(json.dumps([sorted(triton.backends.backends), found]))
"""


def test_each_backend_is_picked_by_its_name(judged: Judged, second: Repository, fresh: Path) -> None:
    modules = {
        "cpu": "triton_porting_kit.backends.cpu",
        judged.repository.names.backend: judged.repository.names.package,
        second.names.backend: second.names.package,
    }
    for name, module in modules.items():
        there, (driver, target) = json.loads(run([fresh / "python", "-c", PICK], TRITON_DEFAULT_BACKEND=name))
        assert {*modules, "nvidia", "amd"} <= set(there)
        assert driver.startswith(f"{module}."), f"{name} brings {driver}: {target}"
        assert target == name
        run([fresh / "python", "-m", "triton_porting_kit.cli.tiny_kernel"], TRITON_DEFAULT_BACKEND=name)


@pytest.mark.parametrize("name", ["nvidia", "amd"])
def test_triton_s_own_are_picked_too(name: str, judged: Judged, second: Repository, fresh: Path) -> None:
    """Which ends in their saying that there is no such GPU, where there is none."""
    _, (kind, text) = json.loads(run([fresh / "python", "-c", PICK], TRITON_DEFAULT_BACKEND=name))
    assert kind.startswith(f"triton.backends.{name}") or (name in text and "active" in text), (kind, text)


@pytest.mark.parametrize("shard", ["1/4", pytest.param("1/1", marks=pytest.mark.slow)])
def test_two_beside_each_other_are_both_judged(
    shard: str, second: Repository, fresh: Path, tmp_path: Path
) -> None:
    conform(fresh, second, tmp_path / "report", "registration", shard=shard)


@pytest.mark.parametrize("which", ["npu", pytest.param("cores", marks=pytest.mark.slow)])
def test_two_chips_reach_each_other(
    which: str, judged: Judged, second: Repository, fresh: Path, tmp_path: Path
) -> None:
    """In one process by copies and events, and as ranks of a group in two."""
    repository = judged.repository if which == "npu" else second
    checks = "runtime/peers/* or distributed/memory/2 or distributed/failures/lost-*-2"
    command = [fresh / "tpk", "conform", "--backend", repository.names.backend, "--select", checks]
    command += ["--level", "runtime", "--level", "distributed", "--report", tmp_path / "report"]
    run(command, cwd=repository.path, VNPU_COUNT="2")
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert [each["status"] for each in report["checks"]] == ["pass"] * 8


def test_their_names_are_taken_now(judged: Judged, second: Repository, fresh: Path, tmp_path: Path) -> None:
    for repository in (judged.repository, second):
        done = subprocess.run(
            [fresh / "tpk", "new", repository.names.name, "--dest", tmp_path],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert f"a backend of {repository.names.repository}" in done.stderr
        assert list(tmp_path.iterdir()) == []


def chips(fresh: Path) -> Iterator[str]:
    """Processes that run the virtual NPU of the fresh environment."""
    for process in Path("/proc").iterdir():
        try:
            program = os.readlink(process / "exe")
        except OSError:
            continue  # no process, not ours, or gone
        if Path(program).is_relative_to(fresh.parent.resolve()) and "python" not in program:
            yield f"{process.name}: {program}"


def test_no_chip_is_left_behind(judged: Judged, second: Repository, fresh: Path) -> None:
    deadline = time.monotonic() + 60
    while (left := list(chips(fresh))) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []
