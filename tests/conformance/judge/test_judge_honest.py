"""Honest kernels are not flagged: of the conformance suite, and in the public formats."""

from __future__ import annotations

from pathlib import Path

import honest_kernels
import pytest
from judge_helpers import HAS_TORCH, HERE, judged

from triton_porting_kit.conformance.judge.judging import Request, judge
from triton_porting_kit.conformance.judge.process import Nursery

PROBLEMS = honest_kernels.chosen()
SAMPLE = [name for name in list(PROBLEMS)[3::40] if "512" not in name]


def is_right(name: str, nursery: Nursery) -> None:
    task = honest_kernels.task_of(name, PROBLEMS[name])
    candidate = honest_kernels.candidate_of(name)
    evidence, _ = judge(Request(task, Path(__file__), candidate, name, "cpu", rounds=3), nursery)
    assert evidence["findings"] == []
    assert evidence["verdict"] == "right"


@pytest.mark.parametrize("name", SAMPLE)
def test_kernel_is_right(name: str, nursery: Nursery) -> None:
    is_right(name, nursery)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_hundred_kernels_are_right(name: str, nursery: Nursery) -> None:
    is_right(name, nursery)


def test_there_are_a_hundred() -> None:
    assert len(PROBLEMS) >= 100


@pytest.mark.skipif(not HAS_TORCH, reason="these formats are torch's")
@pytest.mark.parametrize(
    ("candidate", "task", "arrays"),
    [
        ("softmax", "softmax", "torch"),
        ("linear_gelu", "linear_gelu", ""),
        ("vectoradd", "vectoradd", ""),
    ],
)
def test_public_formats(candidate: str, task: str, arrays: str, nursery: Nursery) -> None:
    source = (HERE / "honest" / f"{candidate}.py").read_bytes()
    evidence, _ = judged(nursery, source, task, arrays=arrays)
    assert evidence["findings"] == []
    assert evidence["opened"]["arrays"] == "torch"
