"""Scans along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.classes import SCANNED_BY_CLASS
from triton_porting_kit.conformance.language.expression import defaulted, expression, small_numbers
from triton_porting_kit.conformance.language.ops.reductions import (
    LARGER,
    PRODUCT,
    _indexed,
    _large,
    _pair,
    _positive,
)
from triton_porting_kit.conformance.language.shapes import Shape, tile
from triton_porting_kit.conformance.language.table import FLOAT, INTEGER, NUMBER, Op, Tolerance
from triton_porting_kit.conformance.types import Array, Kind

SECTION = "Scans"
_PLACES = (((1,), 0), ((64,), 0), ((17,), 0), ((1, 32), 1), ((32, 1), 0), ((8, 32), 0), ((8, 32), 1), ((5, 3), 0),
    ((4, 8, 16), 0), ((4, 8, 16), 1), ((4, 8, 16), 2), ((2, 1, 4, 8), 2), ((2, 2, 2, 4, 2), 3))  # fmt: skip
SHAPES = tuple(
    tile(*extents, axis=axis, reverse=reverse)
    for extents, axis in _PLACES
    for reverse in (False, True)
    # A scan would see masked elements that precede others.
    if not reverse or all(extent & (extent - 1) == 0 for extent in extents)
)


def along(function: Callable[[Array, int], Array]) -> Callable[..., Array]:
    """A scan in either direction."""

    def scanned(x: Array, axis: int, reverse: bool) -> Array:
        turned = np.flip(x, axis) if reverse else x
        done = function(turned, axis)
        return np.flip(done, axis) if reverse else done

    return scanned


def _signs(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    (kind,) = kinds
    signs = np.random.default_rng(6).integers(0, 2, shape.extents)
    return (np.where(signs == 0, 1, 3 if not (kind.is_signed or kind.is_float) else -1).astype(kind.host),)


LINES = """@triton.jit
def combine(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2

"""


def _recurrence(a: Array, b: Array, axis: int, reverse: bool) -> tuple[Array, Array]:
    """x -> a x + b, applied in order: associative, but not commutative."""
    a, b = (np.moveaxis(np.flip(v, axis) if reverse else v, axis, 0) for v in (a, b))
    factors, states = [a[0]], [b[0]]
    for factor, term in zip(a[1:], b[1:], strict=True):
        factors.append(factor * factors[-1])
        states.append(factor * states[-1] + term)
    both = [np.moveaxis(np.array(v), 0, axis) for v in (factors, states)]
    return tuple(np.flip(v, axis) if reverse else v for v in both)  # type: ignore[return-value]


def _running_pair(x: Array, y: Array, axis: int, reverse: bool) -> tuple[Array, Array]:
    """The largest x so far, and the smallest y that goes with it."""
    x, y = (np.moveaxis(np.flip(v, axis) if reverse else v, axis, 0) for v in (x, y))
    found = [_pair(x[: k + 1], y[: k + 1], 0) for k in range(len(x))]
    both = [
        np.moveaxis(np.array([pair[i] for pair in found], pair_type), 0, axis)
        for i, pair_type in enumerate((x.dtype, object))
    ]
    return tuple(np.flip(v, axis) if reverse else v for v in both)  # type: ignore[return-value]


def _plain(*args: Any, **more: Any) -> Op:
    return expression(
        *args, **defaulted(more, {"inputs": small_numbers, "refused": (), "any_zero": True, "shapes": SHAPES})
    )


STALLS = Tolerance(
    {"fp16": 40, "bf16": 40},
    "one thread may add 64 positive numbers sequentially, each with half a unit; adding all sequentially would stall",
)
WORDS = ("i32", "i64", "u32", "u64", *FLOAT)
OPS: tuple[Op, ...] = (
    _plain("cumsum", SECTION, "tl.cumsum(x, {axis}, reverse={reverse})", along(np.cumsum), (*NUMBER, "i1"), results=("sum",),
        shapes=SHAPES + SCANNED_BY_CLASS,
        note="Integers narrower than 32 bits are summed in 32 bits."),
    _plain("cumsum_wraps", SECTION, "tl.cumsum(x, {axis}, reverse={reverse}, dtype=x.dtype)", along(np.cumsum), INTEGER,
        inputs=_large, shapes=SHAPES + SCANNED_BY_CLASS),
    _plain("cumsum_rounds", SECTION, "tl.cumsum(x, {axis}, reverse={reverse})", along(np.cumsum), ("fp16", "bf16"),
        inputs=_positive, shapes=(tile(8192, axis=0, reverse=False),), tolerance=STALLS, refused=()),
    _plain("cumprod", SECTION, "tl.cumprod(x, {axis}, reverse={reverse})", along(np.cumprod), WORDS, inputs=_signs),
    _plain("cumprod_narrow", SECTION, "tl.cumprod(x, {axis}, reverse={reverse})", along(np.cumprod), ("i8", "i16", "u8", "u16"),
        results=("sum",), inputs=_signs, since=(3, 9), note="Integers narrower than 32 bits are multiplied in 32 bits."),
    _plain("scan_product", SECTION, "tl.associative_scan(x, {axis}, combine, reverse={reverse})", along(np.cumprod), INTEGER,
        inputs=_large, helpers=PRODUCT, shapes=SHAPES + SCANNED_BY_CLASS),
    _plain("scan_maximum", SECTION, "tl.associative_scan(x, {axis}, combine, reverse={reverse})",
        along(lambda x, axis: np.maximum.accumulate(x, axis)), (*NUMBER,),
        shapes=SHAPES + SCANNED_BY_CLASS, only={shape.name: INTEGER for shape in SCANNED_BY_CLASS},
        helpers=PRODUCT.replace("a * b", "tl.where(a > b, a, b)")),
    _plain("scan_of_two", SECTION, "r0, r1 = tl.associative_scan((x, y), {axis}, combine, reverse={reverse})", _recurrence,
        INTEGER, operands=("T", "T"), results=("T", "T"), helpers=LINES, note="The function is not commutative: operands keep their order."),
    _plain("scan_of_two_types", SECTION, "r0, r1 = tl.associative_scan((x, y), {axis}, combine, reverse={reverse})",
        _running_pair, (*FLOAT, "i8", "u64"), operands=("T", "i32"), results=("T", "i32"), inputs=_indexed, helpers=LARGER),
    _plain("scan_of_scan", SECTION, "tl.cumsum(tl.cumsum(x * 2 + 1, {axis}) - x, 0)",
        lambda x, axis, reverse: np.cumsum(np.cumsum(x * 2 + 1, axis) - x, 0), ("i32", "i64"), shapes=SHAPES[::2]),
)  # fmt: skip
