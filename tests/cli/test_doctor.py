"""`tpk doctor`: what it says with everything there, and with each library missing or broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import Tpk

from triton_porting_kit.cli import checks
from triton_porting_kit.toolchain import compat


def break_package(folder: Path, name: str, body: str) -> None:
    """Put a package first that cannot be imported."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(body)


def doctor(folder: Path, **environment: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit status and findings by name, of a process of its own.

    Packages in `folder` come first. torch cannot be imported: that takes most of the time, and doctor does without.
    """
    break_package(folder, "torch", "raise ModuleNotFoundError('not here')")
    done = subprocess.run(
        [sys.executable, "-m", "triton_porting_kit.cli", "doctor", "--json"],
        env={**os.environ, "TRITON_DEFAULT_BACKEND": "cpu", "PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    assert report["kernels_run"] == (done.returncode == 0)
    return done.returncode, {finding["name"]: finding for finding in report["findings"]}


def test_everything_is_there(tpk: Tpk) -> None:
    done = tpk("doctor")
    assert done.status == 0
    assert done.output.rstrip().endswith("Kernels run here.")
    for name in (
        "Triton",
        "MLIR bindings",
        "LLVM",
        "CPU",
        "threads",
        "HIP",
        "compile cache",
        "active backend",
    ):
        assert name in done.output


@pytest.mark.parametrize(
    ("package", "finding", "remedy"),
    [
        ("triton", "Triton", "pip install 'triton"),
        ("numba_cuda_mlir", "MLIR bindings", "pip install 'numba-cuda-mlir"),
        ("llvmlite", "LLVM", "pip install 'llvmlite"),
        ("numpy", "NumPy", "pip install numpy"),
    ],
)
@pytest.mark.parametrize(
    "body", ["raise ModuleNotFoundError('not installed')", "raise OSError('wrong ELF class')"]
)
def test_library_missing_or_broken(
    tmp_path: Path, package: str, finding: str, remedy: str, body: str
) -> None:
    break_package(tmp_path, package, body)
    status, findings = doctor(tmp_path)
    assert status == 1
    assert findings[finding]["status"] == "problem"
    assert remedy in findings[finding]["remedy"]
    assert findings["Python"]["status"] == "ok"
    assert findings["kernel"]["status"] == "problem"


def test_why_a_backend_is_active(tmp_path: Path) -> None:
    status, findings = doctor(tmp_path, TRITON_DEFAULT_BACKEND="cpu")
    assert status == 0
    assert findings["active backend"]["detail"] == "cpu, set by TRITON_DEFAULT_BACKEND"


@pytest.mark.parametrize("name", ["nvidia", "npu"])
def test_backend_that_cannot_be_used(name: str, tmp_path: Path) -> None:
    status, findings = doctor(tmp_path, TRITON_DEFAULT_BACKEND=name)
    assert status == 1
    assert name in findings["active backend"]["detail"]
    assert "TRITON_DEFAULT_BACKEND" in findings["active backend"]["remedy"]


def test_cache_that_others_can_write(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    status, findings = doctor(tmp_path, TRITON_CACHE_DIR=str(cache))
    assert status == 1
    assert "chmod" in findings["compile cache"]["remedy"]


def test_thread_count_that_is_none(tmp_path: Path) -> None:
    status, findings = doctor(tmp_path, TPK_NUM_THREADS="many")
    assert status == 1
    assert findings["threads"]["detail"] == "TPK_NUM_THREADS is 'many'"
    assert "many" in findings["kernel"]["detail"]


def test_no_compiler_is_only_a_note(tmp_path: Path) -> None:
    status, findings = doctor(tmp_path, CXX="/nowhere/c++")
    assert (status, findings["C++ compiler"]["status"]) == (0, "note")


def test_old_releases_cannot_choose_beside_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "cpu")
    for reads, status in ((True, checks.Status.OK), (False, checks.Status.PROBLEM)):
        monkeypatch.setattr(compat, "reads_default_backend", lambda reads=reads: reads)
        finding = checks.active_backend(["cpu", "nvidia"], "amd, cpu, nvidia")
        assert finding.status is status
    assert "cpu and nvidia are active" in finding.detail
    assert "CUDA_VISIBLE_DEVICES=" in finding.remedy
