"""Sorting, gathering along an axis, counting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.classes import ROWS_BY_CLASS
from triton_porting_kit.conformance.language.expression import distinct, expression
from triton_porting_kit.conformance.language.shapes import Shape, tile
from triton_porting_kit.conformance.language.table import ALL, FLOAT, FP8, INTEGER, NUMBER, Op
from triton_porting_kit.conformance.language.values import small
from triton_porting_kit.conformance.types import KINDS, Array, Kind

SECTION = "Sorting and gathering"
ROWS = (tile(1), tile(2), tile(64), tile(256), tile(4, 32), tile(2, 4, 8), ROWS_BY_CLASS)


def _mixed(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    """Numbers of both signs, with ties and extremes and without NaN."""
    (kind,) = kinds
    values = small(shape.extents, kind, 2)
    flat = values.reshape(-1)
    flat[::3] = (np.arange(flat[::3].size) * 37 % 100).astype(kind.host)
    if kind.is_float:
        flat[::7] = -np.inf
    elif kind.is_integer:
        flat[::7] = kind.lowest
    return (values,)


def _gathers(*cases: tuple[tuple[int, ...], int, int]) -> tuple[Shape, ...]:
    return tuple(tile(*extents, axis=axis, to=to) for extents, axis, to in cases)


def _indices(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    axis = shape.params["axis"]
    extents = list(shape.extents)
    extents[axis] = shape.params["to"]
    at = np.random.default_rng(8).integers(0, shape.extents[axis], extents).astype(kinds[1].host)
    return (*distinct(kinds[:1], shape), at)


def _gathered(x: Array, y: Array, axis: int, to: int) -> Array:
    return np.take_along_axis(x, y.astype(int), axis)


def _counted(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    bins = shape.params["bins"]
    return (np.random.default_rng(2).integers(0, bins, shape.extents).astype(kinds[0].host),)


def _counts(x: Array, bins: int) -> Any:
    return np.bincount(x.astype(int), minlength=bins).astype(object)


def _ordered(x: Array) -> Array:
    """Rows without NaN, because NaN has no order."""
    return np.broadcast_to((x == x).all(-1, keepdims=True), x.shape)


GATHERS = _gathers(((32,), 0, 32), ((8,), 0, 64), ((64,), 0, 4), ((8, 16), 1, 4), ((8, 16), 0, 4), ((2, 4, 8), 1, 8), ((4, 1, 2, 8), 3, 8),
    ((2, 2, 4, 2, 2), 2, 4))  # fmt: skip
WIDE_GATHERS = _gathers(((256,), 0, 256))
"""Indices that use all 8 bits."""
HISTOGRAMS = tuple(tile(count, bins=bins) for count in (1, 16, 256) for bins in (1, 2, 16, 128))

OPS: tuple[Op, ...] = (
    expression("sort", SECTION, "tl.sort(x)", lambda x: np.sort(x), NUMBER, shapes=ROWS, inputs=_mixed, refused=(), any_zero=True,
        defined=_ordered),
    expression("sort_descending", SECTION, "tl.sort(x, descending=True)", lambda x: np.flip(np.sort(x), -1), NUMBER, shapes=ROWS,
        inputs=_mixed, refused=(), any_zero=True, defined=_ordered),
    expression("topk", SECTION, "tl.topk(x, {k})", lambda x, k: np.flip(np.sort(x), -1)[..., :k], NUMBER,
        shapes=(tile(64, k=8), tile(4, 32, k=4), tile(2, 4, 8, k=8), replace(ROWS_BY_CLASS, params={"k": 8})), inputs=_mixed, refused=(),
        any_zero=True, defined=lambda x, k: _ordered(x)[..., :k]),
    expression("topk_one", SECTION, "tl.topk(x, 1)", lambda x: np.sort(x)[..., -1:], NUMBER, shapes=(tile(64), tile(4, 32)), inputs=_mixed,
        refused=(), any_zero=True, since=(3, 9)),
    expression("gather", SECTION, "tl.gather(x, y, {axis})", _gathered, ALL, operands=("T", "i32"), shapes=GATHERS, inputs=_indices,
        refused=()),
    expression("gather_by", SECTION, "tl.gather(y, x, {axis})", lambda x, y, axis, to: _gathered(y, x, axis, to), INTEGER,
        operands=("T", "fp32"), results=("fp32",), shapes=(*GATHERS, *WIDE_GATHERS), refused=(*FLOAT, *FP8),
        only={shape.name: tuple(name for name in INTEGER if KINDS[name].highest > 127) for shape in WIDE_GATHERS},
        inputs=lambda kinds, shape: _indices(kinds[::-1], shape)[::-1], note="The columns are types of the indices."),
    expression("histogram", SECTION, "tl.histogram(x, {bins})", _counts, ("i32", "u32"), results=("i32",),
        shapes=HISTOGRAMS, inputs=_counted, refused=("i64", "u64", *FLOAT)),
    expression("histogram_masked", SECTION, "tl.histogram(x, {bins}, mask=x != 1)", lambda x, bins: _counts(x[x != 1], bins),
        ("i32", "u32"), results=("i32",), shapes=HISTOGRAMS, inputs=_counted, refused=()),
)  # fmt: skip
