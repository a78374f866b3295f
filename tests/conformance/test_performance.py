"""Figures of performance: what is measured, and that nothing is judged."""

from __future__ import annotations

import json
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from conformance_helpers import memory

from triton_porting_kit.conformance.context import Session
from triton_porting_kit.conformance.kernels.problem import Problem
from triton_porting_kit.conformance.memory import HostMemory
from triton_porting_kit.conformance.performance import measure, problems, timing
from triton_porting_kit.conformance.profile import Capabilities
from triton_porting_kit.conformance.types import KINDS

KEYS = {"kernel", "shape", "type", "seconds", "spread", "numpy_seconds", "torch_seconds"}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only small copies, and the kernels of one group."""
    chosen = [(check, problem) for check, problem in problems.timed() if "/rotary/" in check.name]
    monkeypatch.setattr(problems, "timed", lambda: chosen)
    monkeypatch.setattr(sys.modules["triton_porting_kit.conformance.performance.copies"], "SIZES", (4096,))


@pytest.mark.usefixtures("few")
def test_figures() -> None:
    figures = json.loads(json.dumps(measure(Session("cpu", memory()), seconds=1)))
    assert figures["launch"]["seconds"] > 0
    assert figures["launch"]["round_trip_seconds"] > 0
    assert [c["direction"] for c in figures["copies"]] == ["htod", "dtoh", "dtod"]
    assert all(c["bytes_per_second"] > 0 for c in figures["copies"])
    assert [k["type"] for k in figures["kernels"]] == ["fp32", "bf16"]
    assert all(set(k) == KEYS and k["seconds"] > 0 for k in figures["kernels"])
    assert figures["kernels"][0]["numpy_seconds"] > 0
    assert figures["kernels"][1]["numpy_seconds"] is None  # NumPy has no bfloat16


@pytest.mark.usefixtures("few")
def test_kernels_that_cannot_be_timed_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session("cpu", memory(), capabilities=Capabilities(types=("fp32",)))

    def fails(*_: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(problems, "kernel_time", fails)
    first, second = problems.kernels(session, time.monotonic() + 1)
    assert first["error"] == "RuntimeError: no such thing"
    assert "bf16" in second["error"]
    assert first["seconds"] is None


def test_nothing_is_measured_where_nothing_runs() -> None:
    assert measure(Session("amd", HostMemory())) == {"launch": None, "copies": [], "kernels": []}


def test_every_group_of_the_level_is_timed_at_a_real_size() -> None:
    groups = {check.name.split("/")[1] for check, _ in problems.timed()}
    assert {
        "vector-add",
        "softmax",
        "matmul",
        "attention",
        "attention-backward",
        "convolution",
        "sort",
    } <= groups
    assert len(groups) > 30


def test_peers_in_numpy_take_the_operands() -> None:
    for check, problem in problems.timed():
        assert isinstance(problem, Problem)
        if check.name.split("/")[1] in ("rotary", "rms-norm", "swiglu", "sums", "triangle", "batched-matmul"):
            operands = list(problem.operands(np.random.default_rng(0)))
            assert problem.peer is not None
            problem.peer(*(operand.values for operand in operands))


def test_arrays_are_made_once() -> None:
    pool = problems.Pool(memory())
    first = pool.empty(KINDS["fp32"], (4,))
    pool.rewind()
    assert pool.empty(KINDS["fp32"], (4,)) is first
    assert pool.empty(KINDS["fp32"], (4,)) is not first
    pool.rewind()
    assert pool.empty(KINDS["fp32"], (8,)) is not first


@pytest.mark.parametrize(
    ("takes", "budget", "calls"),
    [
        (0.002, 0.02, 10),
        (0.002, 0, timing.FEWEST_SAMPLES),
        (0.11, 0, 1),
        (0.0001, 0, 1 + timing.FEWEST_SAMPLES * 10),  # a sample takes a millisecond
    ],
)
def test_timing_takes_what_it_is_given(
    takes: float, budget: float, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0

    def call() -> None:
        nonlocal made
        made += 1

    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: made * takes))
    found = timing.time_of(call, budget=budget * 0.999)
    assert found.seconds == pytest.approx(takes)
    assert found.spread == pytest.approx(0, abs=1e-9)
    assert made == calls
