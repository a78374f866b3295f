"""Kernels with 0 to 256 arguments, in mixed types and orders: each must be at the position that the kernel expects."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.rounding import from_float64
from triton_porting_kit.conformance.runtime.arguments import Interior
from triton_porting_kit.conformance.types import FLOATS, KINDS, Kind, to_bits

CHECKS = Checks("runtime/argument-counts", compiles=True)

COUNTS = (1, 2, 3, 5, 8, 16, 17, 31, 32, 33, 64, 100, 128, 200, 255, 256)
POINTER = "pointer"

INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
HALVES = ("fp16", "bf16")
ORDERS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "narrow-wide": ("in which bytes and 64-bit integers take turns", ("i8", "i64"), ()),
    "growing": ("that grow from 1 to 8 bytes and start again", ("i1", "i16", "i32", "i64", POINTER), ()),
    "mixed": (
        "of all integer types, fp32 and pointers, in a random order",
        (*INTEGERS, "i1", "fp32", POINTER),
        (),
    ),
    "floats": (
        "of all types, floating-point ones twice, in a random order",
        (*INTEGERS, "i1", POINTER, *HALVES, "fp32", "fp64", *HALVES, "fp32", "fp64"),
        ("type:fp16", "type:bf16", "type:fp64"),
    ),
}
"""By name: a description of the arguments; their types, cyclic unless the order is random; required capabilities."""

_UP_TO = {"narrow-wide": 33, "growing": 33, "mixed": 256, "floats": 64}
_LARGE = {"narrow-wide": (64,), "growing": (100,), "mixed": (), "floats": (128, 256)}
"""The counts above `_UP_TO` that are tried: layout errors already occur with few arguments."""


def _random_value(kind: Kind, random: np.random.Generator) -> tuple[Any, int]:
    """A value of a type, as an argument, and its bits, extended to 64 bits as the kernel does."""
    if kind.bits == 1:
        value = bool(random.integers(0, 2))
        return value, int(value)
    if (
        kind.name == "i8"
    ):  # not negative: Triton's own launchers refuse negative values, which `arguments/i8` checks
        number = int(random.integers(0, 128))
        return number, number
    if kind.is_integer:
        number = int.from_bytes(random.bytes(kind.bits // 8), "little", signed=kind.is_signed)
        return number, number
    wanted = np.array([random.standard_normal() * 2.0 ** int(random.integers(-10, 10))])
    exact = np.asarray(from_float64(wanted, kind))
    return float(exact[0]), int(to_bits(exact.astype(kind.host), kind).view(f"int{kind.bits}")[0])


def _source(kinds: list[str]) -> str:
    """The source of a kernel that stores every argument after the first as 64 bits."""
    lines, parameters = [], ["O"]
    for k, kind in enumerate(kinds):
        if kind == POINTER:
            parameters.append(f"a{k}")
            lines.append(f"    tl.store(O + {k}, tl.load(a{k}))\n")
            continue
        parameters.append(f"a{k}: {KINDS[kind].language}")
        bits = f"a{k}"
        if KINDS[kind] in FLOATS:
            bits += f".to(tl.int{KINDS[kind].bits}, bitcast=True)"
        lines.append(f"    tl.store(O + {k}, {bits}.to(tl.int64))\n")
    return f"def many({', '.join(parameters)}):\n" + ("".join(lines) or "    tl.store(O, 4711)\n")


def _types(order: str, count: int, random: np.random.Generator) -> list[str]:
    kinds = ORDERS[order][1]
    if order in ("mixed", "floats"):
        return [str(kind) for kind in random.choice(kinds, count)]
    return [kinds[k % len(kinds)] for k in range(count)]


def _count(context: Context, order: str, count: int) -> None:
    """Launch a kernel with `count` arguments, of which the first is the output."""
    kinds = _types(order, count - 1, context.random)
    targets = context.random.integers(-(1 << 62), 1 << 62, 300)
    pointed = context.array(targets, "i64")
    arguments, expected = [], []
    for k, kind in enumerate(kinds):
        value: Any
        if kind == POINTER:
            value, bits = Interior(pointed, k), int(targets[k])
        else:
            value, bits = _random_value(KINDS[kind], context.random)
        arguments.append(value)
        expected.append(bits)
    if not kinds:
        expected.append(4711)
    out = context.empty((len(expected),), "i64")
    make_kernel(_source(kinds))[(1,)](out, *arguments)
    if context.runs:
        wanted = np.array([bits % (1 << 64) for bits in expected], np.uint64).view(np.int64)
        context.compare(f"{len(expected)} arguments", identical(context.read(out), wanted))
        context.compare("what pointers point to", identical(context.read(pointed), targets))


for _order, (_words, _kinds, _needs) in ORDERS.items():
    for _number in COUNTS:
        if _number > _UP_TO[_order] and _number not in _LARGE[_order]:
            continue
        if _number > 1 or _order == "mixed":
            CHECKS.add(
                f"{_order}-{_number}",
                f"A kernel of {_number} argument{'s' if _number > 1 else ''} {_words}, receives all of them unchanged.",
                partial(_count, order=_order, count=_number),
                needs=_needs,
            )


@CHECKS.check("none", "A kernel without arguments can be launched.")
def _no_arguments(context: Context) -> None:
    kernel = make_kernel("def nothing():\n    pass\n")
    for grid in ((1,), (7,), (2, 3, 4)):
        kernel[grid]()
    context.memory.synchronize()
    context.expect(True, "three launches ran")


@CHECKS.check("constants-only", "A kernel with 40 constants and one argument receives that argument.")
def _constants_only(context: Context) -> None:
    names = [f"C{k}: tl.constexpr" for k in range(40)]
    source = f"def constants({', '.join(names[:20])}, O, {', '.join(names[20:])}):\n    tl.store(O, C3 * 100 + C37)\n"
    out = context.empty((1,), "i64")
    make_kernel(source)[(1,)](*range(20), out, *range(20, 40))
    if context.runs:
        context.compare("what is stored", identical(context.read(out), np.array([337], np.int64)))
