"""Element-wise operations end to end, on tiles and on scalars: every operation on every type against exact results."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from running import (
    FLOATS,
    INTEGERS,
    KINDS,
    NUMBERS,
    Array,
    Kind,
    assert_same,
    empty,
    from_float64,
    get,
    make_kernel,
    pairs,
    put,
    rounded,
    samples,
    wrap,
)

from triton_porting_kit.toolchain import compat

FORMS = ("tile", "scalar")


@dataclass(frozen=True)
class Op:
    """An expression of x and y, its result on two host numbers, and where it is defined."""

    name: str
    expression: str
    exact: Callable[[Any, Any], Any]
    defined: Callable[[Any, Any, Kind], bool] = lambda x, y, kind: True


def quotient(x: int, y: int) -> int:
    """Division of integers that rounds toward zero."""
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def divides(x: int, y: int, kind: Kind) -> bool:
    return y != 0 and not (kind.is_signed and x == kind.lowest and y == -1)


def shifts(x: int, y: int, kind: Kind) -> bool:
    return 0 <= y < kind.bits


INTEGER_OPS = [
    Op("add", "x + y", lambda x, y: x + y),
    Op("sub", "x - y", lambda x, y: x - y),
    Op("mul", "x * y", lambda x, y: x * y),
    Op("floordiv", "x // y", quotient, divides),
    Op("mod", "x % y", lambda x, y: x - y * quotient(x, y), divides),
    Op("and", "x & y", lambda x, y: x & y),
    Op("or", "x | y", lambda x, y: x | y),
    Op("xor", "x ^ y", lambda x, y: x ^ y),
    Op("shl", "x << y", lambda x, y: x << y, shifts),
    Op("shr", "x >> y", lambda x, y: x >> y, shifts),
    Op("maximum", "tl.maximum(x, y)", max),
    Op("minimum", "tl.minimum(x, y)", min),
    Op("where", "tl.where(x > y, x, y + 1)", lambda x, y: x if x > y else y + 1),
    Op("neg", "0 - x", lambda x, y: -x),
    Op("invert", "~x", lambda x, y: ~x),
    Op("abs", "tl.abs(x)", lambda x, y: abs(x)),
    Op("chain", "(x + y) * (x - y) ^ x", lambda x, y: (x + y) * (x - y) ^ x),
]

COMPARISONS = [
    Op("lt", "x < y", lambda x, y: x < y),
    Op("le", "x <= y", lambda x, y: x <= y),
    Op("gt", "x > y", lambda x, y: x > y),
    Op("ge", "x >= y", lambda x, y: x >= y),
    Op("eq", "x == y", lambda x, y: x == y),
    Op("ne", "x != y", lambda x, y: x != y),
    Op(
        "logic",
        "(x < y) & (x == x) | (y == 0) ^ (x > 0)",
        lambda x, y: (x < y) & (x == x) | (y == 0) ^ (x > 0),
    ),
]


def _fmod(x: float, y: float) -> float:
    return math.fmod(x, y) if math.isfinite(x) and y != 0 and y == y else math.nan


def _number_max(x: float, y: float) -> float:
    return y if x != x else x if y != y else max(x, y)


def _number_min(x: float, y: float) -> float:
    return y if x != x else x if y != y else min(x, y)


def _nan_or(function: Callable[[float, float], float]) -> Callable[[float, float], float]:
    return lambda x, y: math.nan if x != x or y != y else function(x, y)


def _divide(x: float, y: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(x) / np.float64(y))


def _different(x: float, y: float, kind: Kind) -> bool:
    """Zeros of both signs are one number to minimum and maximum: which one comes out is open."""
    return x != y


def _fmod_defined(x: float, y: float, kind: Kind) -> bool:
    return not math.isinf(y)  # fmod(x, inf) is x in C; Triton leaves it to the device


FLOAT_OPS = [
    Op("add", "x + y", lambda x, y: x + y),
    Op("sub", "x - y", lambda x, y: x - y),
    Op("mul", "x * y", lambda x, y: x * y),
    Op("div", "x / y", _divide),
    Op("mod", "x % y", _fmod, _fmod_defined),
    # Releases of Triton before 3.8 subtract from 0, which is another thing for 0 itself.
    Op("neg", "-x", lambda x, y: -x if compat.release() >= (3, 8) else 0.0 - x),
    Op("abs", "tl.abs(x)", lambda x, y: abs(x)),
    Op("maximum", "tl.maximum(x, y)", _number_max, _different),
    Op("minimum", "tl.minimum(x, y)", _number_min, _different),
    Op("maximum_nan", "tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)", _nan_or(max), _different),
    Op("minimum_nan", "tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)", _nan_or(min), _different),
    Op("where", "tl.where(x > y, x, y)", lambda x, y: x if x > y else y),
    Op("clamp", "tl.clamp(x, -1.5, 2.0)", lambda x, y: min(max(x, -1.5), 2.0), lambda x, y, kind: x == x),
]


def kernel_source(ops: list[Op], form: str) -> str:
    """A kernel that stores every operation's results, one after the other."""
    if form == "tile":
        lines = [
            "def operations(X, Y, D, O, n, B: tl.constexpr):",
            "    i = tl.arange(0, B)",
            # The edge of the arrays is masked, the operands of undefined results are not: they must not trap.
            "    x = tl.load(X + i, mask=i < n)",
            "    y = tl.load(Y + i, mask=i < n)",
            *(
                f"    tl.store(O + {k} * n + i, {op.expression}, "
                f"mask=(i < n) & (tl.load(D + {k} * n + i, mask=i < n) > 0))"
                for k, op in enumerate(ops)
            ),
        ]
    else:
        lines = [
            "def operations(X, Y, D, O, n, B: tl.constexpr):",
            "    for i in range(n):",
            "        x = tl.load(X + i)",
            "        y = tl.load(Y + i)",
            *(
                f"        tl.store(O + {k} * n + i, {op.expression}, mask=tl.load(D + {k} * n + i) > 0)"
                for k, op in enumerate(ops)
            ),
        ]
    return "\n".join(lines) + "\n"


@functools.cache
def results(family: str, kind: Kind, form: str) -> dict[str, tuple[Array, Array, Array, Array]]:
    """By operation: what the kernel computed, where that is defined, x and y."""
    ops = {"integer": INTEGER_OPS, "float": FLOAT_OPS, "comparison": COMPARISONS}[family]
    x, y = pairs(samples(kind, 18))
    n = x.size
    defined = np.array(
        [[op.defined(a, b, kind) for a, b in zip(x.tolist(), y.tolist(), strict=True)] for op in ops]
    )
    out_kind = KINDS["i8"] if family == "comparison" else kind
    out = empty((len(ops), n), out_kind)
    before = get(out)
    kernel = make_kernel(kernel_source(ops, form))
    kernel[(1,)](put(x, kind), put(y, kind), put(defined.astype(np.int8), "i8"), out, n, B=512)
    values = get(out)
    assert_same(
        np.where(defined, 0, values), np.where(defined, 0, before), "written where the mask forbids it"
    )
    return {op.name: (values[k], defined[k], x, y) for k, op in enumerate(ops)}


def check(family: str, op: Op, kind: Kind, form: str, expected: Callable[[list[Any]], Array]) -> None:
    values, defined, x, y = results(family, kind, form)[op.name]
    operands = zip(x[defined].tolist(), y[defined].tolist(), strict=True)
    assert_same(values[defined], expected([op.exact(a, b) for a, b in operands]))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@pytest.mark.parametrize("op", INTEGER_OPS, ids=lambda op: op.name)
def test_integer_operation_wraps_like_the_type(op: Op, kind: Kind, form: str) -> None:
    check("integer", op, kind, form, lambda exact: np.array([wrap(v, kind) for v in exact], kind.host))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", FLOATS, ids=str)
@pytest.mark.parametrize("op", FLOAT_OPS, ids=lambda op: op.name)
def test_float_operation_is_rounded_once(op: Op, kind: Kind, form: str) -> None:
    # float64 results of narrower operands, rounded again, are the correctly rounded ones for these operations.
    check("float", op, kind, form, lambda exact: from_float64(np.array(exact, np.float64), kind))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", NUMBERS, ids=str)
@pytest.mark.parametrize("op", COMPARISONS, ids=lambda op: op.name)
def test_comparison_is_exact(op: Op, kind: Kind, form: str) -> None:
    check("comparison", op, kind, form, lambda exact: np.array(exact).astype(np.int8))


# --- casts ---------------------------------------------------------------------------------------

CAST_TARGETS = list(KINDS.values())


def cast_source(targets: list[Kind], form: str) -> str:
    names = ", ".join(f"O{k}" for k in range(len(targets)))
    head = f"def casts(X, {names}, n, B: tl.constexpr):\n"
    if form == "tile":
        body = "    i = tl.arange(0, B)\n    x = tl.load(X + i, mask=i < n)\n"
        line = "    tl.store(O{k} + i, x.to({to}), mask=i < n)\n"
    else:
        body = "    for i in range(n):\n        x = tl.load(X + i)\n"
        line = "        tl.store(O{k} + i, x.to({to}))\n"
    return head + body + "".join(line.format(k=k, to=t.language) for k, t in enumerate(targets))


def cast_values(source: Kind) -> Array:
    if not source.is_float:
        return samples(source, 60, seed=2)
    # Halves, both sides of rounding steps, and magnitudes up to the largest.
    grid = np.concatenate(
        [
            samples(source, 30, seed=3).astype(np.float64),
            np.arange(-8, 8) / 2,
            2.0 ** np.arange(-30, 20),
            1 + 2.0 ** -np.arange(1, 26),
            -1 - 3 * 2.0 ** -np.arange(1, 26),
            65504 + np.arange(0, 40, 4.0),
            2.0**-24 * np.arange(0, 8) / 2,
            [3.4028234e38, 3.3961775e38, 3.4e38, 1e-40, 1.4e-45, 0.7e-45, 1e-300],
        ]
    )
    return from_float64(grid, source)


@functools.cache
def casts(source: Kind, form: str) -> tuple[Array, list[Array]]:
    x = cast_values(source)
    outs = [empty(x.size, target) for target in CAST_TARGETS]
    make_kernel(cast_source(CAST_TARGETS, form))[(1,)](put(x, source), *outs, x.size, B=256)
    return x, [get(out) for out in outs]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("target", CAST_TARGETS, ids=str)
@pytest.mark.parametrize("source", KINDS.values(), ids=str)
def test_cast(source: Kind, target: Kind, form: str) -> None:
    x, outs = casts(source, form)
    actual = outs[CAST_TARGETS.index(target)]
    if target.bits == 1:
        expected: Array = x != 0
    elif target.is_float:
        expected = rounded(x.astype(np.int8) if source.bits == 1 else x, target)
    elif source.is_float:
        # Toward zero; numbers beyond the target's range have no result.
        kept = np.isfinite(x)
        kept[kept] = [target.lowest <= math.trunc(v) <= target.highest for v in x[kept].tolist()]
        x, actual = x[kept], actual[kept]
        expected = np.array([math.trunc(v) for v in x.tolist()], target.host)
    else:
        expected = np.array([wrap(int(v), target) for v in x.tolist()], target.host)
    assert_same(actual, expected)


ROUNDED_DOWN = {"fp16": "fp32", "bf16": "fp32"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("target", ["fp16", "bf16"])
def test_cast_toward_zero(target: str, form: str) -> None:
    source, kind = KINDS["fp32"], KINDS[target]
    x = cast_values(source)
    body = f'x.to({kind.language}, fp_downcast_rounding="rtz")'
    out = empty(x.size, kind)
    kernel = make_kernel(
        cast_source([kind], form).replace(f"x.to({kind.language})", body).replace("casts", "rtz")
    )
    kernel[(1,)](put(x, source), out, x.size, B=256)
    nearest = rounded(x, kind).astype(np.float64)
    with np.errstate(all="ignore"):
        # One step back toward zero where rounding to nearest went away from it.
        away = np.abs(nearest) > np.abs(x.astype(np.float64))
    bits = np.abs(nearest).astype(kind.host)
    if kind.name == "bf16":
        patterns = (bits.view(np.uint32) >> 16) - away
        back = (patterns.astype(np.uint32) << 16).view(np.float32)
    else:
        back = (bits.view(np.uint16) - away.astype(np.uint16)).view(np.float16)
    assert_same(get(out), np.copysign(back, x.astype(back.dtype)))


BITCASTS = [
    (a, b) for a in KINDS.values() for b in KINDS.values() if a.bits == b.bits and a is not b and a.bits > 1
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("source", "target"), BITCASTS, ids=[f"{a}-{b}" for a, b in BITCASTS])
def test_bitcast_keeps_every_bit(source: Kind, target: Kind, form: str) -> None:
    patterns = samples(KINDS[f"u{source.bits}"], 60, seed=4)
    x, out = empty(60, source), empty(60, target)
    x.device.memcpy_htod(x.data_ptr(), patterns, 0)
    text = cast_source([target], form).replace(
        f"x.to({target.language})", f"x.to({target.language}, bitcast=True)"
    )
    make_kernel(text.replace("casts", "bitcasts"))[(1,)](x, out, 60, B=64)
    found = np.empty_like(patterns)
    out.device.memcpy_dtoh(found, out.data_ptr(), 0)
    np.testing.assert_array_equal(found, patterns)
