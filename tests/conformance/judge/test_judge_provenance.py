"""Recordings of launches: what they must hold, and what is said of those that are gone or damaged."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
from judge_helpers import task_path

from triton_porting_kit.conformance.judge import formats
from triton_porting_kit.conformance.judge.process import CandidateProcess, Nursery
from triton_porting_kit.conformance.judge.provenance import Known, Recording, compare
from triton_porting_kit.conformance.judge.task import Call
from triton_porting_kit.conformance.judge.values import Leaf, flatten
from triton_porting_kit.conformance.types import KINDS

HONEST = """
import os
import triton
import triton.language as tl

assert not [name for name in os.environ if "CAPTURE" in name]


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    total = tl.load(x_ptr + offsets, mask=inside) + tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, total, mask=inside)


def add(x, y, out):
    add_kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    assert not [name for name in os.environ if "CAPTURE" in name]
"""


def test_recordings_that_are_gone_or_damaged_are_told(nursery: Nursery) -> None:
    """The environment of the process that records does not show it."""
    task = formats.load(task_path("add"), 7)
    random = np.random.default_rng(7)
    with CandidateProcess(nursery, 60) as process:
        assert "opened" in process.open(task, HONEST.encode(), "cpu", "", record="recorded")
        folder, calls = process.work / "recorded", []
        for _ in range(2):
            call = task.make(random, task.timed)
            answer = process.call(task, call, check=True, reuse=False)
            assert answer.results is not None, answer.failure
            calls.append((call, answer.results))
        assert answer.said["launches"] == 2
        (first, second) = sorted(folder.glob("[0-9]*"))

        def evidence() -> dict[str, Any]:
            done = {second}
            found = [Recording.of(folder, done, *calls[0], 1), Recording.of(folder, done, *calls[1], 1)]
            return compare(*found)[0]

        whole = evidence()
        assert (whole["launches"], whole["made"], whole["why_not"], whole["values"]) == (1, 1, "", 0)
        buffer = next(first.glob("buffer-*.before.bin"))
        buffer.write_bytes(buffer.read_bytes()[:-4])
        assert "record the launch again" in evidence()["why_not"]
        shutil.rmtree(first)
        assert (evidence()["launches"], evidence()["made"]) == (0, 1)


def test_known_values_may_be_converted() -> None:
    leaves: list[Leaf] = []
    tree = flatten((np.array([1.001, np.nan]), 0.3), leaves)
    known = Known(Call(leaves, tree, []))
    assert known.foreign(np.array([1.001, 0.3, np.nan], np.float32), KINDS["fp32"]).size == 0
    assert known.foreign(np.array([np.float16(1.001), 2.0]), KINDS["fp16"]).tolist() == [2.0]
    known.add(np.array([2.0]))
    assert known.foreign(np.array([2.0]), KINDS["fp16"]).size == 0
