"""Releases of Triton that were not tried, end to end: a newer one works with one warning, an older one says one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import numpy as np
import triton
import triton.language as tl

triton.__version__ = sys.argv[1]

from triton_porting_kit.driver import DeviceArray


@triton.jit
def increment(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


x = DeviceArray.from_numpy(np.zeros(8, np.float32), triton.runtime.driver.active.device)
for block in (8, 16, 8, 16):
    increment[(1,)](x, 8, B=block)
print(x.numpy().tolist())
"""


def run(version: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> subprocess.CompletedProcess[str]:
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "cpu")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder / "cache"))
    program = folder / "program.py"
    program.write_text(PROGRAM)
    return subprocess.run([sys.executable, program, version], capture_output=True, text=True)


def test_newer_release_works_with_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("3.99.0", tmp_path, monkeypatch)
    assert done.stdout == f"{[4.0] * 8}\n", done.stderr
    assert done.stderr.count("the kit was not tried with Triton 3.99.0, only with") == 1
    assert done.stderr.count("Warning") == 1


def test_older_release_is_refused_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("3.5.1", tmp_path, monkeypatch)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert "Triton 3.5.1 is too old: the kit needs 3.6 or later; run `pip install" in last
