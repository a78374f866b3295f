"""Numbers that launches receive, and where they come from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from triton_porting_kit.conformance.judge.provenance import Known
from triton_porting_kit.conformance.judge.scalars import Scalars, differences
from triton_porting_kit.conformance.judge.task import Call
from triton_porting_kit.conformance.judge.values import Leaf, flatten
from triton_porting_kit.conformance.types import KINDS
from triton_porting_kit.replay.manifest import Slot

ADDRESS = 0x7F00_0000_1000
TTIR = b"""
    %c7_i32 = arith.constant 7 : i32
    %cst = arith.constant dense<0.1> : tensor<4x4xf32>
    %inf = arith.constant 0x7F800000 : f32
    %half = arith.constant 0x3C01 : f16
    %yes = arith.constant true
"""


def call(scale: float, elements: int = 5000) -> Call:
    leaves: list[Leaf] = []
    values = np.linspace(0, 1, elements, dtype=np.float32)
    tree = flatten((values, np.array([4096 * 999], np.int32), scale), leaves)
    return Call(leaves, tree, [(KINDS["fp32"], (1,))])


def received(made: Call, ttir: bytes = b"", **values: Any) -> Scalars:
    """What one launch received; types by the letter after which an argument is named."""
    types = {"f": "fp32", "i": "i32", "l": "i64"}
    slots = [Slot(name, types[name[0]], 0, 4, value) for name, value in values.items()]
    notes = [f"the integer 'l' is an address in device memory ({ADDRESS:#x}): and so on"]
    manifest = SimpleNamespace(slots=slots, notes=notes, kernel=SimpleNamespace(ttir="ttir"))
    found = Scalars(made)
    found.look("0: k", SimpleNamespace(manifest=manifest, content=lambda name: ttir), Known(made).foreign)  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("name", "value", "counted"),
    [
        ("f", "0.123", (1, 0)),
        ("f", "1.0", (0, 0)),
        ("f", repr(float(np.float32(0.3))), (0, 0)),
        ("f", "nan", (0, 0)),
        ("i", 1199556792, (1, 0)),
        ("i", -1199556792, (1, 0)),
        ("i", 5001, (0, 1)),
        ("i", 4096 * 999, (0, 0)),
        ("l", ADDRESS, (0, 0)),
        ("l2", ADDRESS, (1, 0)),
    ],
    ids=str,
)
def test_where_a_number_comes_from(name: str, value: Any, counted: tuple[int, int]) -> None:
    """Elements of inputs, numbers of the task and addresses are known; others are not, or may be lengths."""
    made = call(0.3)
    evidence = differences((received(made, **{name: value}), made), (Scalars(made), made), shown=9)
    assert (evidence[0]["numbers"], evidence[0]["integers"]) == counted
    assert (evidence[1]["numbers"], evidence[1]["integers"]) == (0, 0)


def test_constants_of_kernels() -> None:
    assert sorted(received(call(0.3), TTIR).found) == [0.1, 1.0009765625, 7]


def test_what_both_calls_pass_does_not_count() -> None:
    made = call(0.3)
    evidence = differences((received(made, f="0.123"), made), (received(made, f="0.123"), made), shown=9)
    assert [item["scalars"] for item in evidence] == [[], []]
    other = call(0.123)  # which explains it in that call
    evidence = differences((received(made, f="0.123"), made), (received(other, f="0.123"), other), shown=9)
    assert [item["scalars"] for item in evidence] == [[], []]


@pytest.mark.parametrize(
    ("other", "derived"), [(call(0.3), False), (call(0.4), True), (call(0.3, 4999), True)]
)
def test_what_the_task_gives(other: Call, derived: bool) -> None:
    first, second = differences((Scalars(other), call(0.3)), (Scalars(other), other), shown=9)
    assert first["derived"] == second["derived"] == derived
