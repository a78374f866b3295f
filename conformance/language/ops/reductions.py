"""Reductions over one axis or all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.classes import BY_CLASS
from triton_porting_kit.conformance.language.expression import defaulted, expression, small_numbers
from triton_porting_kit.conformance.language.shapes import Shape, tile
from triton_porting_kit.conformance.language.table import BITS, FLOAT, FP8, INTEGER, NUMBER, Op, Tolerance
from triton_porting_kit.conformance.rounding import from_float64
from triton_porting_kit.conformance.types import Array, Kind

SECTION = "Reductions"
FULL = (
    tile(1, axis=0), tile(2, axis=0), tile(1024, axis=0), tile(1, 32, axis=1), tile(32, 1, axis=0),
    tile(8, 32, axis=0), tile(8, 32, axis=1), tile(4, 8, 16, axis=0), tile(4, 8, 16, axis=1), tile(4, 8, 16, axis=2),
    tile(2, 4, 1, 8, axis=1), tile(2, 2, 4, 2, 4, axis=3),
)  # fmt: skip
ODD = (tile(17, axis=0), tile(17, 5, axis=0), tile(3, 7, axis=1), tile(3, 5, 2, axis=1))
"""Masked shapes: the rest of the tile holds the neutral element."""
WHOLE = (tile(16), tile(8, 32), tile(2, 4, 8), tile(2, 1, 2, 4, 4))


def lowest(kind: Kind) -> str:
    return 'float("-inf")' if kind.is_float else str(kind.lowest)


def highest(kind: Kind) -> str:
    return 'float("inf")' if kind.is_float else str(kind.highest)


def _plain(*args: Any, **more: Any) -> Op:
    return expression(*args, **defaulted(more, {"inputs": small_numbers, "refused": (), "any_zero": True}))


def _large(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    """Integers of any size, whose sums wrap around."""
    (kind,) = kinds
    random = np.random.default_rng(3)
    if kind.bits == 1:
        return (random.integers(0, 2, shape.extents).astype(bool),)
    return (random.integers(kind.lowest, kind.highest, shape.extents, dtype=kind.host, endpoint=True),)


def _normal(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    return tuple(
        from_float64(np.random.default_rng(5).standard_normal(shape.extents), kind) for kind in kinds
    )


def _positive(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    return tuple(from_float64(np.random.default_rng(5).uniform(1, 2, shape.extents), kind) for kind in kinds)


def _with_nan(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    (values,) = _normal(kinds, shape)
    values.ravel()[::5] = np.nan
    values.ravel()[1] = -np.inf
    return (values,)


def _ignoring_nan(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduced(x: Array, axis: int) -> Any:
        with np.errstate(all="ignore"):
            return function(x, axis)

    return reduced


SUMMED = Tolerance(
    {"fp16": 12, "bf16": 12, "fp32": 12, "fp64": 12},
    "positive numbers: each of at most 4 + log2(n) consecutive sums adds half a unit, for n = 1024, and twice that "
    "if the total passes a power of two; sequential sums would stall in 16-bit types",
)
LONG = tile(8192, axis=0)
"""A sum of more ones than 16-bit types can count one by one."""
PRODUCT = """@triton.jit
def combine(a, b):
    return a * b

"""
LARGER = """@triton.jit
def combine(value, at, other, other_at):
    first = (value > other) | ((value == other) & (at < other_at))
    return tl.where(first, value, other), tl.where(first, at, other_at)

"""
MOMENTS = """@triton.jit
def combine(mean, m2, n, mean_b, m2_b, n_b):
    delta = mean_b - mean
    total = n + n_b
    return mean + delta * n_b / total, m2 + m2_b + delta * delta * n * n_b / total, total

"""


def _moments(x: Array, axis: int) -> tuple[Array, ...]:
    count = np.full(x.mean(axis).shape, float(x.shape[axis]))
    return x.mean(axis), x.var(axis) * x.shape[axis], count


def _ties(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    """Values with many duplicates, including the largest and the smallest."""
    (kind,) = kinds
    if kind.bits == 1:
        return small_numbers(kinds, shape)
    order = np.random.default_rng(4).permutation(shape.count).reshape(shape.extents) % 120
    return (order.astype(kind.host),)


def _index_of(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis: np.asarray(function(x, axis), object)


def _points_to(select: Callable[..., Any]) -> Callable[..., Any]:
    """Whether an index points to an element with the selected value."""

    def right(index: Array, x: Array, axis: int) -> Any:
        inside = (index >= 0) & (index < x.shape[axis])
        found = np.take_along_axis(x, np.expand_dims(np.where(inside, index, 0), axis), axis)
        return inside & (found.squeeze(axis) == select(x, axis))

    return right


def _numbers_only(x: Array, axis: int) -> Array:
    """Where there is no NaN: Triton does not define the largest element of a line with a NaN."""
    return np.asarray((x == x).all(axis), bool)


ANY_TYPE = (*NUMBER, *FP8)
WHOLE_NUMBERS = {shape.name: INTEGER for shape in BY_CLASS}
"""Shapes with tiles of all classes that are for integers only."""
OPS: tuple[Op, ...] = (
    _plain("sum", SECTION, "tl.sum(x, {axis})", lambda x, axis: x.sum(axis), (*BITS, *FLOAT), results=("sum",),
        shapes=FULL + ODD + BY_CLASS, other="0", note="Integers narrower than 32 bits are summed in 32 bits."),
    _plain("sum_wraps", SECTION, "tl.sum(x, {axis}, dtype=x.dtype)", lambda x, axis: x.sum(axis), INTEGER,
        shapes=FULL + BY_CLASS, inputs=_large),
    _plain("sum_rounds", SECTION, "tl.sum(x, {axis})", lambda x, axis: x.sum(axis), FLOAT, shapes=(*FULL, LONG),
        inputs=_positive, tolerance=SUMMED),
    _plain("sum_as_fp32", SECTION, "tl.sum(x, {axis}, dtype=tl.float32)", lambda x, axis: x.sum(axis), ("fp16", "bf16", "i8"),
        results=("fp32",), shapes=FULL),
    _plain("sum_all", SECTION, "tl.sum(x)", lambda x: np.asarray(x.sum()), NUMBER, results=("sum",), shapes=WHOLE),
    _plain("sum_keep_dims", SECTION, "tl.sum(x, {axis}, keep_dims=True)", lambda x, axis: x.sum(axis, keepdims=True),
        NUMBER, results=("sum",), shapes=FULL[5:]),
    _plain("sum_all_keep_dims", SECTION, "tl.sum(x, keep_dims=True)", lambda x: x.sum(keepdims=True), ("i32", "fp32"),
        shapes=WHOLE),
    _plain("max", SECTION, "tl.max(x, {axis})", lambda x, axis: x.max(axis), ANY_TYPE, shapes=FULL + ODD + BY_CLASS, other=lowest,
        only=WHOLE_NUMBERS),
    _plain("min", SECTION, "tl.min(x, {axis})", lambda x, axis: x.min(axis), ANY_TYPE, shapes=FULL + ODD + BY_CLASS, other=highest,
        only=WHOLE_NUMBERS),
    _plain("max_nan", SECTION, "tl.max(x, {axis})", _ignoring_nan(np.nanmax), FLOAT, shapes=FULL[2:] + BY_CLASS,
        inputs=_with_nan, note="Skips NaN; NaN if all elements are NaN."),
    _plain("min_nan", SECTION, "tl.min(x, {axis})", _ignoring_nan(np.nanmin), FLOAT, shapes=FULL[2:] + BY_CLASS,
        inputs=_with_nan, note="Skips NaN; NaN if all elements are NaN."),
    _plain("argmax", SECTION, "tl.argmax(x, {axis})", _index_of(np.argmax), NUMBER, results=("i32",),
        shapes=FULL + BY_CLASS, defined=_numbers_only, note="The first of equal elements."),
    _plain("argmin", SECTION, "tl.argmin(x, {axis})", _index_of(np.argmin), NUMBER, results=("i32",),
        shapes=FULL + BY_CLASS, defined=_numbers_only, note="The first of equal elements."),
    _plain("argmax_any_tie", SECTION, "tl.argmax(x, {axis}, tie_break_left=False)", _index_of(np.argmax), NUMBER,
        results=("i32",), shapes=FULL + BY_CLASS, inputs=_ties, accept=_points_to(np.max), defined=_numbers_only, note="Any of equal elements."),
    _plain("argmin_any_tie", SECTION, "tl.argmin(x, {axis}, tie_break_left=False)", _index_of(np.argmin), NUMBER,
        results=("i32",), shapes=FULL + BY_CLASS, inputs=_ties, accept=_points_to(np.min), defined=_numbers_only, note="Any of equal elements."),
    _plain("max_with_index", SECTION, "r0, r1 = tl.max(x, {axis}, return_indices=True)",
        lambda x, axis: (x.max(axis), np.asarray(x.argmax(axis), object)), NUMBER, results=("T", "i32"),
        shapes=FULL + BY_CLASS, defined=_numbers_only),
    _plain("min_with_index", SECTION, "r0, r1 = tl.min(x, {axis}, return_indices=True, keep_dims=True)",
        lambda x, axis: (x.min(axis, keepdims=True), np.asarray(x.argmin(axis, keepdims=True), object)), NUMBER,
        results=("T", "i32"), shapes=FULL + BY_CLASS,
        defined=lambda x, axis: np.expand_dims(_numbers_only(x, axis), axis)),
    _plain("xor_sum", SECTION, "tl.xor_sum(x, {axis})", lambda x, axis: np.bitwise_xor.reduce(x, axis), BITS,
        shapes=FULL + ODD + BY_CLASS, inputs=_large, refused=(*FLOAT, *FP8), other="0"),
    _plain("reduce_or", SECTION, "tl.reduce_or(x, {axis})", lambda x, axis: np.bitwise_or.reduce(x, axis), BITS,
        shapes=FULL + ODD + BY_CLASS, inputs=_large, refused=(*FLOAT, *FP8), other="0"),
    _plain("reduce", SECTION, "tl.reduce(x, {axis}, combine)", lambda x, axis: x.prod(axis), INTEGER, shapes=FULL + BY_CLASS,
        inputs=_large, helpers=PRODUCT),
    _plain("reduce_keep_dims", SECTION, "tl.reduce(x, {axis}, combine, keep_dims=True)",
        lambda x, axis: x.prod(axis, keepdims=True), ("i32", "u8"), shapes=FULL, inputs=_large, helpers=PRODUCT),
    _plain("reduce_all", SECTION, "tl.reduce(x, None, combine)", lambda x: np.asarray(x.prod()), ("i32", "u16"), shapes=WHOLE,
        inputs=_large, helpers=PRODUCT),
    _plain("reduce_two", SECTION, "r0, r1 = tl.reduce((x, y), {axis}, combine)", lambda x, y, axis: _pair(x, y, axis), NUMBER,
        operands=("T", "i32"), results=("T", "i32"), shapes=FULL, inputs=lambda kinds, shape: _indexed(kinds, shape),
        helpers=LARGER, note="Operands of two types."),
    _plain("reduce_three", SECTION,
        "r0, r1, r2 = tl.reduce((x, tl.zeros_like(x), tl.zeros_like(x) + 1), {axis}, combine)", _moments, ("fp32", "fp64"),
        results=("T", "T", "T"), shapes=FULL[5:], inputs=_positive, helpers=MOMENTS,
        tolerance=Tolerance({"fp32": 512, "fp64": 512}, "the second moment loses the leading bits that the mean shares with the numbers: here about 8 of 24")),
)  # fmt: skip


def _indexed(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    (values,) = small_numbers(kinds[:1], shape)
    return values, np.random.default_rng(9).permutation(shape.count).reshape(shape.extents).astype(np.int32)


def _pair(x: Array, y: Array, axis: int) -> tuple[Array, Array]:
    """The largest x, and the smallest y among its elements."""
    most = x.max(axis, keepdims=True)
    far = np.where(x == most, y, 1 << 30)
    return most.squeeze(axis), np.asarray(far.min(axis), object)
