"""Polynomials and affine forms, by evaluating them."""

from __future__ import annotations

from itertools import product
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from triton_porting_kit.compiler.structured.affine import Affine
from triton_porting_kit.compiler.structured.poly import ONE, ZERO, Poly

_VALUES = (3, -5, 7)
_MONOMIALS = st.lists(st.integers(0, 2), max_size=2).map(lambda m: tuple(sorted(m)))
_POLYS = st.lists(st.tuples(_MONOMIALS, st.integers(-9, 9)), max_size=4).map(Poly.of)


def evaluate(poly: Poly) -> int:
    return sum(c * prod(_VALUES[i] for i in m) for m, c in poly.terms)


@given(_POLYS, _POLYS)
def test_arithmetic_of_polynomials(a: Poly, b: Poly) -> None:
    assert evaluate(a + b) == evaluate(a) + evaluate(b)
    assert evaluate(a - b) == evaluate(a) - evaluate(b)
    assert evaluate(a * b) == evaluate(a) * evaluate(b)
    assert a - a == ZERO
    assert (a + b) - b == a


@given(_POLYS, st.integers(1, 4))
def test_division_is_exact_or_refused(a: Poly, divisor: int) -> None:
    assert (a * Poly.constant(divisor)).divided(divisor) == a
    found = a.divided(divisor)
    assert found is None or evaluate(found) * divisor == evaluate(a)


def test_a_constant_knows_its_value() -> None:
    assert (Poly.constant(3) + Poly.constant(4)).value == 7
    assert ZERO.value == 0
    assert Poly.scalar(0).value is None


def at(affine: Affine, index: tuple[int, ...]) -> int:
    """The element at a position."""
    total = evaluate(affine.offset)
    for i, stride, wrap in zip(index, affine.strides, affine.wraps, strict=True):
        i = i if wrap is None else (evaluate(wrap.start) + i) % evaluate(wrap.size)
        total += evaluate(stride) * i
    return total


def test_wrap_needs_a_run_of_neighbours() -> None:
    run = Affine(Poly.constant(2), (ONE,), (None,))
    wrapped = run.wrapped(Poly.scalar(0))
    assert wrapped is not None
    assert [at(wrapped, (i,)) for i in range(4)] == [2, 0, 1, 2]
    assert run.scaled(Poly.constant(2)).wrapped(Poly.scalar(0)) is None
    assert wrapped.wrapped(Poly.scalar(0)) is None


def test_one_dimension_has_one_index() -> None:
    run = Affine(ZERO, (ONE,), (None,))
    wrapped = run.wrapped(Poly.constant(3))
    assert wrapped is not None
    assert wrapped.add(run) is None
    double = wrapped.add(wrapped)
    assert double is not None
    assert [at(double, (i,)) for i in range(4)] == [0, 2, 4, 0]
    nothing = wrapped.add(wrapped.scaled(Poly.constant(-1)))
    assert nothing == Affine.uniform(ZERO, 1)


def test_shape_changes_move_the_dimensions() -> None:
    tile = Affine(ONE, (Poly.constant(10), ONE), (None, None))
    assert at(tile.expanded(1), (2, 0, 3)) == at(tile, (2, 3))
    assert at(tile.transposed((1, 0)), (3, 2)) == at(tile, (2, 3))
    reshaped = tile.reshaped((4, 5), (4, 1, 5))
    assert reshaped is not None
    assert all(at(reshaped, (i, 0, j)) == at(tile, (i, j)) for i, j in product(range(4), range(5)))
    assert tile.reshaped((4, 5), (20,)) is None
    assert Affine.uniform(ONE, 2).reshaped((4, 5), (20,)) == Affine.uniform(ONE, 1)
