"""`tl.dot_scaled` in random programs. Only programs about matrix products have it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from triton_porting_kit.conformance.language.ops.scaled import E2M1, FORMATS, GROUP
from triton_porting_kit.conformance.stress import numbers
from triton_porting_kit.conformance.stress.numbers import Datum
from triton_porting_kit.conformance.stress.operations.base import Operation, Place, Types, Words, need
from triton_porting_kit.conformance.stress.program import Attrs, Type
from triton_porting_kit.conformance.types import KINDS

_FP32 = KINDS["fp32"]


def _types(types: Types, attrs: Attrs) -> Types:
    """The operands are the factors, the scales of the left one, those of the right one if it has some, and the
    accumulator."""
    a, b, scale, *more = types
    need(len(types) == 5 - (not attrs["both"]) and a.kind_name in FORMATS and b.kind_name in FORMATS)
    k = a.shape[1] * (1 + (a.kind_name == "u8"))
    need(k == b.shape[0] * (1 + (b.kind_name == "u8")) and k >= 2 * GROUP)
    need(scale == Type("u8", (a.shape[0], k // GROUP)))
    need(not attrs["both"] or more[0] == Type("u8", (b.shape[1], k // GROUP)))
    result = Type("fp32", (a.shape[0], b.shape[1]))
    need(more[-1] == result)
    return (result,)


def _text(words: Words) -> str:
    a, b, scale, *more = words.args
    second = more[0] if words.attrs["both"] else "None"
    left, right = (FORMATS[t.kind_name] for t in words.types[:2])
    return f'tl.dot_scaled({a}, {scale}, "{left}", {b}, {second}, "{right}", acc={more[-1]})'


def _factor(stored: Datum, scales: Datum | None, axis: int) -> Datum:
    """The numbers of a factor. `axis`: the dimension that the product sums over."""
    value = stored.exact()
    if stored.kind.name == "u8":  # the lower half of a byte is the first of its two elements
        halves = [E2M1[value & 15], E2M1[value >> 4]]
        shape = [size * (1 + (d == axis)) for d, size in enumerate(value.shape)]
        value = np.stack(halves, axis + 1).reshape(shape)
    if scales is not None:
        spread = np.repeat(2.0 ** (scales.value.astype(np.float64) - 127), GROUP, 1)
        value = value * (spread if axis == 1 else spread.T)
    return Datum(_FP32, value)


def _dot(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    a, b, scale, *more = data
    left, right = _factor(a, scale, 1), _factor(b, more[0] if attrs["both"] else None, 0)
    return numbers.product_of(left, right, more[-1], _FP32)


OPERATIONS: tuple[Operation, ...] = (
    Operation("tl.dot_scaled", _types, _text, _dot, lambda scope: None, weight=0,
        tags=lambda types, attrs: tuple(f"scaled factors of {t.kind_name}" for t in types[:2])),
)  # fmt: skip
