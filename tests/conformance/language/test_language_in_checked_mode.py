"""No correct kernel is reported in checked mode: the suite's own, on the CPU backend."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def counts(folder: Path, *selection: str) -> dict[str, int]:
    """How many checks came to which status, each kernel compiled with checks."""
    (folder / "cache").mkdir(mode=0o700)
    environment = {
        **os.environ,
        "TRITON_DEFAULT_BACKEND": "cpu",
        "TRITON_CACHE_DIR": str(folder / "cache"),
        "TPK_CHECK": "memory",
    }
    command = [sys.executable, "-m", "triton_porting_kit.cli", "conform", "--backend", "cpu", "--quiet"]
    command += ["--report", str(folder / "report"), *selection]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return dict(json.loads((folder / "report" / "report.json").read_text())["counts"])


def test_sample(tmp_path: Path) -> None:
    found = counts(tmp_path, "--level", "language", "--shard", "1/100")
    assert found["pass"] > 100
    assert found.keys() <= {"pass", "not_applicable"}, found


@pytest.mark.slow
def test_all(tmp_path: Path) -> None:
    found = counts(tmp_path, "--level", "language", "--level", "kernels")
    assert found["pass"] > 10_000
    assert not found.get("fail")
