"""The oracle's arithmetic: what is exact is right, what is not is within its bound."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from triton_porting_kit.conformance.rounding import round_exact
from triton_porting_kit.conformance.stress import numbers
from triton_porting_kit.conformance.stress.draws import content
from triton_porting_kit.conformance.stress.numbers import Datum, as_number
from triton_porting_kit.conformance.stress.program import IllConditioned
from triton_porting_kit.conformance.types import KINDS

KIND_NAMES = ("fp16", "bf16", "fp32", "fp64")


def operand(name: str, flavour: str, seed: int) -> Datum:
    return as_number(name, content(KINDS[name], 200, flavour, seed))


@pytest.mark.parametrize("name", KIND_NAMES)
@pytest.mark.parametrize("flavour", ["small", "full"])
@pytest.mark.parametrize("operation", ["add", "multiply"])
def test_results_are_within_their_bounds(name: str, flavour: str, operation: str) -> None:
    a, b = operand(name, flavour, 1), operand(name, flavour, 2)
    found = getattr(numbers, operation)(a, b)
    for x, y, value, error in zip(a.value, b.value, found.value, found.errors, strict=True):
        exact = Fraction(x) + Fraction(y) if operation == "add" else Fraction(x) * Fraction(y)
        if error == 0:
            assert Fraction(value) == exact
        else:
            assert abs(Fraction(value) - exact) <= Fraction(error)
            assert abs(Fraction(round_exact(exact, KINDS[name])) - Fraction(value)) <= Fraction(error)
    if flavour == "small" and name != "bf16":
        assert found.error is None


@pytest.mark.parametrize("name", KIND_NAMES)
def test_sums_in_any_order_are_within_their_bounds(name: str) -> None:
    kind, x = KINDS[name], operand(name, "full", 3)
    x = Datum(kind, x.value[: 4 if name == "bf16" else 12])
    found = numbers.sum_along(x, 0)
    order = np.random.default_rng(0)
    for _ in range(20):
        total = Fraction(0)
        for value in order.permutation(x.value):
            total = Fraction(round_exact(total + Fraction(value), kind))
        assert abs(total - Fraction(float(found.value))) <= Fraction(float(found.errors))


@pytest.mark.parametrize("name", ["fp32", "fp64"])
def test_fused_products_are_within_the_bound(name: str) -> None:
    """What the oracle itself rounds counts, too."""
    a, b, c = (operand(name, "full", seed) for seed in (4, 5, 6))
    found = numbers.add(numbers.multiply(a, b), c)
    fused = [
        round_exact(Fraction(x) * Fraction(y) + Fraction(z), KINDS[name])
        for x, y, z in zip(a.value, b.value, c.value, strict=True)
    ]
    assert (np.abs(np.array(fused) - found.value) <= found.errors).all()


def test_what_jumps_wants_exact_numbers() -> None:
    inexact = numbers.divide(operand("fp32", "ones", 0), as_number("fp32", np.full(200, 3.0)), 2.5)
    with pytest.raises(IllConditioned):
        inexact.exact()
    with pytest.raises(IllConditioned):
        numbers.convert(inexact, KINDS["i32"])


def test_what_overflows_is_refused() -> None:
    large = as_number("fp16", np.full(4, 60000.0))
    with pytest.raises(IllConditioned):
        numbers.add(large, large)
    with pytest.raises(IllConditioned):
        numbers.convert(as_number("fp32", np.full(4, 300.0)), KINDS["i8"])


def test_what_is_added_to_a_product_may_be_what_its_sums_begin_with() -> None:
    random = np.random.default_rng(1)
    x = as_number("fp32", random.integers(-64, 64, (16, 16)) / 4)
    product = numbers.product_of(as_number("fp32", np.ones((16, 16))), x, None, KINDS["fp32"])
    assert product.error is None
    other = as_number("fp32", random.standard_normal((16, 16)).astype(np.float32) / 3)
    for a, b in ((product, other), (other, product)):
        found = numbers.add(a, b)
        begun = other.value.astype(np.float32)
        for row in x.value.astype(np.float32):
            begun = begun + row
        assert (np.abs(begun - found.value) <= found.errors).all()
        assert (np.abs(begun - found.value) > np.spacing(np.abs(found.value).astype(np.float32))).any()
        assert (found.errors < 1e-3).all()
    whole = as_number("fp32", np.full((16, 16), 3.0))
    assert numbers.add(product, whole).error is None
