"""The kernels for a chip that are written by hand: right by NumPy, without hazards, and near what the units can do."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from source_tree import ROOT

from benchmarks.chip.__main__ import wrong
from benchmarks.chip.cases import QUICK


@pytest.fixture(scope="module")
def table() -> str:
    command = [sys.executable, "-m", "benchmarks.chip", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_case_is_right_and_compared(table: str) -> None:
    assert "WRONG" not in table
    for case in QUICK:
        row = next(line for line in table.splitlines() if line.startswith(f"{case.name} "))
        hand, own, triton, _, ratio = re.sub(r"[,%]", "", row[len(case.name) :]).split()[:5]
        assert float(ratio) == pytest.approx(float(hand) / float(triton), abs=0.01)
        assert (
            float(own) >= 50 - 0.5
        )  # of the matrix unit or bandwidth, with launch, first load and last store


def test_a_wrong_result_is_found() -> None:
    class Result:
        def numpy(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float16]]:
            return np.array([1.0, 2.0, 3.5], np.float16)

    expected = np.array([1.0, 2.0, 3.0])
    assert "0.17 of the largest" in wrong(QUICK[0], Result(), expected)
    assert not wrong(QUICK[0], Result(), np.array([1.0, 2.0, 3.5]))


def test_compiling_for_the_chip_is_compared_with_compiling_for_the_cpu() -> None:
    command = [sys.executable, "-m", "benchmarks.chip.compiling", "--runs", "1", "--only", "vector add"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    row, mean = done.stdout.splitlines()[-2:]
    found = re.fullmatch(r"vector add +CPU +([\d.]+) ms, chip +([\d.]+) ms: ([\d.]+)", row)
    assert found is not None, row
    cpu, chip, ratio = map(float, found.groups())
    assert ratio == pytest.approx(chip / cpu, abs=0.01 + 0.1 / cpu * ratio)
    assert mean == f"mean of 1 kernels: {found[3]}, at most {found[3]}"
