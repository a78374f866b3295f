"""The checks of the table catch what they are for, and its types are what they should be."""

from __future__ import annotations

import numpy as np
import pytest
from conformance_helpers import memory

from triton_porting_kit.conformance.language import running
from triton_porting_kit.conformance.language.shapes import tile
from triton_porting_kit.conformance.language.table import Case, Op
from triton_porting_kit.conformance.language.work import Result, Work
from triton_porting_kit.conformance.rounding import from_float64, on_grid, ulp_distance
from triton_porting_kit.conformance.types import (
    KINDS,
    MINIFLOATS,
    Kind,
    every_value,
    from_bits,
    to_bits,
)
from triton_porting_kit.driver.dtypes import as_dtype, decode

I32 = KINDS["i32"]
ARRAY = np.arange(16, dtype=np.int32)
SOURCE = (
    "def kernel(X, O):\n    i = tl.arange(0, 16)\n    x = tl.load(X + i)\n    tl.store({place}, x + {more})\n"
)


def work(place: str = "O + i", more: int = 0) -> Work:
    return Work(SOURCE.format(place=place, more=more), ((ARRAY, I32),), (Result(I32, ARRAY),))


def test_right_result_passes() -> None:
    running.launch(work(), memory())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (work(more=1), r"result 0 \(i32\): 16 of 16 differ; element \[0\] is .*1.*, not .*0"),
        (work("X + i", 1), "operand 0 was written to"),
        (work("O - 1 + i"), "4 bytes before an array of i32"),
        (work("O + 1 + i"), "0 bytes behind the end of an array of i32"),
    ],
    ids=["result", "operand", "before", "behind"],
)
def test_wrong_kernel_is_caught(wrong: Work, message: str) -> None:
    with pytest.raises(running.WrongResult, match=message):
        running.launch(wrong, memory())


def test_cases_of_a_batch_are_told_apart() -> None:
    works = {"right": work(), "wrong": work(more=2), "broken": work("nothing + i")}

    def build(kind: Kind, shape: object) -> Work:
        return works[str(shape)]

    shapes = tuple(type(tile(16))(name, (16,)) for name in works)
    op = Op("three", "Section", "x", build, ("i32",), shapes)
    for names in (("right", "wrong"), ("right", "wrong", "broken")):
        found = running.run((Case(op, I32, shape) for shape in shapes if shape.name in names), memory())
        assert found["three-i32-right"] is None
        assert isinstance(found["three-i32-wrong"], running.WrongResult)
    assert "nothing" in str(found["three-i32-broken"])


@pytest.mark.parametrize("kind", [kind for kind in MINIFLOATS if kind.name != "fp8e4b15"], ids=str)
def test_tables_of_numbers_are_those_of_device_arrays(kind: Kind) -> None:
    patterns = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(from_bits(patterns, kind), decode(patterns, as_dtype(kind.device)))


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind.bits <= 16], ids=str)
def test_values_keep_their_patterns(kind: Kind) -> None:
    values = every_value(kind)
    again = from_bits(to_bits(values, kind), kind)
    np.testing.assert_array_equal(again, values)
    known = values == values
    np.testing.assert_array_equal(np.signbit(again)[known], np.signbit(values)[known])


@pytest.mark.parametrize("name", ["fp16", "fp32"])
def test_rounding_is_that_of_numpy(name: str) -> None:
    kind = KINDS[name]
    values = np.random.default_rng(0).standard_normal(1000) * 2.0 ** np.arange(-160, 40).repeat(5)
    with np.errstate(all="ignore"):
        expected = values.astype(kind.host)
    near = on_grid(values, kind)
    np.testing.assert_array_equal(np.where(np.isinf(expected), expected, near), expected)
    np.testing.assert_array_equal(from_float64(values, kind), expected)
    assert ulp_distance(expected, values, kind).max() <= 0.5
