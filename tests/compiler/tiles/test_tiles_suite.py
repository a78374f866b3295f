"""The kernels of the conformance suite, compiled for a chip: in the interpreter as far as the stage ``placed``, and on
the virtual NPU, which reports every hazard."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PARTS = 96
"""Of the language checks; one of them is the sample."""


def ran(script: str, chip: str, part: int, parts: int) -> tuple[int, dict[str, str]]:
    """How many kernels do what the suite expects, and what the others do."""
    command = [sys.executable, str(HERE / script), chip, "language", str(part), str(parts)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    return int(found["agree"]), found["differ"]


def agreeing(script: str, chip: str, part: int, parts: int = PARTS) -> int:
    """How many kernels do what the suite expects. Raises AssertionError with what the others do."""
    count, differ = ran(script, chip, part, parts)
    assert differ == {}
    return count


SAMPLES = [pytest.param(part, marks=[pytest.mark.slow] if part else []) for part in range(PARTS)]


@pytest.mark.parametrize("part", SAMPLES)
def test_placed_kernels_agree_in_the_interpreter(part: int) -> None:
    assert agreeing("interpret_tiles.py", "n1", part) > 50


@pytest.mark.parametrize("part", SAMPLES)
def test_kernels_agree_on_the_chip(part: int) -> None:
    assert agreeing("chip_suite.py", "n1", part) > 50


@pytest.mark.parametrize("part", SAMPLES)
def test_kernels_agree_in_small_pieces(part: int) -> None:
    assert agreeing("split_suite.py", "single", part) > 50
