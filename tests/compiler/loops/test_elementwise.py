"""The table of element-wise operations: every entry writes what MLIR and LLVM take, on vectors and on scalars."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from native_functions import element_function, host

from triton_porting_kit.compiler import codegen
from triton_porting_kit.compiler.loops.arithmetic.elementwise import OPERATIONS, convert, narrow, widen
from triton_porting_kit.compiler.loops.arithmetic.minifloats import FORMATS
from triton_porting_kit.compiler.loops.arithmetic.mode import Mode
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Type
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type

MODE = Mode(fuse_multiply_add=True, has_scalef=True)
BINARY = ("atan2", "powf", "copysign")
#: Casts: from, to.
CASTS = {
    "extf": ("f32", "f64"),
    "truncf": ("f64", "bf16"),
    "extsi": ("i8", "i32"),
    "extui": ("i1", "i32"),
    "trunci": ("i64", "i8"),
    "sitofp": ("i64", "bf16"),
    "uitofp": ("i32", "f16"),
    "fptosi": ("f16", "i32"),
    "fptoui": ("f32", "i8"),
    "bitcast": ("f32", "i32"),
}


def operands_of(name: str) -> tuple[list[str], str]:
    """Element types that an operation is tried on, and that of its result."""
    dialect, _, short = name.partition(".")
    if short == "fp_to_fp":
        return ["f16"], "f8E5M2"
    if short in CASTS and dialect == "arith":
        return [CASTS[short][0]], CASTS[short][1]
    if short == "select":
        return ["i1", "bf16", "bf16"], "bf16"
    if short == "cmpi":
        return ["i32", "i32"], "i1"
    if short == "cmpf":
        return ["f16", "f16"], "i1"
    if short in ("clampf", "fma"):
        return ["f32"] * 3, "f32"
    if dialect == "math":
        count = 2 if short in BINARY else 1
        return (["i32"], "i32") if short == "absi" else (["f32"] * count, "f32")
    if short == "negf":
        return ["f16"], "f16"
    element = "f32" if short.endswith("f") else "i32"
    return [element, element], element


def stand_in(operands: list[str], result: str, results: int) -> Any:
    """What an emitter asks of an operation."""
    attributes = {"predicate": 2}
    return SimpleNamespace(
        attributes={},
        operands=[SimpleNamespace(type=Type(element, None)) for element in operands],
        results=[SimpleNamespace(type=Type(result, None)) for _ in range(results)],
        integer=lambda name, default=None: attributes.get(name, default),
    )


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_entry_is_valid(name: str, lanes: int) -> None:
    entry = OPERATIONS[name]
    assert entry.cost > 0
    elements, result = operands_of(name)
    count = 2 if name.endswith("_extended") else 1
    builder = LoopBuilder()
    builder.converts_f16 = True
    values = [Value(f"%a{i}", vector_type(types.register(e), lanes), 0) for i, e in enumerate(elements)]
    outs = entry.emit(builder, MODE, stand_in(elements, result, count), values)
    assert len(outs) == count
    assert {out.type for out in outs} == {vector_type(types.register(result), lanes)}
    arguments = ", ".join(f"{value.name}: {value.type}" for value in values)
    body = "\n".join(builder.text())
    text = f"module {{ llvm.func @f({arguments}) -> {outs[-1].type} {{\n{body}\nllvm.return {outs[-1].name} : {outs[-1].type}\n}} }}"
    codegen.lower_to_llvm_ir(text)


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("multiplies_high", [False, True])
def test_upper_halves_of_unsigned_products(lanes: int, multiplies_high: bool) -> None:
    mode = Mode(True, False, multiplies_high=multiplies_high)
    factors = [0, 1, 3, 0x7FFFFFFF, 0x80000000, 0xD2511F53, 0xFFFFFFFF]
    values = np.array([*factors, *(a ^ 0x55 for a in factors)] * 16, np.uint32)

    def emit(factor: int, builder: LoopBuilder, value: Value) -> Value:
        operands = [value, builder.constant(factor, value.type)]
        entry = OPERATIONS["arith.mului_extended"]
        return entry.emit(builder, mode, stand_in(["i32", "i32"], "i32", 2), operands)[1]

    for factor in factors:
        found = element_function(partial(emit, factor), "i32", "i32", lanes=lanes)(values, np.uint32)
        np.testing.assert_array_equal(found, values.astype(np.uint64) * np.uint64(factor) >> np.uint64(32))

    builder = LoopBuilder()
    emit(3, builder, Value("%a", vector_type("i32", lanes), 0))
    expected = multiplies_high and lanes in (4, 8, 16)
    assert ("llvm.umul.fix" in "\n".join(builder.text())) is expected


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_widening_and_narrowing_are_inverse(element: str, lanes: int) -> None:
    patterns = np.arange(1 << 16, dtype=np.uint16)

    def emit(builder: LoopBuilder, value: Value) -> Value:
        return narrow(builder, widen(builder, value, element), element)

    back = element_function(emit, "i16", "i16", lanes=lanes)(patterns, np.uint16)
    is_nan = (patterns & 0x7FFF) > (0x7F80 if element == "bf16" else 0x7C00)
    np.testing.assert_array_equal(back[~is_nan], patterns[~is_nan])
    still = (back & 0x7FFF) > (0x7F80 if element == "bf16" else 0x7C00)
    np.testing.assert_array_equal(still, is_nan)


@pytest.mark.parametrize("converts_f16", [True, False])
@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("element", types.FLOAT8)
def test_widening_and_narrowing_of_bytes_are_inverse(element: str, lanes: int, converts_f16: bool) -> None:
    patterns = np.arange(1 << 8, dtype=np.uint8)

    def emit(builder: LoopBuilder, value: Value) -> Value:
        builder.converts_f16 = converts_f16
        return narrow(builder, widen(builder, value, element), element)

    back = element_function(emit, "i8", "i8", lanes=lanes)(patterns, np.uint8)
    form = FORMATS[element]
    is_nan = np.array([form.value(pattern) != form.value(pattern) for pattern in range(256)])
    np.testing.assert_array_equal(back[~is_nan], patterns[~is_nan])
    assert all(form.value(int(pattern)) != form.value(int(pattern)) for pattern in back[is_nan])


LOOKUPS = [0, *(lanes for lanes in (8, 16) if lanes <= host().lookup_lanes)]


@pytest.mark.parametrize("lookup_lanes", LOOKUPS)
@pytest.mark.parametrize("lanes", [1, 8, 16, 32])
def test_numbers_of_four_bits(lanes: int, lookup_lanes: int) -> None:
    patterns = np.arange(16, dtype=np.uint8).repeat(2)
    widen_e2m1 = partial(widen, element="f4E2M1FN")
    function = element_function(widen_e2m1, "i8", "f32", lanes=lanes, lookup_lanes=lookup_lanes)
    half = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)  # OCP Microscaling Formats 1.0, table 5
    expected = np.concatenate([half, -half]).repeat(2)
    np.testing.assert_array_equal(function(patterns, np.float32).view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
@pytest.mark.parametrize("operation", ["div", "rem"])
def test_division_does_not_trap(operation: str, signed: bool, lanes: int) -> None:
    """By zero, and of the most negative number by -1: x86 would raise an exception."""
    entry = OPERATIONS[f"arith.{operation}{'s' if signed else 'u'}i"]
    lowest = -(2**31)
    x = np.array([0, 1, lowest, -1] * 4, np.int32)
    for divisor in (0, -1):

        def emit(builder: LoopBuilder, value: Value, divisor: int = divisor) -> Value:
            # Not a constant, which would be folded.
            zero = builder.binary("arith.andi", value, builder.constant(0, value.type))
            by = builder.binary("arith.ori", zero, builder.constant(divisor, value.type))
            return entry.emit(builder, MODE, stand_in(["i32", "i32"], "i32", 1), [value, by])[0]

        result = element_function(emit, "i32", "i32", lanes=lanes)(x, np.int32)
        if divisor == -1 and signed:
            regular = x != lowest
            expected = -x if operation == "div" else x * 0
            np.testing.assert_array_equal(result[regular], expected[regular])


@pytest.mark.parametrize(
    ("source", "target"), [("f32", "f16"), ("f32", "bf16"), ("f64", "f16"), ("f64", "bf16")]
)
def test_truncation_toward_zero(source: str, target: str) -> None:
    host = {"f32": np.float32, "f64": np.float64}[source]
    x = np.random.default_rng(0).standard_normal(1 << 12).astype(host) * host(1000)

    def emit(builder: LoopBuilder, value: Value) -> Value:
        cut = convert(builder, "arith.truncf", value, source, target, toward_zero=True)
        return widen(builder, cut, target)

    result = element_function(emit, source, "f32")(x, np.float32).astype(np.float64)
    assert np.all(np.abs(result) <= np.abs(x))
    assert np.all(np.abs(x - result) < np.abs(x) * 2.0 ** (-10 if target == "f16" else -7))
