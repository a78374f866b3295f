"""Neutral elements of combinations."""

from __future__ import annotations

import math

import pytest

from triton_porting_kit.compiler.loops.reductions.combinations import identity


@pytest.mark.parametrize(
    ("operation", "function", "values"),
    [
        ("addi", lambda a, b: a + b, (-5, 0, 9)),
        ("muli", lambda a, b: a * b, (-5, 0, 9)),
        ("ori", lambda a, b: a | b, (-5, 0, 9)),
        ("xori", lambda a, b: a ^ b, (-5, 0, 9)),
        ("andi", lambda a, b: a & b, (-5, 0, 9)),
        ("maxsi", max, (-(2**31), 0, 2**31 - 1)),
        ("minsi", min, (-(2**31), 0, 2**31 - 1)),
        ("maxui", lambda a, b: max(a, b, key=lambda v: v % 2**32), (0, 5, -1)),
        ("minui", lambda a, b: min(a, b, key=lambda v: v % 2**32), (0, 5, -1)),
    ],
)
def test_integers(operation: str, function: object, values: tuple[int, ...]) -> None:
    neutral = identity(f"arith.{operation}", "i32")
    assert callable(function)
    assert [function(neutral, value) for value in values] == list(values)


def test_floats() -> None:
    # -0 + x is x for zeros of both signs, 0 + -0 is not.
    assert math.copysign(1, identity("arith.addf", "f32")) == -1  # type: ignore[arg-type]
    assert identity("arith.maximumf", "f64") == -math.inf
    # The maximum that skips NaN keeps a NaN only if there is nothing else.
    assert identity("arith.maxnumf", "f32") == "0x7FC00000"
    assert identity("arith.minnumf", "f64") == "0x7FF8000000000000"


@pytest.mark.parametrize(
    ("operation", "element"), [("divf", "f32"), ("addf", "bf16"), ("subi", "i32"), ("andi", "i1")]
)
def test_where_there_is_none(operation: str, element: str) -> None:
    assert identity(f"arith.{operation}", element) is None
