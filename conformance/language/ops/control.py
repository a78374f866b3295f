"""Control flow, functions, and hints about values."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.expression import defaulted, distinct, expression
from triton_porting_kit.conformance.language.shapes import Shape, tile
from triton_porting_kit.conformance.language.table import NUMBER, Op
from triton_porting_kit.conformance.types import Array

SECTION = "Control flow and functions"
TILES = (tile(64), tile(17), tile(4, 8))
FEW = ("i32", "i64", "u8", "fp16", "bf16", "fp32", "fp64")


def _control(name: str, code: str, oracle: Any, types: tuple[str, ...] = FEW, **more: Any) -> Op:
    return expression(
        name,
        SECTION,
        code,
        oracle,
        types,
        **defaulted(more, {"inputs": _digits, "refused": (), "shapes": TILES}),
    )


def _digits(kinds: Any, shape: Shape) -> tuple[Array, ...]:
    """Numbers from 0 to 9."""
    order = np.random.default_rng(2).integers(0, 10, shape.extents)
    return tuple((order * (k + 1) % 10).astype(kind.host) for k, kind in enumerate(kinds))


def _lines(*lines: str) -> str:
    return "\n".join(lines)


def _collatz(x: Array) -> Array:
    def steps(n: int) -> int:
        count = 0
        while n > 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    return np.asarray(np.frompyfunc(steps, 1, 1)(x), object)


def _selu(x: Array) -> Array:
    return np.where(x > 4, x * 2, np.where(x > 2, x + 100, -x))


ENDS = tuple(
    Shape(f"{name}{suffix}", (64,), {"first": first, "last": last, "step": step, "n": n, "by": by})
    for name, first, last, step in (
        ("to_the_last", 2**31 - 4, 2**31 - 1, 1),
        ("to_the_first", 8 - 2**31, -(2**31), -3),
        ("up", 2**31 - 2**28, 2**31 - 2**25, 2**26 + 2**20 + 1),
        ("down", 2**31 - 2**25, 2**31 - 2**28, -(2**26) - 2**20 - 1),
        ("all_up", -(2**31), 2**31 - 2**25, 2**30 + 2**20),
        ("all_down", 2**31 - 2**25, -(2**31), -(2**30) - 2**20),
        ("i64_up", 2**31 - 8, 2**31 + 8, 3),
        ("i64_down", 8 - 2**31, -(2**31) - 8, -3),
    )
    for suffix, n, by in (
        ("", "", ""),
        ("_at_run_time", " + n", ""),
        ("_by_a_step_at_run_time", " + n", " + n"),
    )
    if (n or "i64" not in name) and (not by or step > 1)
)
"""Loops at the ends of 32 bits. The step after the last iteration leads past them, but for the first two. If it wraps
around there, the loop ends too late, but it does end. Triton takes a literal over 2**31 as u32."""
DOUBLE = """@triton.jit
def double(x):
    return x + x

"""
EARLY = """@triton.jit
def early(x, flag):
    if flag:
        return x + 1
    x = x * 2
    return x

"""
BOTH = """@triton.jit
def both(x, y):
    return x + y, x * y

"""
MAPPED = """@triton.jit
def mapped(x, y):
    return x * 3 + y, y - 1

"""
DEFAULT = """@triton.jit
def scaled(x, factor: tl.constexpr = 3, shift=1):
    return x * factor + shift

"""
NEVER_INLINED = """@triton.jit(noinline=True)
def outer(p, value):
    tl.store(p, tl.load(p) + value)

"""
BRANCHES = """@triton.jit
def branches(x):
    if x > 4:
        return x * 2
    elif x > 2:
        return x + 100
    return -x

"""
PACKED = """@triton.jit
def swapped(a, b):
    return b + 1, a - 1

"""

OPS: tuple[Op, ...] = (
    _control("for", _lines("r = x", "for k in range(7):", "    r += x * k"), lambda x: x * 22, ("i32", "i64", "fp32", "fp64"),
        form="for k in range(n)"),
    _control("for_step", _lines("r = x", "for k in range({first}, {last}, {step}):", "    r += k"),
        lambda x, first, last, step: x + sum(range(first, last, step)), ("i32", "fp32"), form="for k in range(first, last, step)",
        shapes=tuple(Shape(f"from{a}to{b}by{c}", (64,), {"first": a, "last": b, "step": c}) for a, b, c in ((0, 10, 3), (10, 0, -3), (5, 5, 1), (3, 100, 50), (-4, 4, 2)))),
    _control("for_ends", _lines("r = x", "n = tl.program_id(0).to({T})", "for k in range({first}{n}, {last}{n}, {step}{by}):", "    r = r * 3 + k"),
        lambda x, first, last, step, n, by: functools.reduce(lambda r, k: r * 3 + k, range(first, last, step), x), ("i32", "i64"),
        form="for k in range(first, last, step)", shapes=ENDS, only={shape.name: ("i64",) for shape in ENDS if "i64" in shape.name},
        note="Bounds at the ends of the type: no step leads past them."),
    _control("for_tiles", _lines("r = x", "s = x * 0", "for k in range(5):", "    r, s = s, r + 1"), lambda x: _swapped(x),
        FEW, form="for with several values carried"),
    _control("static_range", _lines("r = x", "for k in tl.static_range(4):", "    r += x * k"), lambda x: x * 7, ("i32", "fp32"), form="tl.static_range(n)"),
    _control("range_hints", _lines("r = x", "for k in tl.range(0, 6, 1, num_stages=2, loop_unroll_factor=2):", "    r += x"), lambda x: x * 7, ("i32", "fp32"),
        form="tl.range(..., num_stages=2)"),
    _control("while", _lines("r = x", "k = 0", "while k < 5:", "    r += x", "    k += 1"), lambda x: x * 6, FEW, form="while"),
    _control("while_data", _lines("r = x * 0", "while x > 1:", "    x = tl.where(x % 2 == 0, x // 2, 3 * x + 1)", "    r += 1"), _collatz, ("i32", "i64"),
        shapes=(Shape("scalar", (40,), scalar=True),), form="while x > 1"),
    _control("if", _lines("if tl.sum(tl.ravel(x).to(tl.int32), 0) >= 0:", "    r = x + 1", "else:", "    r = x * 3"), lambda x: x + 1, FEW, form="if"),
    _control("if_scalar", _lines("if x > 4:", "    r = x * 2", "elif x > 2:", "    r = x + 100", "else:", "    r = x + 0"),
        lambda x: np.where(x > 4, x * 2, np.where(x > 2, x + 100, x)), ("i32", "i64", "u8", "fp16", "fp32", "fp64"),
        shapes=(Shape("scalar", (40,), scalar=True),), form="if x > 4"),
    _control("ternary", "(x + 1) if tl.program_id(0) == 0 else (x * 3)", lambda x: x + 1, FEW),
    _control("early_return", "early(x, tl.program_id(0) == 0)", lambda x: x + 1, FEW, helpers=EARLY),
    _control("call", "double(double(x))", lambda x: x * 4, FEW, helpers=DOUBLE),
    _control("call_for_two", "r0, r1 = both(x, y)", lambda x, y: (x + y, x * y), FEW, operands=("T", "T"), results=("T", "T"), helpers=BOTH),
    _control("call_with_defaults", "scaled(x, shift=2)", lambda x: x * 3 + 2, FEW, helpers=DEFAULT),
    _control("call_keyword_only", "scaled(x, shift=2)", lambda x: x * 3 + 2, FEW, helpers=DEFAULT.replace("shift", "*, shift", 1), since=(3, 9)),
    _control("call_noinline", _lines("outer(X0 + 0, 0)", "r = x"), lambda x: x, ("i32", "fp32"), helpers=NEVER_INLINED, form="@triton.jit(noinline=True)"),
    _control("tuple", _lines("t = (x, x + 1, 3)", "r = t[0] * t[2] + t[1]"), lambda x: x * 4 + 1, FEW, form="(x, y)[0]"),
    _control("program_id", "x + tl.program_id(0) + tl.program_id(1) + tl.program_id(2) + tl.num_programs(0) + tl.num_programs(1) + tl.num_programs(2)",
        lambda x: x + 3, ("i32", "i64", "fp32"), form="tl.program_id(0)"),
    _control("map_elementwise", "tl.map_elementwise(branches, x)", _selu, ("i32", "i64", "fp32", "fp64"), helpers=BRANCHES,
        any_zero=True, note="With control flow in the mapped function."),
    _control("map_elementwise_two", "r0, r1 = tl.map_elementwise(mapped, x, y)", lambda x, y: (x * 3 + y, y - 1), ("i32", "fp32"), operands=("T", "T"),
        results=("T", "T"), helpers=MAPPED),
    _control("map_elementwise_packed", "r = tl.map_elementwise(swapped, x, pack=2)[0]", lambda x: _swapped_pairs(x), ("i32", "fp32"), helpers=PACKED,
        shapes=(tile(64), tile(4, 8)), note="The backend chooses which elements are packed together; here adjacent ones."),
    _control("hints", _lines("n = tl.multiple_of(tl.program_id(0) * 16, 16)", "tl.assume(n >= 0)", "i = tl.max_contiguous(tl.multiple_of(n + tl.arange(0, 64), 16), 64)",
        "r = tl.load(X0 + tl.max_constancy(i * 1, 1))"), lambda x: x, NUMBER, inputs=distinct, shapes=(tile(64),), form="tl.assume, tl.multiple_of, tl.max_contiguous"),
    _control("debug_barrier", _lines("tl.debug_barrier()", "r = x"), lambda x: x, ("i32", "fp32"), form="tl.debug_barrier()"),
    _control("static_assert", _lines("tl.static_assert(x.dtype == {T})", "r = x"), lambda x: x, FEW, form="tl.static_assert"),
    _control("device_assert", _lines("tl.device_assert(x >= 0, 'negative')", "r = x"), lambda x: x, ("i32", "fp32"), options={"debug": True}, form="tl.device_assert"),
    _control("options", "x + 1", lambda x: x + 1, ("i32",), options={"num_warps": 8, "num_stages": 3, "maxnreg": 64}, form="kernel[grid](..., num_warps=8)"),
    expression("squeeze", SECTION, "tl.squeeze(x[None, :], 0)", lambda x: x, ("i32", "fp16"), refused=(), shapes=(tile(64),), since=(3, 9),
        inputs=distinct),
)  # fmt: skip


def _swapped(x: Array) -> Array:
    r, s = x, x * 0
    for _ in range(5):
        r, s = s, r + 1
    return r


def _swapped_pairs(x: Array) -> Array:
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    return np.stack([pairs[..., 1] + 1, pairs[..., 0] - 1], -1).reshape(x.shape)
