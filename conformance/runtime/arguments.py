"""Scalars and pointers passed through the launcher: every type, compared bit by bit."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from triton_porting_kit.conformance.arrays import GuardedArray
from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.rounding import from_float64
from triton_porting_kit.conformance.types import (
    FLOATS,
    INTEGERS,
    KINDS,
    Array,
    Kind,
    from_bits,
)

CHECKS = Checks("runtime/arguments")


class Interior:
    """A pointer to an element within an array."""

    def __init__(self, array: GuardedArray, element: int) -> None:
        self._address = array.data_ptr() + element * array.kind.storage.itemsize
        self.dtype = array.dtype

    def data_ptr(self) -> int:
        return self._address


def scalars(annotation: str, count: int) -> str:
    """The source of a kernel that stores `count` scalars of a type."""
    names = [f"a{k}" for k in range(count)]
    parameters = ", ".join(f"{name}{annotation}" for name in names)
    stores = "".join(f"    tl.store(O + {k}, {name})\n" for k, name in enumerate(names))
    return f"def scalars(O, {parameters}):\n{stores}"


def _passed(context: Context, kind: Kind, values: list[Any], expected: Array) -> None:
    """Launch with the values as scalars of a type, and compare what the kernel stores."""
    out = context.empty((len(values),), kind)
    make_kernel(scalars(f": {kind.language}", len(values)))[(1,)](out, *values)
    if context.runs:
        context.compare(f"{len(values)} scalars of {kind}", identical(context.read(out), expected))


# --- integers --------------------------------------------------------------------------------------------


def edges(kind: Kind) -> list[int]:
    """Edge cases of an integer type."""
    half = 1 << (kind.bits - 1)
    found = [0, 1, 2, 15, 16, 17, 0x55, half - 1, half - 2, kind.highest, kind.highest - 1]
    if kind.is_signed:
        found += [-1, -2, -16, -17, kind.lowest, kind.lowest + 1]
    else:
        found += [half, half + 1]
    return found


def _integers(context: Context, kind: Kind) -> None:
    values = edges(kind)
    _passed(context, kind, [*values], np.array(values, kind.host))


for _kind in INTEGERS:
    CHECKS.add(
        f"{_kind}",
        f"Integers of {_kind}, its lowest and highest and those around powers of two, reach the kernel unchanged.",
        partial(_integers, kind=_kind),
        needs=(f"type:{_kind}",),
        compiles=True,
    )


@CHECKS.check("i1", "Booleans reach the kernel unchanged.", compiles=True)
def _booleans(context: Context) -> None:
    values = [True, False, False, True, True]
    _passed(context, KINDS["i1"], [*values], np.array(values))


# --- floating-point numbers --------------------------------------------------------------------------------


def exact_edges(kind: Kind) -> Array:
    """Edge cases that a floating-point type can represent, as float64."""
    tiny = 2.0**kind.lowest_exponent
    step = 2.0 ** (1 - kind.precision)
    found = [0.0, -0.0, 1.0, -1.0, 1.5, -2.0, 16.0, 1 + step, 2 - step, 1 / 3, -np.pi, 100.0]
    found += [
        kind.largest,
        -kind.largest,
        tiny,
        -tiny,
        tiny * step,
        -3 * tiny * step,
        np.inf,
        -np.inf,
        np.nan,
    ]
    return np.asarray(from_float64(np.array(found), kind), np.float64)


def _floats(context: Context, kind: Kind) -> None:
    values = exact_edges(kind)
    _passed(context, kind, values.tolist(), values.astype(kind.host))


for _kind in FLOATS:
    CHECKS.add(
        f"{_kind}",
        f"Values of {_kind}, including zeros of both signs, subnormals, infinities and NaN, reach the kernel "
        "unchanged.",
        partial(_floats, kind=_kind),
        needs=(f"type:{_kind}",),
        compiles=True,
    )


def _rounded(context: Context, kind: Kind) -> None:
    step = 2.0 ** (1 - kind.precision)
    ties = [1 + step / 2, 1 + 3 * step / 2, -(1 + step / 2), 1 + step / 2 + 2.0**-50, 1 + step / 2 - 2.0**-50]
    values = np.array(
        [0.1, -0.7, np.e, 1e-3, 12345.678 / 1000, *ties, 2.0**kind.lowest_exponent * step * 2.5]
    )
    _passed(context, kind, values.tolist(), np.asarray(from_float64(values, kind)).astype(kind.host))


for _name in ("fp16", "fp32"):
    CHECKS.add(
        f"{_name}-rounded",
        f"Numbers that {_name} cannot represent are rounded once, to the nearest value, ties to even.",
        partial(_rounded, kind=KINDS[_name]),
        needs=(f"type:{_name}",),
    )
CHECKS.add(
    "bf16-rounded",
    "Numbers that bf16 cannot represent are rounded to the nearest value, ties to even: the kit's launchers guarantee "
    "this, while Triton's own truncate.",
    partial(_rounded, kind=KINDS["bf16"]),
    needs=("type:bf16",),
    kit_device=True,
)


@CHECKS.check("int-for-float", "Integers may be passed for floating-point parameters.")
def _int_for_float(context: Context) -> None:
    _passed(
        context,
        KINDS["fp32"],
        [0, 1, -3, 16, 1 << 24, True],
        np.array([0, 1, -3, 16, 1 << 24, 1], np.float32),
    )


@CHECKS.check("bool-for-int", "Booleans may be passed for integer parameters.")
def _bool_for_int(context: Context) -> None:
    _passed(context, KINDS["i32"], [True, False, True], np.array([1, 0, 1], np.int32))


# --- types that Triton infers ------------------------------------------------------------------------------

_INFERRED = (
    *((value, 32) for value in (0, 1, 16, -1, -16, (1 << 31) - 1, -(1 << 31))),
    *((value, 64) for value in (1 << 31, -(1 << 31) - 1, (1 << 63) - 1, -(1 << 63), 1 << 32)),
    *((value, 64) for value in (1 << 63, (1 << 64) - 1, (1 << 64) - 16)),
)
"""Integers, and the bits of the type that Triton chooses for each."""


@CHECKS.check(
    "inferred-int",
    "An int without a declared type reaches the kernel as the first of i32, i64 and u64 that holds it.",
    compiles=True,
)
def _inferred(context: Context) -> None:
    count = len(_INFERRED)
    names = [f"a{k}" for k in range(count)]
    stores = "".join(
        f"    tl.store(O + {k}, tl.core.to_tensor({a}).to(tl.uint64))\n"
        f"    tl.store(B + {k}, tl.core.to_tensor({a}).dtype.primitive_bitwidth)\n"
        for k, a in enumerate(names)
    )
    source = f"def inferred(O, B, {', '.join(names)}):\n{stores}"
    out, bits = context.empty((count,), "u64"), context.empty((count,), "i32")
    make_kernel(source)[(1,)](out, bits, *(value for value, _ in _INFERRED))
    if context.runs:
        values = np.array([value % (1 << 64) for value, _ in _INFERRED], np.uint64)
        context.compare("values", identical(context.read(out), values))
        widths = np.array([width for _, width in _INFERRED], np.int32)
        context.compare("bits of types", identical(context.read(bits), widths))


@CHECKS.check("inferred-float", "A float without a declared type reaches the kernel as fp32.", compiles=True)
def _inferred_float(context: Context) -> None:
    values = exact_edges(KINDS["fp32"])
    out = context.empty(values.shape, "fp32")
    make_kernel(scalars("", len(values)))[(1,)](out, *values.tolist())
    if context.runs:
        context.compare("values", identical(context.read(out), values.astype(np.float32)))


@CHECKS.check("inferred-bool", "A boolean without a declared type reaches the kernel as one.", compiles=True)
def _inferred_bool(context: Context) -> None:
    out = context.empty((4,), "i1")
    make_kernel(scalars("", 4))[(1,)](out, True, False, True, False)
    if context.runs:
        context.compare("values", identical(context.read(out), np.array([True, False, True, False])))


# --- pointers ----------------------------------------------------------------------------------------------

POINTEES = [KINDS["i1"], *INTEGERS, *FLOATS, KINDS["fp8e4nv"], KINDS["fp8e5"]]

COPY = "def copy(X, O):\n    i = tl.arange(0, 16)\n    tl.store(O + i, tl.load(X + i))\n"


def _pointer(context: Context, kind: Kind) -> None:
    bits = context.random.integers(0, 2 if kind.bits == 1 else 120, 16).astype(np.uint8)
    raw = np.repeat(bits, kind.storage.itemsize).view(kind.storage)
    values = from_bits(raw, kind)
    given, out = context.array(values, kind), context.empty((16,), kind)
    make_kernel(COPY)[(1,)](given, out)
    if context.runs:
        context.compare("what was copied", identical(context.read(out), values))
        context.expect(given.is_unchanged(), "the source is as it was")


for _kind in POINTEES:
    CHECKS.add(
        f"pointer-{_kind}",
        f"A pointer to {_kind} reaches the kernel with that type, and points to what was passed.",
        partial(_pointer, kind=_kind),
        needs=(f"type:{_kind}",),
        elements=16,
        compiles=True,
    )


@CHECKS.check(
    "pointer-addresses", "Pointers reach the kernel with every bit of their addresses.", compiles=True
)
def _addresses(context: Context) -> None:
    arrays = [context.empty((40,), kind) for kind in ("i8", "i16", "fp32", "i64", "u8", "i32")]
    pointers: list[Any] = [*arrays, *(Interior(array, k + 1) for k, array in enumerate(arrays))]
    stores = "".join(f"    tl.store(O + {k}, p{k}.to(tl.int64))\n" for k in range(12))
    source = f"def addresses(O, {', '.join(f'p{k}' for k in range(12))}):\n{stores}"
    out = context.empty((12,), "i64")
    make_kernel(source)[(1,)](out, *pointers)
    if context.runs:
        expected = np.array([pointer.data_ptr() for pointer in pointers], np.uint64).view(np.int64)
        context.compare("addresses", identical(context.read(out), expected))


def _interior(context: Context, element: int) -> None:
    values = context.random.integers(-(1 << 31), 1 << 31, 64).astype(np.int32)
    given, out = context.array(values, "i32"), context.empty((64,), "i32")
    make_kernel(COPY)[(1,)](Interior(given, element), Interior(out, 2 * element))
    if context.runs:
        expected = context.read(out).copy()
        expected[2 * element : 2 * element + 16] = values[element : element + 16]
        context.compare("what was copied", identical(context.read(out), expected))
        outside = np.delete(context.read(out).view(np.uint8), np.s_[8 * element : 8 * element + 64])
        context.compare("the rest", identical(outside, np.full(192, 0xA5, np.uint8)))


for _element in (1, 3, 4, 16, 23):
    CHECKS.add(
        f"pointer-interior-{_element}",
        f"A pointer to element {_element} of an array reaches the kernel unchanged, whatever its alignment.",
        partial(_interior, element=_element),
        elements=16,
    )
