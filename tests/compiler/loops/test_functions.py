"""The written-out functions, over all of single precision in strides and over all 16-bit patterns."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from native_functions import Array, element_function, nearest_bf16
from running import KINDS, ulp_distance

from triton_porting_kit.compiler import CpuTarget, codegen
from triton_porting_kit.compiler.loops.arithmetic import functions
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.conformance.types import from_bits

FP32 = KINDS["fp32"]
# Prime, so that every exponent meets many fractions.
STRIDE = 1021


def all_singles(stride: int = STRIDE) -> Array:
    """Every `stride`-th pattern of single precision, a multiple of 16 of them."""
    patterns = np.arange(0, 2**32, stride, dtype=np.uint32)
    return patterns[: patterns.size // 16 * 16].view(np.float32)


# Lanes, and whether the target has AVX-512.
WAYS = {"two_factors": (16, False), "scalar": (1, False)}
if CpuTarget.host().has_scalef:
    WAYS |= {"scalef": (16, True), "half_a_register": (8, True)}


@pytest.mark.parametrize(("lanes", "scalef"), WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_exponentials_are_within_a_unit(name: str, lanes: int, scalef: bool) -> None:
    x = all_singles(STRIDE if lanes > 1 else 16 * STRIDE)
    # More of where results are neither 0 nor infinite.
    x = np.concatenate([x, np.linspace(-152, 130, 1 << 18, dtype=np.float32)])
    written = getattr(functions, name)
    actual = element_function(lambda builder, v: written(builder, v, scalef), "f32", "f32", lanes=lanes)(
        x, np.float32
    )
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype(np.float64))
    distance = ulp_distance(actual, exact, FP32)
    worst = int(distance.argmax())
    assert distance[worst] <= 1.0, f"{distance[worst]} units at {x[worst]!r}"
    assert actual[x == 0].tolist() == [1.0] * int((x == 0).sum())


@pytest.mark.parametrize(("lanes", "scalef"), WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_exponentials_of_what_is_not_above_zero(name: str, lanes: int, scalef: bool) -> None:
    x = -np.abs(all_singles(STRIDE if lanes > 1 else 16 * STRIDE))
    x = np.concatenate([x, np.linspace(-152, -0.0, 1 << 18, dtype=np.float32)])
    written = functools.partial(getattr(functions, name), has_scalef=scalef, no_positive=True)
    actual = element_function(written, "f32", "f32", lanes=lanes)(x, np.float32)
    exact = getattr(np, name)(x.astype(np.float64))
    distance = ulp_distance(actual, exact, FP32)
    worst = int(distance.argmax())
    assert distance[worst] <= 1.0, f"{distance[worst]} units at {x[worst]!r}"
    assert actual[x == 0].tolist() == [1.0] * int((x == 0).sum())


@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_one_instruction_scales_and_leaves_what_vanishes(name: str) -> None:
    type, target = vector_type("f32", 16), CpuTarget.named("znver4")
    builder = LoopBuilder()
    result = getattr(functions, name)(builder, Value("%x", type, 0), True)
    body = "\n".join(builder.text())
    text = (
        f"module {{ llvm.func @f(%x: {type}) -> {type} {{\n{body}\nllvm.return {result.name} : {type}\n}} }}"
    )
    assembly = codegen.emit_assembly(codegen.lower_to_llvm_ir(text), target)
    assert re.search(r"vscalefps\t.*\{%k\d\} \{z\}", assembly)
    assert "vcvt" not in assembly


def around_steps() -> Array:
    """Each 16-bit pattern as the upper half of a single, on, half way to and beside the next."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    lower = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x1234, 0xABCD], np.uint32)
    return (upper[:, None] | lower).ravel().view(np.float32)


@pytest.mark.parametrize("lanes", [16, 1])
def test_rounding_to_bfloat16(lanes: int) -> None:
    x = np.concatenate([all_singles(), around_steps()])
    actual = element_function(functions.round_to_bf16, "f32", "i16", lanes=lanes)(x, np.uint16)
    np.testing.assert_array_equal(actual, nearest_bf16(x))


@pytest.mark.parametrize("lanes", [16, 1])
def test_every_bfloat16_widens_and_comes_back(lanes: int) -> None:
    patterns = np.arange(1 << 16, dtype=np.uint16)
    wide = element_function(functions.bf16_to_f32, "i16", "f32", lanes=lanes)(patterns, np.float32)
    np.testing.assert_array_equal(wide.view(np.uint32), from_bits(patterns, KINDS["bf16"]).view(np.uint32))
    back = element_function(functions.round_to_bf16, "f32", "i16", lanes=lanes)(wide, np.uint16)
    quiet = np.where(np.isnan(wide), patterns | 0x40, patterns)
    np.testing.assert_array_equal(back, quiet)


@pytest.mark.parametrize("lanes", [16, 1])
@pytest.mark.parametrize("instruction", [True, False], ids=["instruction", "arithmetic"])
def test_half_precision(instruction: bool, lanes: int) -> None:
    patterns = np.arange(1 << 16, dtype=np.uint16)
    options = {"lanes": lanes, "converts_f16": instruction}
    wide = element_function(functions.f16_to_f32, "i16", "f32", **options)(patterns, np.float32)  # type: ignore[arg-type]
    halves = patterns.view(np.float16)
    np.testing.assert_array_equal(wide, halves.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(wide), np.signbit(halves))
    # Each half, and singles on, half way to and beside the next one.
    finite = halves[np.isfinite(halves)].astype(np.float32).view(np.uint32)
    steps = (finite[:, None] + np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF], np.uint32)).ravel()
    x = np.concatenate([steps[: steps.size // 16 * 16].view(np.float32), all_singles()])
    narrow = element_function(functions.round_to_f16, "f32", "i16", **options)(x, np.uint16)  # type: ignore[arg-type]
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    known = ~np.isnan(x)
    np.testing.assert_array_equal(narrow[known], expected[known].view(np.uint16))
    assert np.isnan(narrow[~known].view(np.float16)).all()


def test_truncation_to_odd_rounds_once() -> None:
    """Doubles beside the middle between two bfloat16 numbers, nearer than single precision can tell."""
    upper = (np.arange(0x0080, 0x7F7F, dtype=np.uint32) << 16 | 0x8000).view(np.float32).astype(np.float64)
    x = np.concatenate([np.nextafter(upper, 0), upper, np.nextafter(upper, np.inf)])
    x = np.concatenate([x, -x])[: 6 * upper.size // 16 * 16]

    def emit(builder: LoopBuilder, value: Value) -> Value:
        return functions.round_to_bf16(builder, functions.truncate_to_odd(builder, value))

    actual = element_function(emit, "f64", "i16")(x, np.uint16)
    below = np.abs(x).astype(np.float32).view(np.uint32) >> 16
    # Toward zero in single precision: the float32 next to the middle may have been rounded up to it.
    middle = (below << 16 | 0x8000).astype(np.uint32).view(np.float32).astype(np.float64)
    up = (np.abs(x) > middle) | ((np.abs(x) == middle) & (below % 2 == 1))
    expected = (below + up).astype(np.uint16) | (np.signbit(x).astype(np.uint16) << 15)
    np.testing.assert_array_equal(actual, expected)


def test_large_integers_keep_their_rest() -> None:
    random = np.random.default_rng(0)
    x = random.integers(-(2**63), 2**63 - 1, 1 << 16, dtype=np.int64) >> random.integers(0, 63, 1 << 16)
    gathered = element_function(functions.sticky_integer, "i64", "i64")(x, np.int64)
    small = np.abs(x.astype(np.float64)) < 2.0**51
    np.testing.assert_array_equal(gathered[small], x[small])
    np.testing.assert_array_equal(gathered.astype(np.float64).astype(np.int64), gathered)
    # Nothing crosses a number of 12 fewer bits, and what is inexact stays between two of them.
    np.testing.assert_array_equal(gathered[~small] >> 13, x[~small] >> 13)
    np.testing.assert_array_equal(gathered[~small] % 4096, 0)
