"""Floating-point instructions, against NumPy and exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import triton
from ptx_kernels import assert_same, run, sample
from ptx_oracles import directed, each, flushing, halves, narrow, rounded, same_halves, wide

F32 = np.float32


def _fused(a: float, b: float, c: float) -> Any:
    """a · b + c exactly: a fraction, and a float where it is special."""
    if not all(np.isfinite((a, b, c))):
        return np.float64(a) * b + c
    return Fraction(a) * Fraction(b) + Fraction(c) or a * b + c


_fma = np.frompyfunc(_fused, 3, 1)


def _positive(*operands: Any) -> Any:
    return np.frompyfunc(lambda v: v if v > 0 or v != v else 0.0, 1, 1)(_fma(*operands))


def _minimum(a: Any, b: Any) -> Any:
    smaller = np.where((a < b) | ((a == b) & np.signbit(a)), a, b)
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, smaller))


def _maximum(a: Any, b: Any) -> Any:
    return -_minimum(-a, -b)


def _with_nan(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: np.where(np.isnan(a) | np.isnan(b), np.nan, function(a, b))


def _clamped(x: Any) -> Any:
    return np.where(x > 0, np.minimum(x, F32(1)), F32(0)).astype(F32)


EXACT: dict[str, tuple[str, Callable[..., Any]]] = {
    "add.f32 $0, $1, $2;": ("ff", np.add),
    "add.ftz.f32 $0, $1, $2;": ("ff", flushing(np.add)),
    "sub.rn.f32 $0, $1, $2;": ("ff", np.subtract),
    "mul.f32 $0, $1, $2;": ("ff", np.multiply),
    "mul.rn.ftz.f32 $0, $1, $2;": ("ff", flushing(np.multiply)),
    "mul.sat.f32 $0, $1, $2;": ("ff", lambda a, b: _clamped(a * b)),
    "mul.f32 $0, $1, 0f3F000000;": ("f", lambda a: a * F32(0.5)),
    "add.f32 $0, $1, 1.5;": ("f", lambda a: a + F32(1.5)),
    "sub.f32 $0, 0f7F800000, $1;": ("f", lambda a: F32(np.inf) - a),
    "add.f64 $0, $1, $2;": ("dd", np.add),
    "mul.rn.f64 $0, $1, $2;": ("dd", np.multiply),
    "div.rn.f32 $0, $1, $2;": ("ff", np.divide),
    "div.full.f32 $0, $1, $2;": ("ff", np.divide),
    "div.approx.ftz.f32 $0, $1, $2;": ("ff", flushing(np.divide)),
    "div.rn.f64 $0, $1, $2;": ("dd", np.divide),
    "rcp.rn.f32 $0, $1;": ("f", lambda a: F32(1) / a),
    "rcp.approx.ftz.f32 $0, $1;": ("f", flushing(lambda a: F32(1) / a)),
    "rcp.rn.f64 $0, $1;": ("d", lambda a: 1 / a),
    "sqrt.rn.f32 $0, $1;": ("f", np.sqrt),
    "sqrt.approx.ftz.f32 $0, $1;": ("f", flushing(np.sqrt)),
    "sqrt.rn.f64 $0, $1;": ("d", np.sqrt),
    "abs.f32 $0, $1;": ("f", np.abs),
    "abs.ftz.f32 $0, $1;": ("f", flushing(np.abs)),
    "neg.f32 $0, $1;": ("f", np.negative),
    "neg.ftz.f32 $0, $1;": ("f", flushing(np.negative)),
    "neg.f64 $0, $1;": ("d", np.negative),
    "min.f32 $0, $1, $2;": ("ff", _minimum),
    "min.ftz.f32 $0, $1, $2;": ("ff", flushing(_minimum)),
    "min.NaN.f32 $0, $1, $2;": ("ff", _with_nan(_minimum)),
    "max.f32 $0, $1, $2;": ("ff", _maximum),
    "max.NaN.f32 $0, $1, $2;": ("ff", _with_nan(_maximum)),
    "max.f64 $0, $1, $2;": ("dd", _maximum),
    "copysign.f32 $0, $1, $2;": ("ff", lambda a, b: np.copysign(b, a)),
    "fma.rn.f64 $0, $1, $2, 0d0000000000000000;": ("dd", lambda a, b: a * b + 0.0),
    "{ .reg .f32 t; mov.f32 t, $1; mov.f32 $0, t; }": ("f", lambda a: a),
    "{ .reg .pred p; setp.gt.f32 p, $1, $2; selp.f32 $0, $1, $2, p; }": ("ff", lambda a, b: np.where(a > b, a, b)),
    "{ .reg .pred p; setp.ltu.ftz.f32 p, $1, 0f00000000; selp.f32 $0, 0f00000000, $1, p; }": (
        "f", lambda a: np.where((a < 0) & (np.abs(a) >= 2.0**-126) | np.isnan(a), F32(0), a)),
}  # fmt: skip


@pytest.mark.parametrize("asm", EXACT)
def test_exactly_rounded(asm: str) -> None:
    operands, oracle = EXACT[asm]
    arrays = [sample(letter, seed) for seed, letter in enumerate(operands)]
    actual = run(triton.runtime.driver.active.device, asm, operands[0], operands, arrays)
    with np.errstate(all="ignore"):
        assert_same(actual, oracle(*arrays), *arrays)


def _root(a: Fraction, bits: int = 200) -> Fraction:
    """The square root with an error far below half a unit; exact where it is rational."""
    if a < 0:
        raise ValueError(a)
    scaled = a * 4**bits
    whole = math.isqrt(scaled.numerator // scaled.denominator)
    return (
        Fraction(whole, 2**bits)
        if Fraction(whole) ** 2 == scaled
        else Fraction(2 * whole + 1, 2 ** (bits + 1))
    )


DIRECTED: dict[str, tuple[str, Callable[..., Fraction]]] = {
    "add.{}.f32 $0, $1, $2;": ("ff", lambda a, b: a + b),
    "sub.{}.f32 $0, $1, $2;": ("ff", lambda a, b: a - b),
    "mul.{}.f32 $0, $1, $2;": ("ff", lambda a, b: a * b),
    "fma.{}.f32 $0, $1, $2, $3;": ("fff", lambda a, b, c: a * b + c),
    "mad.{}.f32 $0, $1, $2, $3;": ("fff", lambda a, b, c: a * b + c),
    "div.{}.f32 $0, $1, $2;": ("ff", lambda a, b: a / b),
    "rcp.{}.f32 $0, $1;": ("f", lambda a: 1 / a),
    "sqrt.{}.f32 $0, $1;": ("f", _root),
}


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@pytest.mark.parametrize("form", DIRECTED)
def test_rounding_modes(form: str, mode: str) -> None:
    operands, oracle = DIRECTED[form]
    arrays = [sample(letter, seed) for seed, letter in enumerate(operands)]
    actual = run(triton.runtime.driver.active.device, form.format(mode), "f", operands, arrays)
    expected = rounded(oracle, mode)(*arrays)
    assert (expected != 7).sum() > 150
    assert_same(np.where(expected == 7, F32(7), actual), expected, *arrays)


def test_the_oracle_of_rounding_modes() -> None:
    third = Fraction(1, 3)
    found = [directed(sign * third, mode) for sign in (1, -1) for mode in ("rz", "rm", "rp")]
    low, high = float(np.nextafter(F32(1 / 3), F32(0))), float(F32(1 / 3))
    assert found == [low, low, high, -low, -high, -low]
    assert directed(Fraction(10) ** 40, "rp") == np.inf
    assert directed(Fraction(10) ** 40, "rz") == float(np.finfo(F32).max)


APPROXIMATE: dict[str, tuple[str, Callable[..., Any]]] = {
    "tanh.approx.f32 $0, $1;": ("f", np.tanh),
    "sin.approx.f32 $0, $1;": ("f", np.sin),
    "cos.approx.f32 $0, $1;": ("f", np.cos),
    "ex2.approx.f32 $0, $1;": ("f", np.exp2),
    "ex2.approx.ftz.f32 $0, $1;": ("f", np.exp2),
    "lg2.approx.f32 $0, $1;": ("f", np.log2),
    "rsqrt.approx.f32 $0, $1;": ("f", lambda a: 1 / np.sqrt(a)),
    "rsqrt.approx.f64 $0, $1;": ("d", lambda a: 1 / np.sqrt(a)),
}


@pytest.mark.parametrize("asm", APPROXIMATE)
def test_elementary_functions(asm: str) -> None:
    """Within two units in the last place, although PTX allows more."""
    operands, oracle = APPROXIMATE[asm]
    (x,) = [sample(letter, 4) for letter in operands]
    (actual,) = [run(triton.runtime.driver.active.device, asm, operands, operands, [x])]
    with np.errstate(all="ignore"):
        exact = oracle(x.astype(np.longdouble))
        if ".ftz" in asm:
            exact = np.where(np.abs(exact) < 2.0**-126, 0, exact)
        close = exact.astype(x.dtype)
        unit = np.abs(np.spacing(np.where(np.isfinite(close), close, 1)))
        away = np.abs(actual.astype(np.longdouble) - exact) / unit
    special = ~np.isfinite(close)
    assert (np.isnan(actual) == np.isnan(close)).all()
    assert (actual[special & ~np.isnan(close)] == close[special & ~np.isnan(close)]).all()
    assert away[~special].max() <= 2


HALVES: dict[str, tuple[int, Callable[..., Any]]] = {
    "add.{}": (2, np.add),
    "sub.rn.{}": (2, np.subtract),
    "mul.{}": (2, np.multiply),
    "fma.rn.{}": (3, _fma),
    "fma.rn.relu.{}": (3, _positive),
    "abs.{}": (1, np.abs),
    "neg.{}": (1, np.negative),
    "min.{}": (2, _minimum),
    "max.NaN.{}": (2, _with_nan(_maximum)),
}


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("form", HALVES)
def test_pairs_of_halves(form: str, kind: str) -> None:
    sources, oracle = HALVES[form]
    operands = "r" * sources
    random = np.random.default_rng(5)
    arrays = [sample("r", seed) for seed in range(sources)]
    for array in arrays:  # half of them have exponents near that of 1
        near = random.integers(0x3000, 0x4200, (2, 256), np.uint32)
        array[256:] = near[0] | near[1] << 16
    statement = f"{form.format(kind + 'x2')} {', '.join(f'${k}' for k in range(sources + 1))};"
    actual = run(triton.runtime.driver.active.device, statement, "r", operands, arrays)
    with np.errstate(all="ignore"):
        assert_same(same_halves(actual, kind), halves(oracle, kind)(*arrays), *arrays)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_halves_in_their_own_registers(kind: str) -> None:
    arrays = [sample("h", seed) for seed in range(3)]
    actual = run(triton.runtime.driver.active.device, f"fma.rn.{kind} $0, $1, $2, $3;", "h", "hhh", arrays)
    with np.errstate(all="ignore"):
        expected = narrow(_fma(*(wide(array, kind) for array in arrays)), kind)
    assert_same(np.where(np.isnan(wide(actual, kind)), np.uint16(0x7FFF), actual), expected, *arrays)


@pytest.mark.parametrize(("opcode", "function"), [("tanh.approx.{}x2", np.tanh), ("ex2.approx{}x2", np.exp2)])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_elementary_functions_of_halves(opcode: str, function: Any, kind: str) -> None:
    """Computed in float32, and rounded to 16 bits: nearly always the nearest number, and never further than the next."""
    name = opcode.format(kind if "tanh" in opcode else ".ftz.bf16" if kind == "bf16" else ".f16")
    x = sample("r", 6)
    actual = run(triton.runtime.driver.active.device, f"{name} $0, $1;", "r", "r", [x])
    for shift in (0, 16):
        value, found = (wide(bits >> np.uint32(shift), kind) for bits in (x, actual))
        if ".ftz" in name:
            value = np.where(np.abs(value) < 2.0**-126, 0.0, value)
        with np.errstate(all="ignore"):
            exact = function(value)
        pattern, expected = (actual >> np.uint32(shift) & 0xFFFF).astype(int), narrow(exact, kind).astype(int)
        near = (np.abs(pattern - expected) <= 1) | np.isnan(found) | (np.abs(exact) < 2.0**-126)
        assert near.all()
        assert (np.isnan(found) == np.isnan(exact)).all()


PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda x: ~np.isnan(x),
    "notanumber": np.isnan,
    "normal": lambda x: np.isfinite(x) & ((np.abs(x) >= 2.0**-126) | (x == 0)),
    "subnormal": lambda x: (np.abs(x) < 2.0**-126) & (x != 0),
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_properties(name: str) -> None:
    x = sample("f", 8)
    asm = f"{{ .reg .pred p; testp.{name}.f32 p, $1; selp.b32 $0, 1, 0, p; }}"
    actual = run(triton.runtime.driver.active.device, asm, "r", "f", [x])
    assert_same(actual, PROPERTIES[name](x), x)


COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@pytest.mark.parametrize("name", [*COMPARISONS, *(f"{name}u" for name in COMPARISONS), "num", "nan"])
def test_comparisons(name: str) -> None:
    x, y = sample("f", 1), sample("f", 2)
    y[:40] = x[:40]
    asm = f"{{ .reg .pred p; setp.{name}.f32 p, $1, $2; selp.b32 $0, 1, 0, p; }}"
    actual = run(triton.runtime.driver.active.device, asm, "r", "ff", [x, y])
    unordered = np.isnan(x) | np.isnan(y)
    if name in ("num", "nan"):
        expected = unordered == (name == "nan")
    else:
        sign = COMPARISONS[name.removesuffix("u")]
        compared = eval(f"x {sign} y", {"x": x, "y": y})
        expected = np.where(unordered, name.endswith("u"), compared)
    assert_same(actual, each(int)(expected), x, y)
