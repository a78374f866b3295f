"""The shape opencl: made, read by the tools, installed, and run on this machine's OpenCL device."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path

import pytest
from generated import Maker, Repository
from installing import GROUP, pip, run

from triton_porting_kit.backends import opencl
from triton_porting_kit.driver.opencl import has_platforms

pytestmark = GROUP


@pytest.fixture(scope="module", params=["short", "long"])
def made(
    request: pytest.FixtureRequest, maker: Maker, fresh: Path, tmp_path_factory: pytest.TempPathFactory
) -> Repository:
    return maker.make(fresh / "tpk", request.param, tmp_path_factory.mktemp("opencl"), "opencl")


def test_the_linter_is_content(made: Repository) -> None:
    run([sys.executable, "-m", "ruff", "check", "--no-cache", "."], cwd=made.path)
    run([sys.executable, "-m", "ruff", "format", "--no-cache", "--check", "--diff", "."], cwd=made.path)


def test_there_is_no_native_code_and_nothing_of_the_virtual_npu(made: Repository) -> None:
    project = tomllib.loads((made.path / "pyproject.toml").read_text())
    assert project["project"]["entry-points"] == {"triton.backends": {made.names.backend: made.names.package}}
    assert not (made.path / "CMakeLists.txt").exists()
    for name, text in made.sources.items():
        assert "vnpu" not in text, name
        assert "{{" not in text, name
        assert text.endswith("\n"), name
        assert not text.endswith("\n\n"), name


def test_it_declares_what_the_kit_s_backend_does(made: Repository) -> None:
    """Both have the same compiler."""
    limits = Path(opencl.__file__).with_name("conformance.toml").read_text()
    assert made.sources[f"src/{made.names.package}/conformance.toml"] == limits


def test_status_and_update_know_the_shape(made: Repository, fresh: Path) -> None:
    status = json.loads(run([fresh / "tpk", "status", "--json"], cwd=made.path))
    assert {part["state"] for part in status["parts"]} == {"the kit's"}
    assert "Up to date" in run([fresh / "tpk", "update", made.path])


@pytest.mark.parametrize(
    "chosen",
    [
        # `make test-opencl` judges the kit's backend, which has the same compiler, by the other levels.
        "not language and not kernels-",
        pytest.param("language or kernels-", marks=pytest.mark.slow),
    ],
)
def test_its_tests_pass_on_this_machine_s_device(
    chosen: str, maker: Maker, fresh: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if not has_platforms():
        assert not os.environ.get("CI"), "CI has no OpenCL: install ocl-icd-libopencl1 and pocl-opencl-icd"
        pytest.skip("no OpenCL driver is installed on this machine")
    made = maker.make(fresh / "tpk", "normal", tmp_path_factory.mktemp("installed"), "opencl")
    pip("install", "--no-deps", "--no-build-isolation", made.path, python=fresh / "python")
    command = [fresh / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen]
    said = run(command, cwd=made.path)
    assert " passed" in said
    assert "skipped" not in said
