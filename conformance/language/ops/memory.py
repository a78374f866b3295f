"""Loads and stores in all their forms, on every type."""

from __future__ import annotations

from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.expression import addresses, defaulted, distinct, expression
from triton_porting_kit.conformance.language.shapes import Shape, block_of, tile
from triton_porting_kit.conformance.language.table import ALL, FP8, Op
from triton_porting_kit.conformance.language.work import Result, Work
from triton_porting_kit.conformance.types import Array, Kind, every_value

SECTION = "Memory"
PLAIN = tuple(name for name in ALL if name not in FP8)
RANKS = (Shape("scalar", (16,), scalar=True), tile(1), tile(64), tile(17), tile(17, 4), tile(5, 32), tile(3, 1, 9),
    tile(2, 3, 1, 5), tile(2, 1, 3, 2, 5))  # fmt: skip


def _indices(kinds: tuple[Kind, ...]) -> tuple[Array, ...]:
    """An array of 256 elements, and indices up to the largest that both the index type and the array allow."""
    index, element = kinds
    picked = np.random.default_rng(4).integers(0, min(index.highest, 255), 64, endpoint=True)
    picked[:2] = min(index.highest, 255), 127
    return picked.astype(index.host), *distinct((element,), tile(256))


def _memory(*args: Any, **more: Any) -> Op:
    return expression(*args, **defaulted(more, {"inputs": distinct, "refused": ()}))


def _stores(
    name: str, form: str, mask: str, where: Any, shapes: tuple[Shape, ...], types: tuple[str, ...] = ALL
) -> Op:
    """Elements that a masked store skips keep their bits."""

    def build(kind: Kind, shape: Shape) -> Work:
        (values,) = distinct((kind,), shape)
        before = np.resize(values[..., ::-1], values.shape) if kind.bits == 1 else np.zeros_like(values)
        offsets, bounds = addresses(shape.extents)
        mask_text = mask.format(n=shape.extents[0])
        every = f"({mask_text}) & ({bounds})" if bounds else mask_text
        source = (
            f"def kernel_{name}(X, O):\n    at = {offsets}\n    x = tl.load(X + at{', mask=' + bounds if bounds else ''})\n"
            f"    tl.store(O + at, x, mask={every})\n"
        )
        stored = where(np.arange(values.size).reshape(values.shape))
        return Work(
            source, ((values, kind),), (Result(kind, np.where(stored, values, before), initial=before),)
        )

    return Op(name, SECTION, form, build, types, shapes)


def _masks(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    random = np.random.default_rng(3)
    (x,), (other,) = distinct(kinds[:1], shape), distinct(kinds[1:2], shape)
    return x, np.ascontiguousarray(np.flip(other)), random.integers(0, 2, shape.extents).astype(bool)


def _fetch(code: str) -> str:
    """Reload what the operand x was loaded from."""
    return code


LINE = (tile(64), tile(256))
STRIDED = tuple(tile(64, step=step) for step in (1, 2, 3, 7))
HINTS = tuple(
    Shape(name, (64,), {"hint": hint})
    for name, hint in {
        "ca": 'cache_modifier=".ca"', "cg": 'cache_modifier=".cg"', "cv": 'cache_modifier=".cv"',
        "evict_last": 'eviction_policy="evict_last"', "evict_first": 'eviction_policy="evict_first"', "volatile": "volatile=True",
    }.items()
)  # fmt: skip
LIMITS = ("{i} * 3 > 10", "{i} * 3 >= 10", "{i} * 3 < 40", "{i} * 3 <= 40", "{i} * -5 < -33", "{i} * -5 >= -33",
    "100 - {i} * 7 > 5", "100 - {i} * 7 <= 5", "9 < {i} * 4", "{i} * 4 - 100 <= -9")  # fmt: skip
"""Comparisons whose bounds are not multiples of the step, for each sign and direction."""
BOUNDED = tuple(
    Shape(f"{number}{'' if known else '_at_run_time'}", (64,), {"limit": limit, "known": known})
    for number, limit in enumerate(LIMITS)
    for known in (True, False)
)
OVERWRITTEN = tuple(
    Shape(name, (256,), {"write": write, "written": written})
    for name, write, written in (
        ("at_once", "tl.store(X + i, new)", 256),
        ("under_a_mask", "tl.store(X + i, new, mask=i < 100)", 100),
        ("in_a_loop", "for turn in range(2):\n        tl.store(X + i + turn * 0, new)", 256),
        ("in_a_branch", "if tl.program_id(0) == 0:\n        tl.store(X + i, new)", 256),
        (
            "in_a_while",
            "turn = tl.program_id(0)\n    while turn < 1:\n        tl.store(X + i, new)\n        turn += 1",
            256,
        ),
        ("by_parts", "tl.store(X + i, new, mask=i < 100)\n    tl.store(X + i, new, mask=i >= 100)", 256),
    )
)
"""Overwrites between the load and the use, without a computation between them."""
STORE_HINTS = tuple(
    Shape(name, (64,), {"hint": hint})
    for name, hint in {"wb": 'cache_modifier=".wb"', "cg": 'cache_modifier=".cg"', "cs": 'cache_modifier=".cs"', "wt": 'cache_modifier=".wt"',
        "evict_first": 'eviction_policy="evict_first"'}.items()
)  # fmt: skip


def _hinted_store() -> Op:
    def build(kind: Kind, shape: Shape) -> Work:
        (values,) = distinct((kind,), shape)
        source = (
            "def kernel_store_hints(X, O):\n    i = tl.arange(0, 64)\n"
            f"    tl.store(O + i, tl.load(X + i), {shape.params['hint']})\n"
        )
        return Work(source, ((values, kind),), (Result(kind, values),))

    return Op(
        "store_hints",
        SECTION,
        "tl.store(p, x, cache_modifier=..., eviction_policy=...)",
        build,
        ("i8", "fp16", "fp32"),
        STORE_HINTS,
    )


def _scatter() -> Op:
    def build(kind: Kind, shape: Shape) -> Work:
        (values,) = distinct((kind,), shape)
        order = np.random.default_rng(6).permutation(shape.count).astype(np.int32).reshape(shape.extents)
        offsets, bounds = addresses(shape.extents)
        mask = f", mask={bounds}" if bounds else ""
        source = (
            f"def kernel_scatter(X, A, O):\n    at = {offsets}\n"
            f"    tl.store(O + tl.load(A + at{mask}), tl.load(X + at{mask}){mask})\n"
        )
        expected = np.empty_like(values).reshape(-1)
        expected[order.reshape(-1)] = values.reshape(-1)
        return Work(source, ((values, kind), (order, _i32())), (Result(kind, expected),))

    return Op(
        "scatter",
        SECTION,
        "tl.store(p + index, x)",
        build,
        ALL,
        (tile(1), tile(64), tile(17, 4), tile(2, 3, 8)),
    )


def _i32() -> Kind:
    from triton_porting_kit.conformance.types import KINDS

    return KINDS["i32"]


def _every_pattern() -> Op:
    """Loads and stores preserve bits, NaN's included."""

    def build(kind: Kind, shape: Shape) -> Work:
        values = every_value(kind)
        block = min(values.size, 1024)
        source = (
            f"def kernel_copy(X, O):\n    for start in range(0, {values.size}, {block}):\n"
            f"        i = start + tl.arange(0, {block})\n        tl.store(O + i, tl.load(X + i))\n"
        )
        return Work(source, ((values, kind),), (Result(kind, values),))

    types = tuple(n for n in ALL if n in FP8 or n in ("i1", "i8", "u8", "i16", "u16", "fp16", "bf16"))
    return Op(
        "copy_every_value",
        SECTION,
        "tl.store(q, tl.load(p))",
        build,
        types,
        (Shape("every_value", (1 << 16,)),),
    )


def _bounded() -> Op:
    """Masks that compare a multiple of the index."""

    def build(kind: Kind, shape: Shape) -> Work:
        (values,) = distinct((kind,), shape)
        limit = shape.params["limit"]
        mask = limit.format(i="i") + ("" if shape.params["known"] else " + tl.program_id(0)")
        source = (
            "def kernel_bounded(X, O):\n    i = tl.arange(0, 64)\n"
            f"    tl.store(O + i, tl.load(X + i, mask={mask}, other=1), mask={mask})\n"
        )
        inside = np.array([eval(limit.format(i=i)) for i in range(64)])
        initial = np.zeros_like(values)
        return Work(
            source, ((values, kind),), (Result(kind, np.where(inside, values, initial), initial=initial),)
        )

    form = "tl.load(p, mask=i * 3 > 10)"
    return Op("load_store_bounded", SECTION, form, build, ("i32", "fp32"), BOUNDED)


def _overwritten() -> Op:
    """A loaded value stays the same when its memory is overwritten before the value is used.

    Every tile has at least one element for each thread of four warps of 32, so no two threads load the same element.
    """

    def build(kind: Kind, shape: Shape) -> Work:
        new, old = distinct((kind, kind), shape)
        written = np.arange(shape.count) < shape.params["written"]
        source = (
            f"def kernel_overwritten(Y, X, O):\n    i = tl.arange(0, {shape.count})\n    new = tl.load(Y + i)\n"
            f"    old = tl.load(X + i)\n    {shape.params['write']}\n    tl.store(O + i, old)\n"
        )
        return Work(
            source,
            ((new, kind),),
            (Result(kind, np.where(written, new, old), initial=old), Result(kind, old)),
        )

    form = "x = tl.load(p); tl.store(p, y); tl.store(q, x)"
    return Op("load_overwritten", SECTION, form, build, ("i8", "bf16", "fp32", "i64"), OVERWRITTEN)


def _unread() -> Op:
    """Masked-off lanes access no memory: their addresses are invalid."""

    def build(kind: Kind, shape: Shape) -> Work:
        (values,) = distinct((kind,), shape)
        n = shape.count
        source = (
            f"def kernel_nowhere(X, O):\n    i = tl.arange(0, {block_of(shape.extents)[0]})\n    far = i.to(tl.int64) << 40\n"
            f"    at = tl.where(i < {n}, i, far)\n    x = tl.load(X + at, mask=i < {n})\n    tl.store(O + at, x, mask=i < {n})\n"
            "    y = tl.load(X + (i.to(tl.int64) << 50) + (1 << 45), mask=i < 0, other=0)\n"
            "    tl.store(O + (i.to(tl.int64) << 50) + (1 << 45), y, mask=i < 0)\n"
        )
        return Work(source, ((values, kind),), (Result(kind, values),))

    return Op(
        "masked_off", SECTION, "tl.load(nowhere, mask=False)", build, PLAIN, (tile(17), tile(60), tile(1))
    )


OPS: tuple[Op, ...] = (
    _memory("load_store", SECTION, "x", lambda x: x, ALL, shapes=RANKS, form="tl.store(q, tl.load(p))"),
    _every_pattern(),
    _memory("load_other", SECTION, "tl.load(X0 + {at}, mask=z, other=7)", lambda x, y, z, at: np.where(z.astype(bool), x, 7),
        tuple(n for n in PLAIN if n != "i1"), operands=("T", "T", "i1"), inputs=_masks, form="tl.load(p, mask=m, other=7)",
        shapes=tuple(Shape(str(s), s.extents, {"at": addresses(s.extents)[0]}) for s in (tile(64), tile(8, 16), tile(2, 4, 8)))),
    _memory("load_other_tile", SECTION, "tl.load(X0 + {at}, mask=z, other=y)", lambda x, y, z, at: np.where(z.astype(bool), x, y),
        ALL, operands=("T", "T", "i1"), inputs=_masks, form="tl.load(p, mask=m, other=y)",
        shapes=tuple(Shape(str(s), s.extents, {"at": addresses(s.extents)[0]}) for s in (tile(64), tile(8, 16), tile(2, 4, 8)))),
    _stores("store_below", "tl.store(p, x, mask=i < n)", "at < 5", lambda at: at < 5, (tile(64), tile(17), tile(8, 16), tile(3, 5))),
    _stores("store_every_third", "tl.store(p, x, mask=i % 3 == 1)", "at % 3 == 1", lambda at: at % 3 == 1, (tile(64), tile(17), tile(8, 16), tile(2, 3, 4))),
    _stores("store_nothing", "tl.store(p, x, mask=False)", "at < 0", lambda at: at < 0, (tile(64), tile(8, 16))),
    _memory("load_strided", SECTION, "tl.load(X0 + tl.arange(0, 64) * {step} % 64)", lambda x, step: x[np.arange(64) * step % 64], ALL,
        shapes=STRIDED),
    _memory("load_backwards", SECTION, "tl.load(X0 + {n} - 1 - tl.arange(0, {n}))", lambda x, n: x[::-1], ALL,
        shapes=tuple(Shape(f"tile_{n}", (n,), {"n": n}) for n in (1, 16, 64))),
    _memory("load_same", SECTION, "tl.load(X0 + tl.arange(0, 64) * 0 + 3) ", lambda x: np.full(64, x[3], x.dtype), ALL, shapes=LINE[:1]),
    _memory("load_gather", SECTION, "tl.load(X0 + y)", lambda x, y: x[y.astype(int)], ALL, operands=("T", "i32"), shapes=LINE,
        inputs=lambda kinds, shape: (*distinct(kinds[:1], shape), np.random.default_rng(4).integers(0, shape.count, shape.extents).astype(np.int32))),
    _memory("load_by_index_type", SECTION, "tl.load(X1 + x)", lambda x, y: y[x.astype(int)], ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"),
        operands=("T", "fp32"), results=("fp32",), shapes=LINE[:1], inputs=lambda kinds, shape: _indices(kinds)),
    _memory("load_transposed", SECTION, "tl.load(X0 + tl.arange(0, 8)[:, None] + tl.arange(0, 16)[None, :] * 8)",
        lambda x: x.reshape(-1)[np.arange(8)[:, None] + np.arange(16) * 8], ALL, shapes=(tile(8, 16),)),
    _memory("load_wrapped", SECTION, "tl.load(X0 + (tl.arange(0, 64) + 5) % 24)", lambda x: x[(np.arange(64) + 5) % 24], ALL, shapes=LINE[:1]),
    _memory("load_hints", SECTION, "tl.load(X0 + tl.arange(0, 64), {hint})", lambda x, hint: x, ("i8", "fp16", "fp32"), shapes=HINTS,
        form="tl.load(p, cache_modifier=..., eviction_policy=..., volatile=True)"),
    _bounded(),
    _overwritten(),
    _hinted_store(),
    _scatter(),
    _unread(),
    _memory("through_integers", SECTION, "tl.load((X0.to(tl.int64) + tl.arange(0, 64) * {size}).to(tl.pointer_type({T})))", lambda x, size: x,
        ("i8", "u16", "fp16", "bf16", "fp32", "i64", "fp64"), form="tl.load(integer.to(tl.pointer_type(T)))",
        shapes=tuple(Shape(f"size{size}", (64,), {"size": size}) for size in (1, 2, 4, 8)),
        only={f"size{size}": names for size, names in {1: ("i8",), 2: ("u16", "fp16", "bf16"), 4: ("fp32",), 8: ("i64", "fp64")}.items()}),
    _memory("pointer_cast", SECTION, "tl.load(X0.to(tl.pointer_type(tl.int8), bitcast=True) + tl.arange(0, 64))",
        lambda x, kind: np.ascontiguousarray(x.astype(kind.host)).view(np.int8)[:64].astype(object), ("u8", "fp16", "fp32", "i64"), results=("i8",),
        shapes=LINE[:1]),
)  # fmt: skip
