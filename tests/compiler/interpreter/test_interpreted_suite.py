"""The interpreter as a second oracle: the kernels of the conformance suite, by their structured form."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from triton_porting_kit.conformance.stress.generator import FAMILIES

SCRIPT = Path(__file__).with_name("interpret_suite.py")
PARTS = 24
"""Of the language checks; one of them is the sample, which takes half a minute."""


def agreeing(what: str, first: int, second: int) -> int:
    """How many kernels do what the suite expects. Raises AssertionError with what the others do."""
    command = [sys.executable, str(SCRIPT), what, str(first), str(second)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["differ"] == {}
    return int(found["agree"])


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[pytest.mark.slow] if part else []) for part in range(PARTS)]
)
def test_language_checks_agree(part: int) -> None:
    assert agreeing("language", part, PARTS) > 200


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(begin + k, marks=[pytest.mark.slow] if k else [])
        for begin in FAMILIES.values()
        for k in (0, 25, 50, 75)
    ],
)
def test_random_programs_agree(first: int) -> None:
    assert agreeing("programs", first, 25) > 22


@pytest.mark.slow  # ten times as many
@pytest.mark.parametrize("first", [begin + k for begin in FAMILIES.values() for k in range(100, 1100, 200)])
def test_many_random_programs_agree(first: int) -> None:
    assert agreeing("programs", first, 200) > 180
