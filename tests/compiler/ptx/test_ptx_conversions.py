"""``cvt``, against tables of all numbers of the small formats, NumPy and exact rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import triton
from ptx_kernels import COUNT, assert_same, run, sample
from ptx_oracles import (
    E2M1,
    E4M3,
    E5M2,
    directed,
    exponent,
    narrow,
    packed,
    same_halves,
    signed,
    small,
    wide,
)

F32 = np.float32
SMALL = {"e4m3x2": (E4M3, 0x7F), "e5m2x2": (E5M2, 0x7F)}


def _run(asm: str, result: str, operands: str, arrays: list[Any], pack: int = 1) -> Any:
    return run(triton.runtime.driver.active.device, asm, result, operands, arrays, pack)


# --- to packed formats -----------------------------------------------------------------------------------


@pytest.mark.parametrize("format", SMALL)
def test_pairs_of_floats_to_eight_bits(format: str) -> None:
    table, nan = SMALL[format]
    x, y = sample("f", 1), sample("f", 2)
    actual = _run(f"cvt.rn.satfinite.{format}.f32 $0, $1, $2;", "h", "ff", [x, y])
    assert_same(actual, packed(small(table, 8, nan), 8)(x, y), x, y)


def test_relu_makes_negative_numbers_zero() -> None:
    x, y = sample("f", 1), sample("f", 2)
    convert = small(E4M3, 8, 0x7F)
    positive = packed(lambda v: convert(v) if v > 0 or v != v else 0, 8)
    actual = _run("cvt.rn.satfinite.relu.e4m3x2.f32 $0, $1, $2;", "h", "ff", [x, y])
    assert_same(actual, positive(x, y), x, y)


@pytest.mark.parametrize("format", SMALL)
def test_halves_to_eight_bits(format: str) -> None:
    table, nan = SMALL[format]
    x = sample("r", 1)
    actual = _run(f"cvt.rn.satfinite.{format}.f16x2 $0, $1;", "h", "r", [x])
    high, low = wide(x >> np.uint32(16), "f16"), wide(x, "f16")
    assert_same(actual, packed(small(table, 8, nan), 8)(high, low), x)


@pytest.mark.parametrize("format", SMALL)
def test_every_eight_bit_float_to_halves(format: str) -> None:
    table, _ = SMALL[format]
    codes = np.arange(COUNT, dtype=np.uint16) % 256
    actual = _run(
        f"cvt.rn.f16x2.{format} $0, $1;", "r", "h", [codes | (codes ^ np.uint16(0x80)) << np.uint16(8)]
    )
    for shift, flip in ((0, 0), (16, 0x80)):
        found = wide(actual >> np.uint32(shift), "f16")
        for code, value in zip((codes ^ flip).tolist(), found.tolist(), strict=True):
            magnitude = code & 0x7F
            if magnitude >= len(table):
                expected = math.inf if format == "e5m2x2" and magnitude == 0x7C else math.nan
            else:
                expected = table[magnitude]
            assert value == math.copysign(expected, -1 if code & 0x80 else 1) or (
                value != value and expected != expected
            )


def test_pairs_of_floats_to_four_bits() -> None:
    x, y = sample("f", 3), sample("f", 4)
    actual = _run(
        "{ .reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, $1, $2; cvt.u32.u8 $0, t; }", "r", "ff", [x, y]
    )
    convert = small(E2M1, 4, 7)
    assert_same(actual, packed(convert, 4)(x, y), x, y)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_halves_to_four_and_eight_bits(kind: str) -> None:
    x = sample("r", 4)
    high, low = wide(x >> np.uint32(16), kind), wide(x, kind)
    actual = _run(
        f"{{ .reg .b8 t; cvt.rn.satfinite.e2m1x2.{kind}x2 t, $1; cvt.u32.u8 $0, t; }}", "r", "r", [x]
    )
    assert_same(actual, packed(small(E2M1, 4, 7), 4)(high, low), x)
    actual = _run(f"cvt.rn.satfinite.e4m3x2.{kind}x2 $0, $1;", "h", "r", [x])
    assert_same(actual, packed(small(E4M3, 8, 0x7F), 8)(high, low), x)


def test_every_four_bit_float_to_halves() -> None:
    codes = np.arange(COUNT, dtype=np.uint32) % 256
    asm = "{ .reg .b8 t; cvt.u8.u32 t, $1; cvt.rn.f16x2.e2m1x2 $0, t; }"
    actual = _run(asm, "r", "r", [codes])
    for shift, place in ((0, 0), (16, 4)):
        found = wide(actual >> np.uint32(shift), "f16")
        four = codes >> np.uint32(place) & np.uint32(15)
        expected = np.array([math.copysign(E2M1[code & 7], -1 if code & 8 else 1) for code in four.tolist()])
        assert_same(found, expected, codes)


@pytest.mark.parametrize("mode", ["rz", "rp"])
def test_floats_to_powers_of_two(mode: str) -> None:
    x, y = sample("f", 5), sample("f", 6)
    actual = _run(f"cvt.{mode}.satfinite.ue8m0x2.f32 $0, $1, $2;", "h", "ff", [x, y])
    assert_same(actual, packed(lambda v: exponent(v, up=mode == "rp"), 8)(x, y), x, y)
    pairs = sample("r", 5)
    actual = _run(f"cvt.{mode}.satfinite.ue8m0x2.bf16x2 $0, $1;", "h", "r", [pairs])
    high, low = wide(pairs >> np.uint32(16), "bf16"), wide(pairs, "bf16")
    assert_same(actual, packed(lambda v: exponent(v, up=mode == "rp"), 8)(high, low), pairs)


def test_every_power_of_two_to_bf16() -> None:
    codes = np.arange(COUNT, dtype=np.uint16) % 256
    actual = _run("cvt.rn.bf16x2.ue8m0x2 $0, $1;", "r", "h", [codes | codes << np.uint16(8)])
    expected = np.where(codes == 255, np.nan, 2.0 ** (codes.astype(float) - 127))
    for shift in (0, 16):
        assert_same(wide(actual >> np.uint32(shift), "bf16"), expected, codes)


@pytest.mark.parametrize("mode", ["rn", "rz"])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_pairs_of_floats_to_halves(kind: str, mode: str) -> None:
    x, y = sample("f", 7), sample("f", 8)
    actual = _run(f"cvt.{mode}.{kind}x2.f32 $0, $1, $2;", "r", "ff", [x, y])
    high, low = (narrow(value.astype(object), kind, mode).astype(np.uint32) for value in (x, y))
    assert_same(same_halves(actual, kind), high << np.uint32(16) | low, x, y)


def test_saturation_instead_of_infinity() -> None:
    x = sample("f", 7)
    actual = wide(_run("cvt.rn.satfinite.f16.f32 $0, $1;", "h", "f", [x]), "f16")
    expected = wide(narrow(np.clip(x.astype(float), -65504, 65504).astype(object), "f16"), "f16")
    assert_same(actual, expected, x)


# --- numbers ---------------------------------------------------------------------------------------------

ROUNDINGS: dict[str, Callable[[Any], Any]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
TO_INTEGERS = {"s32": ("r", "f"), "u32": ("r", "f"), "s8": ("r", "f"), "u8": ("r", "f"), "u16": ("h", "f"),
    "s64": ("l", "f"), "u64": ("l", "d")}  # fmt: skip


def _to_integer(value: float, name: str) -> int:
    bits = int(name[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if name[0] == "s" else (0, (1 << bits) - 1)
    if math.isnan(value):
        return 1 << 63 if bits == 64 else 0
    if math.isinf(value):
        return high if value > 0 else low
    return max(low, min(high, int(value)))


@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("name", TO_INTEGERS)
def test_floats_to_integers(name: str, mode: str) -> None:
    result, operand = TO_INTEGERS[name]
    x = sample(operand, 9)
    source = {"f": "f32", "d": "f64"}[operand]
    actual = _run(f"cvt.{mode}.{name}.{source} $0, $1;", result, operand, [x])
    dtype = {"r": np.uint32, "h": np.uint16, "l": np.uint64}[result]
    wrap = 1 << 8 * np.dtype(dtype).itemsize
    expected = [_to_integer(v, name) % wrap for v in ROUNDINGS[mode](x.astype(np.float64)).tolist()]
    assert_same(actual, np.array(expected, dtype), x)


@pytest.mark.parametrize("name", ["s32", "u32", "s64", "u64", "s16", "u8"])
def test_integers_to_floats(name: str) -> None:
    bits = int(name[1:])
    letter = "l" if bits == 64 else "r"
    x = sample(letter, 10)
    values = [signed(v % (1 << bits), bits) if name[0] == "s" else v % (1 << bits) for v in x.tolist()]
    actual = _run(f"cvt.rn.f32.{name} $0, $1;", "f", letter, [x])
    assert_same(actual, np.array([F32(v) for v in values]), x)
    if bits >= 32:
        from fractions import Fraction

        for mode in ("rz", "rm", "rp"):
            actual = _run(f"cvt.{mode}.f32.{name} $0, $1;", "f", letter, [x])
            assert_same(actual, np.array([directed(Fraction(v), mode) if v else 0.0 for v in values], F32), x)


@pytest.mark.parametrize("mode", ROUNDINGS)
def test_floats_to_integral_floats(mode: str) -> None:
    x = sample("f", 11)
    assert_same(_run(f"cvt.{mode}.f32.f32 $0, $1;", "f", "f", [x]), ROUNDINGS[mode](x), x)


def test_floats_to_other_floats() -> None:
    x, wide_x, bits = sample("f", 12), sample("d", 12), sample("h", 12)
    with np.errstate(over="ignore", invalid="ignore"):
        assert_same(_run("cvt.f64.f32 $0, $1;", "d", "f", [x]), x.astype(np.float64), x)
        assert_same(_run("cvt.rn.f32.f64 $0, $1;", "f", "d", [wide_x]), wide_x.astype(F32), wide_x)
        assert_same(_run("cvt.f32.f16 $0, $1;", "f", "h", [bits]), wide(bits, "f16").astype(F32), bits)
        assert_same(_run("cvt.f32.bf16 $0, $1;", "f", "h", [bits]), wide(bits, "bf16").astype(F32), bits)
        clamped = np.where(x > 0, np.minimum(x, F32(1)), F32(0))
        assert_same(_run("cvt.sat.f32.f32 $0, $1;", "f", "f", [x]), clamped, x)


TF32: dict[str, Callable[[int], int]] = {
    "rna": lambda size: size + 0x1000,
    "rz": lambda size: size,
    "rn": lambda size: size + 0xFFF + (size >> 13 & 1),
}


@pytest.mark.parametrize("mode", TF32)
def test_floats_to_tf32(mode: str) -> None:
    def convert(bits: int) -> int:
        size = bits & 0x7FFFFFFF
        if size > 0x7F800000:
            return 0x7FFFFFFF
        return bits if size == 0x7F800000 else bits & 0x80000000 | TF32[mode](size) & ~0x1FFF

    x = sample("f", 13)
    actual = _run(f"cvt.{mode}.tf32.f32 $0, $1;", "r", "f", [x])
    assert_same(actual, np.array([convert(v) for v in x.view(np.uint32).tolist()], np.uint32), x)
