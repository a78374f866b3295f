"""Which functions libdevice has, by which names and for which types; and what is refused."""

from __future__ import annotations

import ast
import importlib
import inspect
from typing import Any

import mpmath
import numpy as np
import pytest
import triton
import triton.language as tl
from libdevice_kernels import NUMPY, apply
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.language.extra.libdevice import erfcx

from triton_porting_kit.compiler.libdevice import functions, symbols
from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.errors import CompilationError

ROWS = functions()


def tables(module: str) -> dict[str, list[tuple[tuple[str, ...], str, str]]]:
    """The overloads of the functions of a module of Triton's: operand types, symbol, result."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    found = {}
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Dict):
                rows = zip(node.keys, node.values, strict=True)
                found[function.name] = [(_types(k), _text(v.elts[0]), _text(v.elts[1])) for k, v in rows]  # type: ignore[attr-defined]
    return found


def _types(node: Any) -> tuple[str, ...]:
    return tuple(map(_text, node.elts))


def _text(node: Any) -> str:
    """The text in ``"x"`` or ``core.dtype("x")``."""
    return str(node.args[0].value if isinstance(node, ast.Call) else node.value)


def test_every_function_of_the_interface_is_there() -> None:
    named = {name for name, value in vars(libdevice).items() if inspect.isfunction(value)}
    assert named - set(ROWS) == set()
    from triton_porting_kit.backends.cpu import libdevice as ours

    assert [name for name in ROWS if not callable(getattr(ours, name))] == []


def test_overloads_are_those_of_cuda() -> None:
    for name, rows in tables("triton.language.extra.cuda.libdevice").items():
        ours = {
            (overload.operands, f"__nv_{overload.symbol}", overload.result)
            for overload in ROWS[name].overloads
        }
        assert ours == set(rows), name


@pytest.mark.parametrize("vendor", ["cuda", "hip"])
def test_every_symbol_of_other_libraries_is_known(vendor: str) -> None:
    rows = tables(f"triton.language.extra.{vendor}.libdevice")
    unknown = [symbol for overloads in rows.values() for _, symbol, _ in overloads if symbol not in symbols()]
    assert unknown == []


@triton.jit
def importing_kernel(X, O, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    tl.store(O + i, cuda_libdevice.erfcx(x))
    tl.store(O + B + i, erfcx(x))
    tl.store(O + 2 * B + i, tl.extra.libdevice.erfcx(x))
    tl.store(O + 3 * B + i, libdevice.erfcx(x))


def test_all_ways_to_import_it(device: Any) -> None:
    x = np.linspace(-2, 9, 32, dtype=np.float32)
    out = DeviceArray.from_numpy(np.zeros((4, 32), np.float32), device)
    importing_kernel[(1,)](DeviceArray.from_numpy(x, device), out, B=32)
    expected = [float(mpmath.exp(v * v) * mpmath.erfc(v)) for v in map(mpmath.mpf, x.tolist())]
    for row in out.numpy():
        np.testing.assert_allclose(row, expected, rtol=2.0**-22)


# --- types ---------------------------------------------------------------------------------------


@triton.jit
def half_kernel(X, O, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(X + i)
    n = tl.num_programs(0) * B
    tl.store(O + i, libdevice.tanh(x))
    tl.store(O + n + i, libdevice.exp10(x))
    tl.store(O + 2 * n + i, libdevice.log1p(x))
    tl.store(O + 3 * n + i, libdevice.atan2(x, 3.0))
    tl.store(O + 4 * n + i, libdevice.pow(x, 2))
    tl.store(O + 5 * n + i, libdevice.sin(x))
    tl.store(O + 6 * n + i, libdevice.cbrt(x))
    tl.store(O + 7 * n + i, libdevice.finitef(x))


ON_HALVES = [
    np.tanh, lambda x: 10.0**x, np.log1p, lambda x: np.arctan2(x, 3.0), np.square, np.sin, np.cbrt,
    lambda x: np.isfinite(x) * 1.0,
]  # fmt: skip


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_every_half(device: Any, name: str) -> None:
    """All patterns of the type: computed in float32, then rounded."""
    patterns = np.arange(1 << 16, dtype=np.uint16)
    if name == "float16":
        x, smallest, digits, highest = patterns.view(np.float16).astype(np.float64), -24, 11, 16
    else:
        x, smallest, digits, highest = (
            (patterns.astype(np.uint32) << 16).view(np.float32).astype(np.float64),
            -133,
            8,
            128,
        )
    out = DeviceArray.empty((len(ON_HALVES), x.size), name, device)
    values = patterns.view(np.float16) if name == "float16" else patterns
    half_kernel[(128,)](DeviceArray.from_numpy(values, device, name), out, B=512)
    bits = np.asarray(out.numpy()).view(np.uint16)
    actual = bits.view(np.float16) if name == "float16" else (bits.astype(np.uint32) << 16).view(np.float32)
    for row, oracle in zip(actual.astype(np.float64), ON_HALVES, strict=True):
        with np.errstate(all="ignore"):
            exact = oracle(x)
            unit = 2.0 ** np.maximum(np.frexp(exact)[1] - digits, smallest)
            away = np.abs(row - exact) / unit
        limit = 2.0**highest * (1 - 2.0 ** -(digits + 1))
        overflow = (np.abs(exact) >= limit * (1 - 2.0**-20)) & (row == np.copysign(np.inf, exact))
        same = overflow | (row == exact) | (np.isnan(row) & np.isnan(exact))
        assert np.where(same, 0, away).max() <= 0.5 + 2.0**-9


def test_operands_of_other_types(device: Any) -> None:
    x = np.array([1.5, -2.0, 300.0], np.float64)
    single = apply(device, "libdevice.copysign(a, -1.0)", [x], "fp64")
    assert single.tolist() == [-1.5, -2.0, -300.0]
    n = np.array([1, 0x80000000, 0xFFFF], np.uint32)
    assert apply(device, "libdevice.clz(a)", [n], "int32").tolist() == [31, 0, 16]
    assert apply(device, "libdevice.popc(a.to(tl.int8))", [n], "int32").tolist() == [1, 0, 32]
    assert apply(
        device, "libdevice.ldexp(a, b)", [x.astype(np.float32), n[::-1].astype(np.int32) % 5], "fp32"
    ).tolist() == [1.5, -2.0 * 2 ** (-(2**31) % 5), 600.0]


# --- refusals ------------------------------------------------------------------------------------


@triton.jit
def mistyped_kernel(X):
    i = tl.arange(0, 8)
    tl.store(X + i, libdevice.erfinv(tl.load(X + i)))


def test_other_types_are_refused_with_those_that_there_are(device: Any) -> None:
    with pytest.raises(triton.CompilationError) as raised:
        mistyped_kernel[(1,)](DeviceArray.from_numpy(np.zeros(8, np.int32), device))
    reasons = f"{raised.value} {raised.value.__cause__}"
    assert "libdevice.erfinv takes (fp32; fp64), not (int32)" in reasons


@tl.core.extern
def unknown_function(x: Any, _semantic: Any = None) -> Any:
    table = {(tl.dtype("fp32"),): ("__nv_erfcinvff", tl.dtype("fp32"))}
    return tl.core.extern_elementwise("", "", [x], table, is_pure=True, _semantic=_semantic)


@triton.jit
def unknown_kernel(X):
    i = tl.arange(0, 8)
    tl.store(X + i, unknown_function(tl.load(X + i)))


def test_unknown_symbols_are_refused_by_name(device: Any) -> None:
    with pytest.raises(CompilationError, match=r"__nv_erfcinvff is not known \(__nv_erfcinvf is\)"):
        unknown_kernel[(1,)](DeviceArray.from_numpy(np.zeros(8, np.float32), device))


# --- where they stand ----------------------------------------------------------------------------


@triton.jit
def larger_distance(a, b):
    return libdevice.hypot(a, b)


@triton.jit
def reducing_kernel(X, O, N: tl.constexpr):
    x = tl.load(X + tl.arange(0, N))
    tl.store(O, tl.reduce(x, 0, larger_distance))
    total = 0.0
    for k in range(3):
        total += tl.sum(libdevice.lgamma(x + k))
    tl.store(O + 1, total)


def test_in_loops_and_reductions(device: Any) -> None:
    x = np.linspace(0.5, 4, 64, dtype=np.float32)
    out = DeviceArray.from_numpy(np.zeros(2, np.float32), device)
    reducing_kernel[(1,)](DeviceArray.from_numpy(x, device), out, N=64)
    total = sum(float(mpmath.loggamma(float(np.float32(v) + k))) for v in x for k in range(3))
    np.testing.assert_allclose(out.numpy(), [np.sqrt((x.astype(np.float64) ** 2).sum()), total], rtol=1e-5)


@pytest.mark.parametrize("kind", ["fp32", "fp64"])
def test_tiles_of_many_lanes_and_ranks(device: Any, kind: str) -> None:
    x = np.linspace(0.1, 3, 1000).astype(NUMPY[kind])
    flat = apply(device, "libdevice.erfcx(a)", [x], kind)
    shaped = apply(device, "libdevice.erfcx(a.reshape(2, B // 2)).reshape(B)", [x], kind)
    np.testing.assert_array_equal(shaped, flat)
