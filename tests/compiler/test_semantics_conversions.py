"""Conversions between every two types that Triton's front end converts: every value of 8 and 16 bits, and every
kind of rounding from wider ones; bit for bit against tables of numbers, with and without vector extensions."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import triton
from float_formats import FLOAT8, FORMATS, Array, Format, around, decode, encode
from running import INTEGERS, KINDS, Kind, device, make_kernel, rounded, samples
from triton.backends.compiler import GPUTarget

from triton_porting_kit.compiler import CpuTarget, codegen
from triton_porting_kit.driver import DeviceArray

INTEGER_TYPES = {kind.name: kind for kind in [KINDS["i1"], *INTEGERS]}
TYPES: list[str] = [*INTEGER_TYPES, *FORMATS]
BLOCK = 2048


def is_float8(name: str) -> bool:
    return name in FORMATS and FORMATS[name].bits == 8


def converts(source: str, target: str) -> bool:
    """Whether Triton's front end has the conversion: 8-bit floats have none from and to integers, but for e4b15."""
    for one, other in ((source, target), (target, source)):
        if is_float8(one) and one != "fp8e4b15" and other in INTEGER_TYPES:
            return False
    return source != target


def narrows(source: str, target: str) -> bool:
    return source in FORMATS and target in FORMATS and FORMATS[target].bits < FORMATS[source].bits


# --- values --------------------------------------------------------------------------------------


@functools.cache
def source_bits(name: str) -> Array:
    """Patterns of a type to convert: all of them up to 16 bits."""
    if name == "i1":
        return np.array([0, 1], np.uint8)
    bits = FORMATS[name].bits if name in FORMATS else INTEGER_TYPES[name].bits
    if bits <= 16:
        return np.arange(1 << bits).astype(f"uint{bits}")
    unsigned = np.dtype(f"uint{bits}")
    random = np.random.default_rng(1).integers(0, 1 << bits, 20000, unsigned)
    if name in FORMATS:
        wide = np.float32 if bits == 32 else np.float64
        tried = [around(form, wide) for form in FORMATS.values() if form.bits <= 16]
        if bits == 64:
            singles = around_singles()
            tried.append(singles)
            tried.append(random[:2000].astype(np.float64))
        whole = np.arange(-70000, 70000, 37).astype(wide)
        values = np.concatenate([*tried, whole])
        return np.concatenate([values.view(unsigned), random])
    kind = INTEGER_TYPES[name]
    # Halfway between numbers of few bits, and next to that.
    powers = 2 ** np.arange(bits - 1, dtype=object)
    near = [p + p // 256 * odd + step for p in powers for odd in (0, 1, 3, 5) for step in (-1, 0, 1)]
    near += [p + p // 2048 * odd + step for p in powers for odd in (1, 3) for step in (-1, 0, 1)]
    near += [p + p // 2**24 * odd + step for p in powers for odd in (1, 3) for step in (-1, 0, 1)]
    edges = np.array([v % (1 << bits) for v in (*near, *(-v for v in near))], unsigned)
    return np.concatenate([edges, samples(kind, 60).view(unsigned), random])


def around_singles() -> Array:
    """float64 numbers halfway between float32's, and beside that, denormal ones and overflow included."""
    bits = np.random.default_rng(2).integers(0, 0x7F800000, 3000, np.uint32)
    bits = np.concatenate(
        [bits, np.arange(40, dtype=np.uint32), np.arange(0x7F7FFFF0, 0x7F800000, dtype=np.uint32)]
    )
    low = bits.view(np.float32).astype(np.float64)
    with np.errstate(over="ignore"):
        high = (bits + 1).view(np.float32).astype(np.float64)
    high = np.where(np.isinf(high), 2.0**128, high)
    middle = (low + high) / 2
    values = np.concatenate([low, middle, np.nextafter(middle, 0), np.nextafter(middle, np.inf)])
    return np.concatenate([values, -values])


# --- the kernel ----------------------------------------------------------------------------------


def language(name: str) -> str:
    return f"tl.{FORMATS[name].language}" if name in FORMATS else INTEGER_TYPES[name].language


def triton_type(name: str) -> Any:
    return eval(language(name), {"tl": triton.language})


def kernel_source(targets: Sequence[str], rounding: str) -> str:
    mode = f', fp_downcast_rounding="{rounding}"' if rounding else ""
    outs = ", ".join(f"O{k}" for k in range(len(targets)))
    lines = [
        f"def convert(X, {outs}, n, B: tl.constexpr):",
        "    i = tl.program_id(0) * B + tl.arange(0, B)",
        "    x = tl.load(X + i, mask=i < n)",
        *(f"    tl.store(O{k} + i, x.to({language(t)}{mode}), mask=i < n)" for k, t in enumerate(targets)),
    ]
    return "\n".join(lines) + "\n"


def on_device(bits: Array, name: str) -> Any:
    """An array of patterns as Triton's type `name`."""
    array = DeviceArray.from_numpy(bits, device())
    return array if name == "i1" else triton.reinterpret(array, triton_type(name))


@functools.cache
def converted(source: str, rounding: str, features: str) -> dict[str, Array]:
    """By target: the patterns that a kernel makes of `source_bits`."""
    targets = [t for t in TYPES if (narrows(source, t) if rounding else converts(source, t))]
    bits = source_bits(source)
    if source == "i1":
        bits = bits.astype(bool)
    outs = {t: np.full(bits.size, 0xA5, pattern_type(t)) for t in targets}
    arrays = [on_device(out.astype(bool) if t == "i1" else out, t) for t, out in outs.items()]
    options = {"cpu_features": features} if features else {}
    make_kernel(kernel_source(targets, rounding))[(triton.cdiv(bits.size, BLOCK),)](
        on_device(bits, source), *arrays, bits.size, B=BLOCK, **options
    )
    for array, out in zip(arrays, outs.values(), strict=True):
        device().memcpy_dtoh(out, array.data_ptr(), 0)
    return outs


def pattern_type(name: str) -> str:
    bits = 8 if name == "i1" else FORMATS[name].bits if name in FORMATS else INTEGER_TYPES[name].bits
    return f"uint{bits}"


# --- what is right -------------------------------------------------------------------------------


def integers(name: str) -> Array:
    kind = INTEGER_TYPES[name]
    bits = source_bits(name)
    return bits if kind.bits == 1 else bits.view(kind.host)


def expected(source: str, target: str, rounding: str) -> tuple[Array, Array]:
    """Patterns, and which of them are defined: numbers beyond an integer type's range have no integer."""
    if source in FORMATS:
        values = decode(source_bits(source), FORMATS[source])
        if target in FORMATS:
            return encode(values, FORMATS[target], rounding or "rtne"), np.ones(values.shape, bool)
        return integers_of(values, INTEGER_TYPES[target])
    numbers = integers(source)
    if target in INTEGER_TYPES:
        kind = INTEGER_TYPES[target]
        if kind.bits == 1:
            return (numbers != 0).astype(np.uint8), np.ones(numbers.shape, bool)
        return numbers.astype(kind.host).view(f"uint{kind.bits}"), np.ones(numbers.shape, bool)
    return encode_integers(numbers, FORMATS[target]), np.ones(numbers.shape, bool)


def integers_of(values: Array, kind: Kind) -> tuple[Array, Array]:
    if kind.bits == 1:
        return (values != 0).astype(np.uint8), np.ones(values.shape, bool)
    with np.errstate(invalid="ignore"):
        whole = np.trunc(values)
        defined = (whole >= float(kind.lowest)) & (whole < float(kind.highest) + (kind.bits < 64))
    return np.where(defined, whole, 0).astype(kind.host).view(f"uint{kind.bits}"), defined


def encode_integers(numbers: Array, form: Format) -> Array:
    if numbers.dtype.itemsize < 8:
        # float64 has them all; e4b15 gets them through types whose rounding cannot be seen beyond its range.
        return encode(numbers.astype(np.float64), form)
    if form.bits == 8:
        return encode(numbers.astype(np.float64), form)
    kind = KINDS[form.name]
    exact = rounded(numbers.tolist(), kind)
    return encode(exact.astype(np.float64), form)


def check(source: str, target: str, rounding: str, features: str) -> None:
    actual = converted(source, rounding, features)[target]
    wanted, defined = expected(source, target, rounding)
    if target in FORMATS:
        form = FORMATS[target]
        nan = np.isnan(decode(wanted, form))
        found = np.isnan(decode(actual, form))
        np.testing.assert_array_equal(found, nan, "NaN")
        defined = defined & ~nan
        if target == "fp8e4b15":  # NaN becomes a number, of whatever sign that NaN has
            unsigned = np.isnan(decode(source_bits(source), FORMATS[source])) if source in FORMATS else nan
            actual, wanted = (np.where(unsigned, bits & 0x7F, bits) for bits in (actual, wanted))
    bad = np.flatnonzero((actual != wanted) & defined)
    patterns = source_bits(source)
    examples = [f"{patterns[k]:#x} -> {actual[k]:#x}, not {wanted[k]:#x}" for k in bad[:5]]
    assert not bad.size, f"{bad.size} of {defined.sum()} values: " + "; ".join(examples)


PAIRS = [(s, t) for s in TYPES for t in TYPES if converts(s, t)]
NARROWING = [(s, t) for s in TYPES for t in TYPES if narrows(s, t)]


def ids(pairs: list[tuple[str, str]]) -> list[str]:
    return ["-".join(pair) for pair in pairs]


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=ids(PAIRS))
def test_conversion(source: str, target: str) -> None:
    check(source, target, "", "")


@pytest.mark.parametrize(("source", "target"), NARROWING, ids=ids(NARROWING))
@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
def test_conversion_with_a_rounding(source: str, target: str, rounding: str) -> None:
    check(source, target, rounding, "")


def plain_features() -> str:
    """What every CPU of this architecture has."""
    host = CpuTarget.host()
    return (CpuTarget.named("x86-64") if host.triple.startswith("x86_64") else host).feature_string


FLOAT_PAIRS = [(s, t) for s, t in PAIRS if s in FORMATS and t in FORMATS]


@pytest.mark.parametrize(("source", "target"), FLOAT_PAIRS, ids=ids(FLOAT_PAIRS))
def test_conversion_without_extensions(source: str, target: str) -> None:
    check(source, target, "", plain_features())


VECTOR_REGISTER = {"x86-64": r"\bxmm\d", "sapphirerapids": r"\bzmm\d", "neoverse-n1": r"\bv\d+\."}
"""How the widest vector registers of a CPU are written."""


@pytest.mark.parametrize("cpu", list(VECTOR_REGISTER))
@pytest.mark.parametrize("source", [form.name for form in FORMATS.values()])
def test_conversions_are_vector_code(source: str, cpu: str) -> None:
    """Nothing is called, and nothing is done lane by lane but what x86-64 has no instructions for."""
    targets = [form.name for form in FORMATS.values() if form.name != source]
    signature = {"X": f"*{source}", **{f"O{k}": f"*{t}" for k, t in enumerate(targets)}}
    kernel = make_kernel(kernel_source(targets, ""))
    target = CpuTarget.named(cpu)
    ast = triton.compiler.ASTSource(kernel, {**signature, "n": "i32", "B": "constexpr"}, {"B": 1024})
    compiled = triton.compile(ast, target=GPUTarget("cpu", cpu, 1), options=target.options())
    assembly = codegen.emit_assembly(compiled.asm["llir"], target)
    assert not re.search(r"^\s(call|bl)\s", assembly, re.MULTILINE)
    assert re.search(VECTOR_REGISTER[cpu], assembly)


REFUSED = [(s, t) for s in TYPES for t in TYPES if s != t and not converts(s, t)]


@pytest.mark.parametrize(("source", "target"), REFUSED[::5], ids=ids(REFUSED[::5]))
def test_front_end_refuses_the_others(source: str, target: str) -> None:
    x = on_device(np.zeros(2, bool if source == "i1" else pattern_type(source)), source)
    out = on_device(np.zeros(2, bool if target == "i1" else pattern_type(target)), target)
    kernel = make_kernel(kernel_source([target], ""))
    with pytest.raises(triton.CompilationError):
        kernel[(1,)](x, out, 2, B=2)


def test_oracle_knows_the_formats() -> None:
    """Numbers of the formats' specifications."""
    largest = {"fp8e4nv": 448.0, "fp8e5": 57344.0, "fp8e4b8": 240.0, "fp8e5b16": 57344.0, "fp8e4b15": 1.875}
    smallest = {"fp8e4nv": -9, "fp8e5": -16, "fp8e4b8": -10, "fp8e5b16": -17, "fp8e4b15": -17}
    for form in FLOAT8:
        table = decode(np.arange(128, dtype=np.uint8), form)
        assert table[np.isfinite(table)].max() == largest[form.name]
        assert table[1] == 2.0 ** smallest[form.name]
    halves = decode(np.arange(1 << 16).astype(np.uint16), FORMATS["fp16"])
    np.testing.assert_array_equal(
        halves, np.arange(1 << 16).astype(np.uint16).view(np.float16).astype(np.float64)
    )
