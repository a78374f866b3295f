"""Conversions between all pairs of types, and bitcasts."""

from __future__ import annotations

from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.expression import edge_values, expression
from triton_porting_kit.conformance.language.shapes import ODD, PAIRS, SCALAR, WHOLE, Shape
from triton_porting_kit.conformance.language.table import ALL, FLOAT, FP8, Op
from triton_porting_kit.conformance.language.values import samples
from triton_porting_kit.conformance.rounding import from_float64, on_grid, round_exact, saturated
from triton_porting_kit.conformance.types import KINDS, Array, Kind, from_bits, to_bits

SECTION = "Conversions"
SHAPES = (SCALAR, PAIRS, ODD, WHOLE)
SMALL = tuple(name for name in ALL if KINDS[name].bits <= 16)
"""Types whose every value is converted."""


HALF_WAYS = np.array(
    [
        2.0**-half + sign * 2.0**-beyond
        for half in (3, 4, 8, 11, 24)
        for beyond in (12, 25, 40)
        for sign in (-1, 0, 1)
    ]
)
"""For each type, 1 plus half a unit in the last place, and neighbours that are lost if a conversion first rounds to a
wider type."""


def _half_ways(kind: Kind) -> list[int]:
    """Integers half-way between adjacent numbers of a floating-point type, and their neighbours, with both signs.

    A conversion that first rounds to a wider type turns a neighbour into a tie, and then rounds it to even.
    """
    found = [
        sign * ((1 << top) + (1 << top - digits) * odd + beside)
        for digits in (8, 11, 24, 53)
        for top in (digits, digits + 1, 30, kind.bits - 2)
        for odd in (1, 3)
        for beside in (-1, 0, 1)
        for sign in (-1, 1)
        if top >= digits
    ]
    return [value for value in found if kind.lowest <= value <= kind.highest]


def _values(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    """Half-way values, both sides of rounding steps, and magnitudes up to the largest."""
    (kind,) = kinds
    if shape is WHOLE or kind.bits == 1 or kind.is_minifloat:
        return edge_values(kinds, shape)
    if not kind.is_float:
        values = samples(kind, 100, seed=3).tolist() + _half_ways(kind)
        assert len(values) <= PAIRS.count
        return (np.resize(np.array(values, kind.host), shape.count).reshape(shape.extents),)
    grid = np.concatenate(
        [
            samples(kind, 30, seed=3).astype(np.float64),
            1 + HALF_WAYS,
            -(2.0**-14) * (1 + HALF_WAYS),
            np.arange(-8, 8) / 2,
            2.0 ** np.arange(-30, 20),
            1 + 2.0 ** -np.arange(1, 26),
            -1 - 3 * 2.0 ** -np.arange(1, 26),
            65504 + np.arange(0, 40, 4.0),
            448 + np.arange(-16, 48, 4.0),
            2.0**-24 * np.arange(0, 8) / 2,
            2.0**-10 * np.arange(0, 40) / 4,
            [3.4028234e38, 3.3961775e38, 3.4e38, 1e-40, 1.4e-45, 0.7e-45, 1e-300],
        ]
    )
    assert grid.size <= PAIRS.count  # otherwise the last pair would be left out
    return (np.resize(from_float64(grid, kind), shape.count).reshape(shape.extents),)


def _pairs_refused(target: str) -> tuple[str, ...]:
    """The front end does not convert between integers and four of the 8-bit floating-point types."""
    if target == "fp8e4b15":
        return ()
    if target in FP8:
        return tuple(name for name in ALL if not KINDS[name].is_float)
    return () if KINDS[target].is_float else FP8[:4]


def _minifloat(x: Array, target: Kind) -> Array:
    limit = 2 * target.largest
    x = np.where(np.isfinite(x), np.clip(x, -limit, limit), x)
    if target.name != "fp8e4b15":
        return saturated(on_grid(x, target), target).astype(float)
    down = on_grid(x, target, toward_zero=True)
    # A number half-way between two is rounded away from zero: it becomes the next float64, which is not half-way.
    away = on_grid(np.nextafter(x, np.copysign(np.inf, x)), target)
    return saturated(np.where(x == down, x, away), target).astype(float)


def _to(target: Kind) -> Op:
    def exact(x: Array, kind: Kind) -> Array:
        if kind is target:
            return x
        if target.bits == 1:
            return np.asarray((x != 0).astype(int))
        if target.is_minifloat:
            return _minifloat(x.astype(float), target)
        if target.is_float:
            if kind.is_float:
                return x
            flat = [round_exact(int(v), target) for v in x.ravel()]
            return np.array(flat, float).reshape(x.shape)
        if kind.is_float:
            whole = np.where(_fits(x, kind), x, 0)
            return np.asarray(np.frompyfunc(int, 1, 1)(whole), object)
        return x

    def _fits(x: Array, kind: Kind) -> Any:
        """Numbers outside the range of an integer type have no defined result."""
        if kind.is_float and not target.is_float and target.bits > 1:
            with np.errstate(all="ignore"):
                whole = np.trunc(x)
            return (whole >= target.lowest) & (whole < 2.0 ** (target.bits - target.is_signed))
        if target.name == "fp8e4b15":  # this type has no NaN
            return x == x
        return np.ones(x.shape, bool)

    return expression(
        f"to_{target}", SECTION, f"x.to({target.language})", exact,
        tuple(name for name in ALL if name not in _pairs_refused(target.name)),
        results=(target.name,), shapes=SHAPES, inputs=_values, defined=_fits, refused=_pairs_refused(target.name),
        only={WHOLE.name: SMALL},
    )  # fmt: skip


def _toward_zero(target: Kind) -> Op:
    def exact(x: Array) -> Array:
        near = on_grid(x, target, toward_zero=True)
        return np.where(np.isfinite(x), np.clip(near, -target.largest, target.largest), x)

    return expression(
        f"to_{target}_rtz", SECTION, f'x.to({target.language}, fp_downcast_rounding="rtz")', exact,
        ("fp32", "fp64"), results=(target.name,), shapes=SHAPES[:3], inputs=_values, refused=("i32",),
    )  # fmt: skip


def _bitcast(target: Kind) -> Op:
    same = tuple(name for name in ALL if KINDS[name].bits == target.bits and name != target.name)

    def exact(x: Array, kind: Kind) -> Array:
        bits = to_bits(np.asarray(x.astype(kind.host)), kind)
        return from_bits(np.ascontiguousarray(bits).view(target.storage), target)

    return expression(
        f"bitcast_{target}", SECTION, f"x.to({target.language}, bitcast=True)", exact, same, results=(target.name,),
        shapes=(SCALAR, PAIRS, ODD, WHOLE), only={WHOLE.name: tuple(n for n in same if n in SMALL)},
        inputs=_numbers, refused=tuple(n for n in ALL if KINDS[n].bits != target.bits),
    )  # fmt: skip


def _numbers(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    """Every bit pattern except those of NaN, because the host does not preserve NaN's bits."""
    (values,) = edge_values(kinds, shape)
    return (np.where(values != values, 0, values).astype(values.dtype),)


OPS: tuple[Op, ...] = (
    *(_to(kind) for kind in KINDS.values()),
    *(_toward_zero(KINDS[name]) for name in ("fp16", "bf16")),
    *(_bitcast(kind) for kind in KINDS.values() if kind.bits > 1),
    expression(
        "promote", SECTION, "x + y", lambda x, y, kind: _promoted(x, y, kind), FLOAT, operands=("T", "fp16"),
        results=("wide",), widen={"bf16": "fp16"}, refused=(), since=(3, 6),
        note="Two floating-point types are computed in the wider one, bf16 and fp16 in fp16.",
    ),
)  # fmt: skip


def _promoted(x: Array, y: Array, kind: Kind) -> Array:
    if kind.name == "bf16":
        x = from_float64(x, KINDS["fp16"]).astype(float)
    return x + y
