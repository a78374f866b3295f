"""The interpreter's elements and functions, against exact arithmetic and the tables of formats."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import float_formats
import mpmath
import numpy as np
import pytest

from triton_porting_kit.compiler.dialect import TRAITS
from triton_porting_kit.compiler.dialect.interpreter import HANDLERS, formats, functions, real_functions
from triton_porting_kit.compiler.libdevice import symbols

NAMES = {
    "bf16": "bf16", "f16": "fp16", "f8E4M3FN": "fp8e4nv", "f8E5M2": "fp8e5", "f8E4M3FNUZ": "fp8e4b8",
    "f8E5M2FNUZ": "fp8e5b16",
}  # fmt: skip
"""Of MLIR's formats, those of the tables."""


def patterns_of(values: Any) -> Any:
    return np.asarray(values).view(f"u{values.dtype.itemsize}")


def test_every_operation_has_a_handler() -> None:
    assert set(TRAITS) - set(HANDLERS) == set()
    assert set(HANDLERS) - set(TRAITS) == {"func.call"}


def test_every_function_of_libdevice_is_there() -> None:
    meanings = {name for name in symbols().values() if "." not in name}
    of_types = {"abs", "pow"}  # operations of upstream's, by the types of their operands
    assert meanings - set(functions.FUNCTIONS) == of_types
    assert set(functions.FUNCTIONS) - meanings == set()


@pytest.mark.parametrize("element", NAMES)
def test_every_pattern_is_its_number(element: str) -> None:
    form = float_formats.FORMATS[NAMES[element]]
    patterns = np.arange(1 << form.bits, dtype=np.uint32).astype(form.patterns)
    values = patterns.view(formats.dtype_of(element))
    np.testing.assert_array_equal(formats.widen(values, element), float_formats.decode(patterns, form))


@pytest.mark.parametrize("toward_zero", [False, True], ids=["nearest", "toward zero"])
@pytest.mark.parametrize("wide", [np.float32, np.float64])
@pytest.mark.parametrize("element", NAMES)
def test_numbers_are_rounded_once(element: str, wide: Any, toward_zero: bool) -> None:
    form = float_formats.FORMATS[NAMES[element]]
    with np.errstate(all="ignore"):
        values = float_formats.around(form, wide)
        expected = float_formats.encode(values.astype(np.float64), form, "rtz" if toward_zero else "rtne")
        found = formats.narrow(
            values, element, toward_zero=toward_zero, keep_infinity=toward_zero or form.bits > 8
        )
    is_nan = np.isnan(float_formats.decode(expected, form))
    np.testing.assert_array_equal(np.isnan(formats.widen(found, element)), is_nan)
    np.testing.assert_array_equal(patterns_of(found)[~is_nan], expected[~is_nan])


def test_scales_and_elements_of_microscaling() -> None:
    scales = formats.widen(np.arange(255, dtype=np.uint8), "f8E8M0FNU")
    np.testing.assert_array_equal(scales, np.ldexp(np.float32(1), np.arange(255) - 127))
    assert np.isnan(formats.widen(np.uint8(255), "f8E8M0FNU"))
    assert formats.widen(np.arange(8, dtype=np.uint8), "f4E2M1FN").tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert formats.narrow(np.float32(-2.5), "f4E2M1FN") == 0b1100  # to the even one of 2 and 3
    back = formats.narrow(formats.widen(np.arange(1, 255, dtype=np.uint8), "f8E8M0FNU"), "f8E8M0FNU")
    np.testing.assert_array_equal(back, np.arange(1, 255))


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_integers_become_bf16_rounded_once(kind: Any) -> None:
    """Beyond 2**53, a rounding to f64 before would lose which side of the middle a number is on."""
    top = 63 if kind == np.uint64 else 62
    middle = 0x181 << (top - 8)  # of two numbers of bf16
    values = np.array([middle - 1, middle, middle + 1], kind)
    found = formats.widen(formats.from_integers(values, "bf16"), "bf16")
    low, high = float(0xC0 << (top - 7)), float(0xC1 << (top - 7))
    assert found.tolist() == [low, low, high]


_DIRECTED = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", _DIRECTED)
def test_directed_rounding_encloses_the_exact_result(name: str, kind: Any) -> None:
    values = np.array([1, -3, 0.1, 1e-40 if kind == np.float32 else 1e-310, -7e30, 2.5e-8], kind)
    a, b = np.array(list(itertools.product(values, values)), kind).T
    with np.errstate(all="ignore"):
        down, up, cut = (functions.FUNCTIONS[f"{name}_{mode}"](a, b) for mode in ("rd", "ru", "rz"))
    for x, y, low, high, shorter in zip(a, b, down, up, cut, strict=True):
        exact = _DIRECTED[name](Fraction(float(x)), Fraction(float(y)))
        if np.isfinite(low) and np.isfinite(high):
            assert Fraction(float(low)) <= exact <= Fraction(float(high))
            assert high == low or np.nextafter(low, kind(np.inf)) == high
            assert shorter == (low if exact > 0 else high)


def test_zero_has_a_sign_when_it_is_rounded_down() -> None:
    one, zero = np.float32(1), np.float32(0)
    signs = {
        mode: [
            np.signbit(functions.FUNCTIONS[f"add_{mode}"](*pair)).item()
            for pair in ((one, -one), (zero, zero))
        ]
        for mode in ("rd", "ru", "rz")
    }
    assert signs == {"rd": [True, False], "ru": [False, False], "rz": [False, False]}


_SPECIAL = {
    "erfcx": (lambda x: mpmath.exp(x * x) * mpmath.erfc(x), (-5, 40)),
    "erfinv": (mpmath.erfinv, (-0.999999, 0.999999)),
    "erfcinv": (lambda x: mpmath.erfinv(1 - x), (1e-30, 1.9)),
    "normcdf": (mpmath.ncdf, (-37, 8)),
    "normcdfinv": (lambda x: mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1), (1e-20, 0.9999)),
    "tgamma": (mpmath.gamma, (0.1, 30)),
    "cyl_bessel_i0": (lambda x: mpmath.besseli(0, x), (-600, 600)),
    "cyl_bessel_i1": (lambda x: mpmath.besseli(1, x), (-600, 600)),
    "exp10": (lambda x: mpmath.power(10, x), (-300, 300)),
    "sinpi": (mpmath.sinpi, (-50, 50)),
    "cospi": (mpmath.cospi, (-50, 50)),
    "rcbrt": (lambda x: 1 / mpmath.cbrt(x), (1e-3, 1e9)),
}


@pytest.mark.parametrize("name", _SPECIAL)
def test_special_functions_are_accurate(name: str) -> None:
    exactly, (low, high) = _SPECIAL[name]
    random = np.random.default_rng(1)
    x = random.uniform(low, high, 60)
    if low > 0:
        x = np.concatenate([x, np.exp(random.uniform(np.log(low), np.log(high), 60))])
    with mpmath.workdps(60), np.errstate(all="ignore"):
        found = real_functions.SPECIAL[name](x)
        for value, argument in zip(found, x, strict=True):
            exact = exactly(mpmath.mpf(float(argument)))
            unit = np.spacing(abs(float(exact)))
            assert abs(mpmath.mpf(float(value)) - exact) <= 4 * unit, f"{name}({argument!r}) is {value!r}"


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_fma_is_rounded_once(kind: Any) -> None:
    random = np.random.default_rng(2)
    a, b = random.uniform(-2, 2, (2, 200)).astype(kind)
    c = (-a * b).astype(kind)  # what is left is what a product's rounding lost
    for x, y, z, found in zip(a, b, c, real_functions.fma(a, b, c), strict=True):
        assert Fraction(float(found)) == Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
