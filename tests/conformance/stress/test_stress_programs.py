"""Random programs on the CPU backend and in Triton's interpreter: three ways to compute them agree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conformance_helpers import memory

from triton_porting_kit.conformance.catalogue import checks
from triton_porting_kit.conformance.context import Session
from triton_porting_kit.conformance.status import Status
from triton_porting_kit.conformance.stress import programs
from triton_porting_kit.conformance.stress.checks import DEFAULT_COUNT
from triton_porting_kit.conformance.stress.generator import generate
from triton_porting_kit.conformance.stress.launching import Launch, mistake
from triton_porting_kit.conformance.trial import try_check


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_programs_pass_on_the_cpu(first: int) -> None:
    wrong = {seed: mistake(Launch.of(generate(seed)), memory()) for seed in range(first, first + 10)}
    assert {seed: message for seed, message in wrong.items() if message} == {}


@pytest.mark.slow  # six times as many
@pytest.mark.parametrize("first", range(100, 700, 20))
def test_many_programs_pass_on_the_cpu(first: int) -> None:
    wrong = {seed: mistake(Launch.of(generate(seed)), memory()) for seed in range(first, first + 20)}
    assert {seed: message for seed, message in wrong.items() if message} == {}


def test_programs_are_checks() -> None:
    found = list(programs(3, seed=2))
    assert [check.name for check in found] == [f"stress/programs/{k:05}" for k in range(3)]
    session = Session("cpu", memory())
    records = [try_check(check, session) for check in found]
    assert {record.status for record in records} == {Status.PASS}
    assert "seed 2000001" in found[1].requirement


def test_the_catalogue_has_as_many_as_it_is_asked_for() -> None:
    assert len(list(checks(["stress"], stress=7))) == 7
    assert DEFAULT_COUNT == 200
    assert [c.requirement for c in checks(["stress"], stress=2, seed=1)] != [
        c.requirement for c in checks(["stress"], stress=2)
    ]


def test_the_interpreter_agrees() -> None:
    """Programs without loops (whose counters it makes Python's integers) and bfloat16 (which it rounds to zero)."""
    script = Path(__file__).parent / "interpret_programs.py"
    done = subprocess.run(
        [sys.executable, str(script), "100"],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) >= 25
