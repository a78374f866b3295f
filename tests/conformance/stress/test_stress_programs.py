"""Random programs on the CPU backend and in Triton's interpreter: three ways to compute them agree."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from conformance_helpers import memory

from triton_porting_kit.conformance.catalogue import checks
from triton_porting_kit.conformance.context import Session
from triton_porting_kit.conformance.status import Status
from triton_porting_kit.conformance.stress import checks as stress
from triton_porting_kit.conformance.stress import programs
from triton_porting_kit.conformance.stress.checks import DEFAULT_COUNT
from triton_porting_kit.conformance.stress.configuration import DEFAULT, Configuration, configurations
from triton_porting_kit.conformance.stress.generator import ADDRESSES, FAMILIES, PRODUCTS, ROWS, generate
from triton_porting_kit.conformance.stress.isolation import Isolated
from triton_porting_kit.conformance.stress.typing import types_of
from triton_porting_kit.conformance.trial import try_check


@pytest.fixture(scope="module")
def worker() -> Iterator[Isolated]:
    with Isolated("cpu") as found:
        yield found


def failures(worker: Isolated, seeds: range, configuration: Configuration = DEFAULT) -> dict[int, str]:
    outcomes = {seed: worker.run(seed, configuration=configuration) for seed in seeds}
    return {seed: str(found) for seed, found in outcomes.items() if found.failed}


@pytest.mark.parametrize(
    "first",
    [
        begin + k if k < 30 else pytest.param(begin + k, marks=pytest.mark.slow)
        for begin in FAMILIES.values()
        for k in (0, 30, 60)
    ],
)
def test_programs_pass_on_the_cpu(first: int, worker: Isolated) -> None:
    assert failures(worker, range(first, first + 30)) == {}


@pytest.mark.parametrize("way", configurations("cpu", "each", "1"), ids=str)
@pytest.mark.parametrize("begin", [ADDRESSES, PRODUCTS, ROWS])
def test_programs_pass_on_every_instruction_set(begin: int, way: Configuration, worker: Isolated) -> None:
    assert failures(worker, range(begin + 100, begin + 110), way) == {}


@pytest.mark.slow  # many times as many
@pytest.mark.parametrize("first", [begin + k for begin in FAMILIES.values() for k in range(100, 2100, 100)])
def test_many_programs_pass_on_the_cpu(first: int, worker: Isolated) -> None:
    assert failures(worker, range(first, first + 100)) == {}


def test_programs_are_checks() -> None:
    found = list(programs(3, seed=2))
    assert [check.name for check in found] == [f"stress/programs/{k:05}" for k in range(3)]
    session = Session("cpu", memory())
    records = [try_check(check, session) for check in found]
    assert {record.status for record in records} == {Status.PASS}
    assert "seed 2000001" in found[1].requirement


def test_a_plan_generates_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is run, or asked for its needs, is generated: all 450 take longer than most runs."""
    generated: list[int] = []
    monkeypatch.setattr(stress, "generate", lambda seed: generated.append(seed) or generate(seed))
    found = list(checks(["language", "stress"], stress=2, seed=7))
    assert generated == []
    program = types_of(generate(7_000_001))
    assert {f"type:{t.kind_name.lstrip('*@')}" for t in program.values()} <= found[-1].needs
    assert found[-1].elements == max(t.count for t in program.values())
    assert generated == [7_000_001]
    limited = replace(found[-1], seconds=3)
    assert (limited.needs, limited.elements, limited.seconds) == (found[-1].needs, found[-1].elements, 3)


def test_the_catalogue_has_as_many_as_it_is_asked_for() -> None:
    assert len(list(checks(["stress"], stress=7))) == 7
    assert DEFAULT_COUNT == 200
    assert [c.requirement for c in checks(["stress"], stress=2, seed=1)] != [
        c.requirement for c in checks(["stress"], stress=2)
    ]


@pytest.mark.parametrize("count", [25, pytest.param(100, marks=pytest.mark.slow)])
def test_the_interpreter_agrees(count: int) -> None:
    """Without counters that are used (it makes Python's integers of them) and bfloat16 (which it rounds to zero)."""
    script = Path(__file__).parent / "interpret_programs.py"
    done = subprocess.run(
        [sys.executable, str(script), str(count)],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) >= 0.8 * count
