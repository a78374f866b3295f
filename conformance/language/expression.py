"""Operations that are an expression of loaded operands: their kernels, and their results computed by an oracle."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.classes import BY_CLASS_NAMES, by_class
from triton_porting_kit.conformance.language.shapes import DENORMALS, ELEMENTWISE, Shape, block_of
from triton_porting_kit.conformance.language.table import ALL, EXACT, Op, Release, Tolerance
from triton_porting_kit.conformance.language.values import pairs, samples, small
from triton_porting_kit.conformance.language.work import Result, Work
from triton_porting_kit.conformance.rounding import from_float64, wrapped
from triton_porting_kit.conformance.types import KINDS, Array, Kind, every_value, to_bits

Inputs = Callable[[tuple[Kind, ...], Shape], tuple[Array, ...]]
Oracle = Callable[..., Any]
NAMES = "xyzw"
"""The operands' names in a kernel."""


def expression(
    name: str,
    section: str,
    code: str,
    oracle: Oracle,
    types: tuple[str, ...],
    *,
    operands: tuple[str, ...] = ("T",),
    results: tuple[str, ...] = ("T",),
    shapes: tuple[Shape, ...] = ELEMENTWISE,
    inputs: Inputs | None = None,
    defined: Oracle | None = None,
    form: str = "",
    refused: tuple[str, ...] | None = None,
    tolerance: Tolerance = EXACT,
    any_zero: bool = False,
    other: str | Callable[[Kind], str] = "",
    helpers: str = "",
    widen: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    since: Release = (0, 0),
    until: Release = (99, 0),
    note: str = "",
    only: Mapping[str, tuple[str, ...]] | None = None,
    ulp: Oracle | None = None,
    accept: Oracle | None = None,
    unordered: bool = False,
    may_flush: bool = False,
) -> Op:
    """An operation given as an expression of x, y, z, or as lines that compute r (r0, r1, ...) from them.

    `code` may contain ``{T}``, the type under test, and the parameters of the shape. `operands` and `results` are type
    names, or ``T``. A result may also be ``sum``, the type in which Triton computes sums, or ``wide``, which `widen`
    maps to a type. `oracle` gets the operands (integers as arrays of Python integers, others as float64), the shape's
    parameters and, if it has a parameter `kind`, the type. It returns exact results, which this function rounds.
    `defined` gets the same arguments and says which elements have a defined result. `other` is the value of masked-off
    elements of the operands.

    `ulp` gets the same arguments as `oracle` and returns the tolerance of each element; it replaces `tolerance`.
    `accept` gets the stored result followed by the same arguments, and says which elements are right. `unordered`: the
    elements of the result may be in any order. `may_flush`: some chips flush denormals in this operation, so only the
    shape `DENORMALS` compares denormal results.
    """
    code = code if "\n" in code or "=" in _without_calls(code) else f"r = {code}"

    def build(kind: Kind, shape: Shape) -> Work:
        kinds = tuple(_kind(operand, kind, widen) for operand in operands)
        arrays = (by_class if shape.name in BY_CLASS_NAMES else inputs or edge_values)(kinds, shape)
        extra = dict(shape.params) | ({"kind": kind} if _takes_kind(oracle) else {})
        with np.errstate(all="ignore"):
            wide = [_wide(array, k, tolerance.of(kind)) for array, k in zip(arrays, kinds, strict=True)]
            found = oracle(*wide, **extra)
            exact = found if isinstance(found, tuple) else (found,)
            extra = dict(shape.params) | ({"kind": kind} if defined and _takes_kind(defined) else {})
            where = None if defined is None else np.asarray(defined(*wide, **extra), bool)
            if may_flush and kind.is_float and shape.name != DENORMALS.name:
                where = _normal(np.asarray(exact[0]), kind) & (True if where is None else where)
            near = tolerance.of(kind) if ulp is None or not tolerance.of(kind) else ulp(*wide)
        outcomes = tuple(
            _result(np.asarray(values), _kind(result, kind, widen), where, near, any_zero)
            for values, result in zip(exact, results, strict=True)
        )
        if accept is not None:
            judge, known = accept, dict(shape.params)
            outcomes = tuple(replace(o, accept=lambda found: judge(found, *wide, **known)) for o in outcomes)
        if unordered:
            outcomes = tuple(replace(o, accept=functools.partial(_permuted, o)) for o in outcomes)
        fields = dict(shape.params) | {"T": kind.language}
        filler = other(kind) if callable(other) else other
        inner = [a.shape for a in arrays], [r.values.shape for r in outcomes]
        source = helpers + kernel_source(name, code.format(**fields), *inner, shape, filler)
        return Work(source, tuple(zip(arrays, kinds, strict=True)), outcomes, options=options or {})

    kept = tuple(refused) if refused is not None else tuple(t for t in ALL if t not in types)
    return Op(
        name,
        section,
        form or code.removeprefix("r = "),
        build,
        types,
        shapes,
        kept,
        tolerance,
        since,
        until,
        note,
        only or {},
    )


def defaulted(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name. A section's arguments are the defaults of its entries."""
    return {**defaults, **given}


def _without_calls(code: str) -> str:
    """Code without bracketed text and without comparisons. What is left contains ``=`` only if the code assigns."""
    text, depth = "", 0
    for character in code:
        depth += (character in "([") - (character in ")]")
        text += character if not depth else ""
    for comparison in ("==", "!=", "<=", ">="):
        text = text.replace(comparison, "")
    return text


def _takes_kind(function: Oracle) -> bool:
    return "kind" in getattr(getattr(function, "__code__", None), "co_varnames", ())


def _kind(name: str, kind: Kind, widen: Mapping[str, str] | None) -> Kind:
    if name == "T":
        return kind
    if name == "wide":
        return KINDS[(widen or {}).get(kind.name, kind.name)]
    if name == "sum":
        narrow = kind.bits < 32 and not kind.is_float
        return KINDS["i32" if kind.is_signed else "u32"] if narrow else kind
    return KINDS[name]


def _wide(array: Array, kind: Kind, ulp: float) -> Array:
    if not kind.is_float:
        return array.astype(int).astype(object) if kind.bits == 1 else array.astype(object)
    return array.astype(np.longdouble if kind.name == "fp64" and ulp else np.float64)


def _normal(exact: Array, kind: Kind) -> Array:
    """Where a result is not denormal."""
    magnitude = np.abs(exact.astype(np.float64))
    return np.asarray((magnitude == 0) | ~(magnitude < 2.0**kind.lowest_exponent))


def _permuted(result: Result, actual: Array) -> Array:
    """Whether `actual` has the expected elements in any order."""
    found, expected = (np.sort(to_bits(v, result.kind), axis=None) for v in (actual, result.values))
    return np.full(actual.shape, np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f"))


def _result(values: Array, kind: Kind, defined: Array | None, ulp: float | Array, any_zero: bool) -> Result:
    if np.any(ulp) and kind.is_float:
        return Result(kind, values, defined, ulp=ulp)
    if not kind.is_float:
        if defined is not None:
            values = np.where(defined, values, 0)
        return Result(kind, wrapped(values, kind), defined)
    return Result(kind, from_float64(values.astype(np.float64), kind), defined, any_zero=any_zero)


# --- source --------------------------------------------------------------------------------------


def kernel_source(
    name: str,
    code: str,
    inputs: list[tuple[int, ...]],
    results: list[tuple[int, ...]],
    shape: Shape,
    other: str = "",
) -> str:
    """The kernel that loads the operands, runs `code` and stores its results."""
    arguments = [f"X{k}" for k in range(len(inputs))] + [f"O{k}" for k in range(len(results))]
    lines = [f"def kernel_{name}({', '.join(arguments)}):"]
    outputs = ["r"] if len(results) == 1 else [f"r{k}" for k in range(len(results))]
    body = [line for line in code.split("\n") if line.strip()]
    if shape.scalar:
        lines.append(f"    for i in range({shape.count}):")
        lines += [f"        {NAMES[k]} = tl.load(X{k} + i)" for k in range(len(inputs))]
        lines += [f"        {line}" for line in body]
        lines += [f"        tl.store(O{k} + i, {output})" for k, output in enumerate(outputs)]
        return "\n".join(lines) + "\n"
    if shape.extents == (1 << 16,):  # more than one tile should hold
        lines.append(f"    for start in range(0, {shape.count}, 1024):")
        lines.append("        at = start + tl.arange(0, 1024)")
        lines += [f"        {NAMES[k]} = tl.load(X{k} + at)" for k in range(len(inputs))]
        lines += [f"        {line}" for line in body]
        lines += [f"        tl.store(O{k} + at, {output})" for k, output in enumerate(outputs)]
        return "\n".join(lines) + "\n"
    for k, extents in enumerate(inputs):
        offsets, mask = addresses(extents)
        filled = f", other={other}" if mask and other else ""
        lines.append(f"    {NAMES[k]} = tl.load(X{k} + {offsets}{', mask=' + mask if mask else ''}{filled})")
    lines += [f"    {line}" for line in body]
    for k, (output, extents) in enumerate(zip(outputs, results, strict=True)):
        offsets, mask = addresses(extents)
        lines.append(f"    tl.store(O{k} + {offsets}, {output}{', mask=' + mask if mask else ''})")
    return "\n".join(lines) + "\n"


def addresses(extents: tuple[int, ...]) -> tuple[str, str]:
    """Row-major offsets of a tile, and the mask for the extents. The mask is empty if the extents fill the tile."""
    offsets, masks, stride = [], [], 1
    for d in reversed(range(len(extents))):
        size = block_of(extents)[d]
        index = ", ".join(":" if i == d else "None" for i in range(len(extents)))
        along = f"tl.arange(0, {size})" + (f"[{index}]" if len(extents) > 1 else "")
        offsets.append(along if stride == 1 else f"{along} * {stride}")
        if size != extents[d]:
            masks.append(f"({along} < {extents[d]})")
        stride *= extents[d]
    if len(masks) < len(extents) and masks and len(extents) > 1:  # a mask of the whole shape
        full = ", ".join(map(str, block_of(extents)))
        return " + ".join(offsets) or "0", f"tl.broadcast_to({' & '.join(masks)}, ({full},))"
    return " + ".join(offsets) or "0", " & ".join(masks)


# --- operands ------------------------------------------------------------------------------------


def edge_values(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    """Edge values of the types: every value, pairs of 18 values, or as many values as the shape has elements."""
    count = shape.count
    if shape.name == "every_value":
        return tuple(np.resize(every_value(kind), count) for kind in kinds)
    if len(kinds) == 1:
        return (samples(kinds[0], count).reshape(shape.extents),)
    random = np.random.default_rng(count)
    if len(kinds) == 2 and count == 324:
        x, y = pairs(np.arange(18))
        picked = [x, y]
    else:
        picked = [random.integers(0, 18, count) for _ in kinds]
    return tuple(
        samples(kind, 18)[index].reshape(shape.extents) for kind, index in zip(kinds, picked, strict=True)
    )


def small_numbers(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    """Small numbers, whose sums and products are exact. The last element is not 0, because a lost 0 would not show."""
    found = tuple(small(shape.extents, kind, seed) for seed, kind in enumerate(kinds))
    for values in found:
        if not values.ravel()[-1]:
            values.ravel()[-1] = 1
    return found


def distinct(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    """Numbers that are as distinct as the type allows, with one number of each class."""
    order = np.random.default_rng(1).permutation(shape.count).reshape(shape.extents)
    return tuple(_numbered(order + 7 * k, kind) for k, kind in enumerate(kinds))


def _numbered(order: Array, kind: Kind) -> Array:
    if kind.bits == 1:
        return np.asarray(order % 3 == 0)
    if kind.is_minifloat:
        finite = every_value(kind)
        finite = finite[np.isfinite(finite)]
        values = np.asarray(finite[order % finite.size])
        for number, value in enumerate((kind.largest, -kind.largest, finite[1])):
            values[order == 3 + number] = value
        return values
    limit = {"i8": 128, "u8": 256, "bf16": 256, "fp16": 2048}.get(kind.name, 1 << 15)
    values = np.asarray((order % limit).astype(kind.host))
    half = 1 << kind.bits // 2
    special = (
        [-0.0, np.inf, -np.inf, np.nan, 2.0**kind.lowest_exponent / 2, kind.largest, -kind.largest]
        if kind.is_float
        else [kind.highest, kind.lowest, kind.highest // 2 + 1, half, half + 1, half - 1]
        + [-1] * kind.is_signed
    )
    for number, value in enumerate(special):
        values[order == 3 + number] = value
    return values
