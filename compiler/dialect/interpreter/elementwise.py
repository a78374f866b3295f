"""Upstream's element-wise operations: what each of ``arith`` and ``math`` computes.

A function takes the operation and NumPy values of any shapes that broadcast, and returns the value of its result, or a
tuple of them. Integers wrap around. Floats narrower than 32 bits are computed in f32 and rounded after each operation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from . import real_functions as real
from .formats import bitcast, bits_of, convert, dtype_of, from_integers, is_float, narrow, widen
from .program import Operation

Function = Callable[..., Any]


# --- integers ----------------------------------------------------------------------------------------


def signed(value: Any) -> Any:
    """Integers as NumPy's signed ones; a boolean is -1."""
    value = np.asarray(value)
    return -value.astype(np.int8) if value.dtype == np.bool_ else value


def unsigned(value: Any) -> Any:
    """Integers as NumPy's unsigned ones."""
    value = np.asarray(value)
    return value.astype(np.uint8) if value.dtype == np.bool_ else value.view(f"u{value.dtype.itemsize}")


def integers(value: Any, element: str) -> Any:
    """The lowest bits of integers, in the type that holds `element`."""
    if element == "i1":
        return (np.asarray(value) & 1) != 0
    return np.asarray(value).astype(dtype_of(element))


def _integer(function: Function, sees: Function = signed) -> Function:
    def compute(op: Operation, *values: Any) -> Any:
        return integers(function(*map(sees, values)), op.element)

    return compute


def _shift(function: Function, *, keeps_sign: bool = False) -> Function:
    """A shift by an unsigned amount. For amounts of at least the type's width, the result is 0 or all sign bits."""

    def compute(op: Operation, value: Any, amount: Any) -> Any:
        bits = bits_of(op.element)
        value = signed(value) if keeps_sign else unsigned(value)
        amount = unsigned(amount)
        within = np.minimum(amount, amount.dtype.type(bits - 1)).astype(value.dtype)
        result = function(value, within)
        if not keeps_sign:
            result = np.where(amount < bits, result, result.dtype.type(0))
        return integers(result, op.element)

    return compute


def _division(function: Function, sees: Function = signed) -> Function:
    """A division.

    A divisor of 0, or -1 if the quotient overflows, is replaced by 1: kernels must not use such results.
    """

    def compute(op: Operation, a: Any, b: Any) -> Any:
        a, b = np.broadcast_arrays(sees(a), sees(b))
        bad = b == 0
        if sees is signed:
            bad = bad | ((b == -1) & (a == np.iinfo(a.dtype).min))
        return integers(function(a, np.where(bad, b.dtype.type(1), b)), op.element)

    return compute


def _quotient(a: Any, b: Any) -> Any:
    """Rounded toward zero."""
    down = a // b
    return down + ((a % b != 0) & ((a < 0) != (b < 0))).astype(a.dtype)


def _quotient_up(a: Any, b: Any) -> Any:
    return a // b + (a % b != 0).astype(a.dtype)


def high_half(a: Any, b: Any) -> Any:
    """The upper half of the product of two of NumPy's signed or unsigned integers."""
    a, b = np.broadcast_arrays(a, b)
    bits = a.dtype.itemsize * 8
    if bits < 64:
        wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
        return ((a.astype(wide) * b.astype(wide)) >> wide.type(bits)).astype(a.dtype)
    x, y, half, low = a.view(np.uint64), b.view(np.uint64), np.uint64(32), np.uint64(0xFFFFFFFF)
    middle = (x >> half) * (y & low) + (((x & low) * (y & low)) >> half)
    other = (x & low) * (y >> half) + (middle & low)
    high = (x >> half) * (y >> half) + (middle >> half) + (other >> half)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return high.view(a.dtype)


def _extended(sees: Function) -> Function:
    def compute(op: Operation, a: Any, b: Any) -> Any:
        a, b = sees(a), sees(b)
        return integers(a * b, op.element), integers(high_half(a, b), op.element)

    return compute


_CMPI = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")
_FIRST_UNSIGNED = 6


def _compare_integers(op: Operation, a: Any, b: Any) -> Any:
    predicate = op.integer("predicate")
    sees = unsigned if predicate >= _FIRST_UNSIGNED else signed
    return getattr(operator, _CMPI[predicate])(sees(a), sees(b))


# --- floats ------------------------------------------------------------------------------------------


def _float(function: Function) -> Function:
    def compute(op: Operation, *values: Any) -> Any:
        wide = [widen(value, element) for value, element in zip(values, op.sources, strict=True)]
        return narrow(function(*wide), op.element)

    return compute


def smaller(a: Any, b: Any, *, propagate_nan: bool) -> Any:
    """The smaller number, where -0 is less than 0.

    With `propagate_nan`, NaN if either is NaN; else only if both are.
    """
    found = np.minimum(a, b) if propagate_nan else np.fmin(a, b)
    return np.where((a == b) & np.signbit(a), a, np.where((a == b) & np.signbit(b), b, found))


def larger(a: Any, b: Any, *, propagate_nan: bool) -> Any:
    """The larger number; see `smaller`."""
    return -smaller(-a, -b, propagate_nan=propagate_nan)


_UNO, _TRUE = 14, 15
"""Two of MLIR's float predicates: the first eight do not hold for NaN, the other eight do."""


def _compare_floats(op: Operation, a: Any, b: Any) -> Any:
    """Three bits of a predicate say whether it holds for equal, greater and less."""
    predicate = op.integer("predicate")
    a, b = widen(a, op.sources[0]), widen(b, op.sources[1])
    unordered = predicate > 7
    bits = {_UNO: 0, _TRUE: 7}.get(predicate, predicate - 7) if unordered else predicate
    result = (np.isnan(a) | np.isnan(b)) & unordered
    for bit, holds in enumerate((a == b, a > b, a < b)):
        if bits >> bit & 1:
            result = result | holds
    return result


def _sign(change: Function) -> Function:
    """A change of the sign bit; computed on numbers for formats whose NaN has the pattern of -0."""

    def compute(op: Operation, value: Any) -> Any:
        if op.element.endswith("FNUZ"):
            return narrow(change(widen(value, op.element)), op.element)
        value = np.asarray(value)
        if is_float(op.element) and value.dtype.kind == "u":
            top = value.dtype.type(0x8 if op.element == "f4E2M1FN" else 1 << (8 * value.dtype.itemsize - 1))
            return value & ~top if change is np.abs else value ^ top
        return change(value)

    return compute


# --- casts -------------------------------------------------------------------------------------------

_TOWARD_ZERO = 3
"""Value in upstream's enumeration of rounding modes."""


def _truncate(op: Operation, value: Any) -> Any:
    toward_zero = op.integer("roundingmode") == _TOWARD_ZERO
    return convert(value, op.sources[0], op.element, toward_zero=toward_zero)


def _to_integer(sees: Function) -> Function:
    """Rounded toward zero. Outside the integer's range, where any result is allowed, the nearest integer."""

    def compute(op: Operation, value: Any) -> Any:
        bits = bits_of(op.element)
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if sees is signed else (0, (1 << bits) - 1)
        number = np.trunc(widen(value, op.sources[0]).astype(np.float64))
        return integers(real.saturated(number, low, high), op.element)

    return compute


def _select(op: Operation, condition: Any, a: Any, b: Any) -> Any:
    return np.where(condition, a, b)


def _power_of_integer(op: Operation, base: Any, exponent: Any) -> Any:
    return narrow(real.power(widen(base, op.sources[0]), np.asarray(exponent).astype(np.float64)), op.element)


FUNCTIONS: dict[str, Function] = {
    **{
        f"arith.{name}": _integer(function)
        for name, function in {
            "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and, "ori": np.bitwise_or,
            "xori": np.bitwise_xor, "maxsi": np.maximum, "minsi": np.minimum, "extsi": np.positive,
            "trunci": np.positive, "index_cast": np.positive,
        }.items()
    },
    **{
        f"arith.{name}": _integer(function, unsigned)
        for name, function in {
            "maxui": np.maximum, "minui": np.minimum, "extui": np.positive, "index_castui": np.positive,
        }.items()
    },
    "arith.shli": _shift(np.left_shift),
    "arith.shrui": _shift(np.right_shift),
    "arith.shrsi": _shift(np.right_shift, keeps_sign=True),
    "arith.divsi": _division(_quotient),
    "arith.remsi": _division(np.fmod),
    "arith.ceildivsi": _division(_quotient_up),
    "arith.floordivsi": _division(np.floor_divide),
    "arith.divui": _division(np.floor_divide, unsigned),
    "arith.remui": _division(np.remainder, unsigned),
    "arith.ceildivui": _division(_quotient_up, unsigned),
    "arith.mulsi_extended": _extended(signed),
    "arith.mului_extended": _extended(unsigned),
    "math.absi": _integer(np.abs),
    "arith.cmpi": _compare_integers,
    "arith.cmpf": _compare_floats,
    "arith.select": _select,
    **{
        f"arith.{name}": _float(function)
        for name, function in (
            ("addf", np.add), ("subf", np.subtract), ("mulf", np.multiply), ("divf", np.divide), ("remf", np.fmod),
        )
    },
    "arith.maximumf": _float(partial(larger, propagate_nan=True)),
    "arith.minimumf": _float(partial(smaller, propagate_nan=True)),
    "arith.maxnumf": _float(partial(larger, propagate_nan=False)),
    "arith.minnumf": _float(partial(smaller, propagate_nan=False)),
    "arith.negf": _sign(np.negative),
    "math.absf": _sign(np.abs),
    "arith.extf": _truncate,
    "arith.truncf": _truncate,
    "arith.fptosi": _to_integer(signed),
    "arith.fptoui": _to_integer(unsigned),
    "arith.sitofp": lambda op, value: from_integers(signed(value), op.element),
    "arith.uitofp": lambda op, value: from_integers(unsigned(value), op.element),
    "arith.bitcast": lambda op, value: bitcast(value, op.element),
    **{f"math.{name}": _float(function) for name, function in real.UPSTREAM.items()},
    "math.fpowi": _power_of_integer,
}  # fmt: skip
"""By the names of upstream's operations."""
