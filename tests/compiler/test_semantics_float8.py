"""8-bit floats in kernels: arithmetic on every two values, and every way to move elements, on tiles and scalars."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from float_formats import FLOAT8, FORMATS, Array, Format, decode, encode
from running import device, make_kernel
from test_semantics_shapes import load_of

from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.toolchain import compat

RELEASE = compat.release()
#: Those that MLIR has. Triton's front end makes no arithmetic of the other one, which it calls i8.
ARITHMETIC = [form for form in FLOAT8 if form.name != "fp8e4b15"]
#: Those whose constants Triton's front end makes.
CONSTANTS = FLOAT8 if RELEASE >= (3, 9) else ARITHMETIC if RELEASE >= (3, 7) else []
FILL = 0xA5


def put(patterns: Array, form: Format) -> Any:
    """Patterns on the device, as Triton's type."""
    array = DeviceArray.from_numpy(np.ascontiguousarray(patterns), device())
    return triton.reinterpret(array, getattr(tl, form.language))


def get(array: Any) -> Array:
    """The patterns of what `put` made."""
    return np.asarray(array.base.numpy())


def blank(shape: int | Sequence[int], form: Format) -> Any:
    return put(np.full(shape, FILL, np.uint8), form)


# --- arithmetic ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Op:
    """An expression of x and y, and what float64 makes of them."""

    name: str
    expression: str
    exact: Callable[[Array, Array], Array]

    def __str__(self) -> str:
        return self.name


def _negative(x: Array, y: Array) -> Array:
    # Releases of Triton before 3.8 subtract from 0, which is another thing for 0 itself.
    return -x if RELEASE >= (3, 8) else 0.0 - x


def _where_less(x: Array, y: Array) -> Array:
    return np.where(x < y, x, y)


def _clamp(x: Array, y: Array) -> Array:
    return np.where(np.isnan(x), np.nan, np.clip(x, -1.5, 2.0))


OPS = [
    Op("add", "x + y", lambda x, y: x + y),
    Op("sub", "x - y", lambda x, y: x - y),
    Op("mul", "x * y", lambda x, y: x * y),
    Op("add_constant", "x + 1.0", lambda x, y: x + 1.0),
    Op("neg", "-x", _negative),
    Op("abs", "tl.abs(x)", lambda x, y: np.abs(x)),
    Op("maximum", "tl.maximum(x, y)", np.fmax),
    Op("minimum", "tl.minimum(x, y)", np.fmin),
    Op("maximum_nan", "tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)", np.maximum),
    Op("minimum_nan", "tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)", np.minimum),
    Op("where", "tl.where(x < y, x, y)", _where_less),
    Op("where_equal", "tl.where(x == y, x, 1.0)", lambda x, y: np.where(x == y, x, 1.0)),
    Op("where_unequal", "tl.where(x != y, x, 1.0)", lambda x, y: np.where(x != y, x, 1.0)),
    Op("clamp", "tl.clamp(x, -1.5, 2.0, propagate_nan=tl.PropagateNan.ALL)", _clamp),
    Op("fma", "tl.fma(x, y, x)", lambda x, y: x * y + x),
]
OPS = [op for op in OPS if CONSTANTS or "1." not in op.expression]


def pairs() -> tuple[Array, Array]:
    every = np.arange(256, dtype=np.uint8)
    return np.repeat(every, 256), np.tile(every, 256)


def source_of(form: str) -> str:
    if form == "tile":
        lines = ["    i = tl.program_id(0) * 1024 + tl.arange(0, 1024)"]
        indent = "    "
    else:
        lines = ["    for i in range(tl.program_id(0) * 1024, tl.program_id(0) * 1024 + 1024):"]
        indent = "        "
    lines += [f"{indent}x = tl.load(X + i)", f"{indent}y = tl.load(Y + i)"]
    lines += [f"{indent}tl.store(O + {k} * 65536 + i, {op.expression})" for k, op in enumerate(OPS)]
    return "def arithmetic(X, Y, O):\n" + "\n".join(lines) + "\n"


@functools.cache
def results(form: Format, way: str) -> Array:
    x, y = pairs()
    out = blank((len(OPS), 65536), form)
    make_kernel(source_of(way))[(64,)](put(x, form), put(y, form), out)
    return get(out)


@pytest.mark.parametrize("way", ["tile", "scalar"])
@pytest.mark.parametrize("form", ARITHMETIC, ids=str)
@pytest.mark.parametrize("op", OPS, ids=str)
def test_arithmetic_is_rounded_once(op: Op, form: Format, way: str) -> None:
    """Every pair of values: the exact result, which float64 holds, rounded. Infinities stay what they are."""
    actual = results(form, way)[OPS.index(op)]
    x, y = (decode(patterns, form) for patterns in pairs())
    with np.errstate(invalid="ignore"):
        exact = op.exact(x, y)
    wanted = encode(exact, form)
    if form.special == "ieee":
        wanted = np.where(np.isinf(exact), 0x7C | np.signbit(exact) << 7, wanted).astype(np.uint8)
    values, right = decode(actual, form), decode(wanted, form)
    np.testing.assert_array_equal(values, right)
    # Which zero comes out of a minimum or maximum of both is open.
    known = ~np.isnan(right) & ~((x == 0) & (y == 0) & op.name.startswith(("max", "min")))
    np.testing.assert_array_equal(actual[known], wanted[known])


def test_wider_results() -> None:
    """Quotients are fp32, and other types are promoted."""
    form = FORMATS["fp8e4nv"]
    x, y = pairs()
    lines = "    tl.store(Q + i, x / y)\n    tl.store(S + i, x + y.to(tl.float8e5))\n"
    source = (
        "def wider(X, Y, Q, S):\n    i = tl.program_id(0) * 1024 + tl.arange(0, 1024)\n"
        "    x = tl.load(X + i)\n    y = tl.load(Y + i)\n" + lines
    )
    quotients = DeviceArray.empty(65536, "float32", device())
    sums = DeviceArray.empty(65536, "float16", device())
    make_kernel(source)[(64,)](put(x, form), put(y, form), quotients, sums)
    a, b = decode(x, form), decode(y, form)
    coarse = decode(encode(b, FORMATS["fp8e5"]), FORMATS["fp8e5"])
    with np.errstate(all="ignore"):
        if RELEASE >= (3, 9):  # before, a quotient is of the operands' type
            np.testing.assert_array_equal(quotients.numpy(), (a.astype(np.float32) / b.astype(np.float32)))
        np.testing.assert_array_equal(sums.numpy(), (a + coarse).astype(np.float16))


# --- moving elements -----------------------------------------------------------------------------


MOVES: dict[str, tuple[str, tuple[int, ...], Callable[[Array], Array]]] = {
    "copy": ("x", (8, 16), lambda x: x),
    "trans": ("tl.trans(x)", (16, 8), lambda x: x.T),
    "permute": ("tl.permute(tl.reshape(x, (2, 4, 16)), (2, 0, 1))", (16, 2, 4), lambda x: x.reshape(2, 4, 16).transpose(2, 0, 1)),
    "reshape": ("tl.reshape(x, (4, 32))", (4, 32), lambda x: x.reshape(4, 32)),
    "expand": ("tl.broadcast_to(x[:, None, :], (8, 4, 16))", (8, 4, 16), lambda x: np.broadcast_to(x[:, None], (8, 4, 16))),
    "join": ("tl.join(x, x)", (8, 16, 2), lambda x: np.stack([x, x], -1)),
    "split": ("tl.split(tl.reshape(x, (8, 8, 2)))[1]", (8, 8), lambda x: x[:, 1::2]),
    "interleave": ("tl.interleave(x, x)", (8, 32), lambda x: np.repeat(x, 2, 1)),
    "flip": ("tl.flip(x, 1)", (8, 16), lambda x: x[:, ::-1]),
    "gather": ("tl.gather(x, (tl.arange(0, 8)[:, None] + tl.arange(0, 16)[None, :]) % 8, 0)", (8, 16),
               lambda x: np.take_along_axis(x, np.add.outer(np.arange(8), np.arange(16)) % 8, 0)),
    "bitcast": ("x.to(tl.uint8, bitcast=True).to(x.dtype, bitcast=True)", (8, 16), lambda x: x),
    "where": ("tl.where(tl.arange(0, 8)[:, None] < 3, x, tl.flip(x, 1))", (8, 16),
              lambda x: np.where(np.arange(8)[:, None] < 3, x, x[:, ::-1])),
    "zeros": ("tl.zeros_like(x)", (8, 16), np.zeros_like),
    "column": ("tl.load(X + tl.arange(0, 8) * 16)", (8,), lambda x: x[:, 0]),
    "scattered": ("tl.load(X + (tl.arange(0, 128) * 37) % 128)", (128,), lambda x: x.ravel()[np.arange(128) * 37 % 128]),
    "masked": ("tl.load(X + tl.arange(0, 128), mask=tl.arange(0, 128) % 3 == 0)", (128,),
               lambda x: np.where(np.arange(128) % 3 == 0, x.ravel(), 0)),
    "bounded": ("tl.load(X + tl.arange(0, 128), mask=tl.arange(0, 128) < 77)", (128,),
                lambda x: np.where(np.arange(128) < 77, x.ravel(), 0)),
}  # fmt: skip


@pytest.mark.parametrize("form", FLOAT8, ids=str)
@pytest.mark.parametrize("move", MOVES)
def test_elements_move_bit_for_bit(move: str, form: Format) -> None:
    expression, shape, expected = MOVES[move]
    x = np.random.default_rng(1).permutation(256)[:128].astype(np.uint8).reshape(8, 16)
    out = blank(shape, form)
    source = (
        f"def moved(X, O):\n    x = tl.load(X + {load_of((8, 16))})\n"
        f"    tl.store(O + {load_of(shape)}, {expression})\n"
    )
    make_kernel(source)[(1,)](put(x, form), out)
    np.testing.assert_array_equal(get(out), expected(x))


@triton.jit
def guarded_kernel(X, O, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(O + i, tl.load(X + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("form", FLOAT8, ids=str)
def test_masked_stores_touch_nothing_else(form: Format) -> None:
    x = np.arange(256, dtype=np.uint8)
    out = blank(256, form)
    guarded_kernel[(8,)](put(x, form), out, 201, B=32)
    np.testing.assert_array_equal(get(out), np.where(x < 201, x, FILL))


@triton.jit
def scalars_kernel(X, O, n):
    last = tl.load(X)
    for i in range(n):
        x = tl.load(X + i)
        tl.store(O + i, last)
        last = x


@pytest.mark.parametrize("form", FLOAT8, ids=str)
def test_scalars_are_carried_round_loops(form: Format) -> None:
    x = np.arange(256, dtype=np.uint8)
    out = blank(256, form)
    scalars_kernel[(1,)](put(x, form), out, 256)
    np.testing.assert_array_equal(get(out), np.concatenate([[0], x[:-1]]))


@triton.jit
def carried_kernel(X, O, n):
    i = tl.arange(0, 64)
    acc = tl.zeros((64,), O.dtype.element_ty)
    for k in range(n):
        acc += tl.load(X + k * 64 + i)
    tl.store(O + i, acc)


@pytest.mark.parametrize("form", ARITHMETIC, ids=str)
def test_tiles_are_carried_round_loops(form: Format) -> None:
    x = np.random.default_rng(2).integers(0x20, 0x38, (5, 64), np.uint8)
    out = blank(64, form)
    carried_kernel[(1,)](put(x, form), out, 5)
    total = np.zeros(64)
    for row in decode(x, form):
        total = decode(encode(total + row, form), form)
    np.testing.assert_array_equal(get(out), encode(total, form))


@pytest.mark.parametrize("form", CONSTANTS, ids=str)
@pytest.mark.parametrize("value", [0.0, 1.0, -1.5, 0.3, 1e-9, 1.74])
def test_constants(value: float, form: Format) -> None:
    out = blank(32, form)
    source = (
        f"def constant(O):\n    tl.store(O + tl.arange(0, 32), tl.full((32,), {value}, O.dtype.element_ty))\n"
    )
    make_kernel(source)[(1,)](out)
    wanted = encode(np.array([np.float32(value)]), form)[0]
    np.testing.assert_array_equal(get(out), np.full(32, wanted))


# --- reductions, scans, sorting ------------------------------------------------------------------


def finite(form: Format, shape: tuple[int, ...], seed: int) -> Array:
    """Patterns of numbers, no two of them equal in a row."""
    random = np.random.default_rng(seed)
    numbers = np.flatnonzero(np.isfinite(decode(np.arange(256, dtype=np.uint8), form)))
    numbers = numbers[numbers != 0x80]
    rows = [random.permutation(numbers)[: shape[-1]] for _ in range(int(np.prod(shape[:-1])))]
    return np.array(rows, np.uint8).reshape(shape)


@pytest.mark.parametrize("form", ARITHMETIC, ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_extremes_and_sorting(axis: int, form: Format) -> None:
    x = finite(form, (8, 32), 3)
    values = decode(x, form)
    source = (
        f"def extremes(X, HIGH, LOW, AT, ORDER):\n    x = tl.load(X + {load_of((8, 32))})\n"
        f"    tl.store(HIGH + tl.arange(0, {(32, 8)[axis]}), tl.max(x, {axis}))\n"
        f"    tl.store(LOW + tl.arange(0, {(32, 8)[axis]}), tl.min(x, {axis}))\n"
        f"    tl.store(AT + tl.arange(0, {(32, 8)[axis]}), tl.argmax(x, {axis}))\n"
        f"    tl.store(ORDER + {load_of((8, 32))}, tl.sort(x, 1))\n"
    )
    size = values.shape[1 - axis]
    high, low, order = blank(size, form), blank(size, form), blank((8, 32), form)
    at = DeviceArray.empty(size, "int32", device())
    make_kernel(source)[(1,)](put(x, form), high, low, at, order)
    np.testing.assert_array_equal(decode(get(high), form), values.max(axis))
    np.testing.assert_array_equal(decode(get(low), form), values.min(axis))
    if axis == 1:
        np.testing.assert_array_equal(at.numpy(), values.argmax(axis))
    np.testing.assert_array_equal(decode(get(order), form), np.sort(values, 1))


@pytest.mark.parametrize("form", ARITHMETIC, ids=str)
def test_sums_and_prefixes_are_rounded_to_the_type(form: Format) -> None:
    """Small whole numbers, whose sums are exact in any order."""
    x = encode(np.random.default_rng(4).integers(-1, 2, (16, 4)).astype(np.float64), form)
    values = decode(x, form)
    source = (
        f"def sums(X, TOTAL, PREFIX):\n    x = tl.load(X + {load_of((16, 4))})\n"
        "    tl.store(TOTAL + tl.arange(0, 16), tl.sum(x, 1))\n"
        f"    tl.store(PREFIX + {load_of((16, 4))}, tl.cumsum(x, 1))\n"
    )
    total, prefix = blank(16, form), blank((16, 4), form)
    make_kernel(source)[(1,)](put(x, form), total, prefix)
    np.testing.assert_array_equal(decode(get(total), form), values.sum(1))
    np.testing.assert_array_equal(decode(get(prefix), form), values.cumsum(1))


@pytest.mark.parametrize("form", FLOAT8, ids=str)
def test_tensor_descriptors(form: Format) -> None:
    x = np.random.default_rng(5).integers(0, 256, (20, 32), np.uint8)
    source = (
        "def described(X, O, rows):\n"
        "    a = tl.make_tensor_descriptor(X, [rows, 32], [32, 1], [8, 16])\n"
        "    b = tl.make_tensor_descriptor(O, [rows, 32], [32, 1], [8, 16])\n"
        "    at = tl.program_id(0) * 8\n"
        "    b.store([at, 16], a.load([at, 16]))\n"
    )
    out = blank((20, 32), form)
    make_kernel(source)[(3,)](put(x, form), out, 20)
    np.testing.assert_array_equal(get(out)[:, 16:], x[:, 16:])
    assert np.all(get(out)[:, :16] == FILL)


REFUSED = [
    "tl.atomic_add(X + i, x)",
    "tl.atomic_xchg(X + i, x)",
    "tl.atomic_cas(X + i, x, x)",
    "tl.exp(x)",
    "~x",
    "x & x",
]


@pytest.mark.parametrize("expression", REFUSED)
def test_front_end_refuses_the_rest(expression: str) -> None:
    form = FORMATS["fp8e5"]
    kernel = make_kernel(
        f"def refused(X):\n    i = tl.arange(0, 16)\n    x = tl.load(X + i)\n    {expression}\n"
    )
    with pytest.raises(triton.CompilationError):
        kernel[(1,)](blank(16, form))


@triton.jit
def branches_kernel(X, O, n):
    i = tl.arange(0, 32)
    tile, one = tl.load(X + i), tl.load(X)
    if n > 2:
        tile = tl.flip(tile, 0)
        one = tl.load(X + n)
    k = n
    while k > 0:
        one = tl.load(X + k)
        tile = tl.where(i < k, tile, one)
        k -= 3
    tl.store(O + i, tile)
    tl.store(O + 32, one)


@pytest.mark.parametrize("form", FLOAT8, ids=str)
@pytest.mark.parametrize("n", [0, 2, 9])
def test_branches_and_loops_yield_them(n: int, form: Format) -> None:
    x = np.random.default_rng(6).permutation(256)[:32].astype(np.uint8)
    tile, one = (x[::-1], x[n]) if n > 2 else (x, x[0])
    for k in range(n, 0, -3):
        one = x[k]
        tile = np.where(np.arange(32) < k, tile, one)
    out = blank(33, form)
    branches_kernel[(1,)](put(x, form), out, n)
    np.testing.assert_array_equal(get(out), np.append(tile, one))


@triton.jit
def scattered_kernel(X, P, O, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    tl.store(O + tl.load(P + i), x, mask=i % 2 == 0)


@pytest.mark.parametrize("form", FLOAT8, ids=str)
def test_scattered_stores(form: Format) -> None:
    random = np.random.default_rng(7)
    x, places = random.integers(0, 256, 64, np.uint8), random.permutation(64).astype(np.int32)
    out = blank(64, form)
    scattered_kernel[(1,)](put(x, form), DeviceArray.from_numpy(places, device()), out, B=64)
    expected = np.full(64, FILL, np.uint8)
    expected[places[::2]] = x[::2]
    np.testing.assert_array_equal(get(out), expected)
