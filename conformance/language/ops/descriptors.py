"""Tensor descriptors created in the kernel, and block pointers in the releases that have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.expression import distinct
from triton_porting_kit.conformance.language.ops.atomics import operands
from triton_porting_kit.conformance.language.shapes import Shape
from triton_porting_kit.conformance.language.table import ALL, FLOAT, INTEGER, Op
from triton_porting_kit.conformance.language.work import Result, Work
from triton_porting_kit.conformance.rounding import rounded, wrap
from triton_porting_kit.conformance.types import KINDS, Array, Kind

SECTION = "Descriptors and block pointers"
TYPES = tuple(t for t in ALL if t not in ("i1", "fp8e4b15"))


def _at(
    name: str, whole: tuple[int, ...], block: tuple[int, ...], start: tuple[int, ...], **more: Any
) -> Shape:
    return Shape(name, whole, {"block": block, "start": start} | more)


PLACES = (
    _at("inside", (32, 64), (8, 16), (4, 16)),
    _at("over_the_end", (30, 80), (8, 32), (27, 64)),
    _at("before_the_start", (32, 64), (8, 32), (-3, -16)),
    _at("beyond", (32, 64), (8, 16), (40, 80)),
    _at("rank_1", (112,), (64,), (64,)),
    _at("rank_3", (5, 7, 32), (2, 4, 32), (4, 5, 16)),
    _at("rank_4", (2, 3, 5, 32), (1, 2, 4, 32), (1, 2, 3, 16)),
    _at("rank_5", (2, 2, 3, 4, 32), (2, 1, 2, 4, 32), (1, 1, 2, 2, 16)),
    _at("unaligned", (32, 64), (8, 16), (5, 37)),
    _at("unaligned_before_the_start", (32, 64), (8, 16), (-3, -5)),
)
"""Strides are multiples of 16 bytes, as Triton requires. So are the starts of blocks, except in the last two places."""


def strides(extents: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(np.prod(extents[d + 1 :])) for d in range(len(extents)))


def window(
    values: Array, block: tuple[int, ...], start: tuple[int, ...], filler: Any = 0
) -> tuple[Array, Array]:
    """The elements of a block, and which of them are in bounds."""
    grids = np.meshgrid(*(s + np.arange(b) for s, b in zip(start, block, strict=True)), indexing="ij")
    inside = np.logical_and.reduce([(g >= 0) & (g < n) for g, n in zip(grids, values.shape, strict=True)])
    clipped = tuple(np.clip(g, 0, n - 1) for g, n in zip(grids, values.shape, strict=True))
    return np.where(inside, values[clipped], values.dtype.type(filler)), inside


def placed(before: Array, tile: Array, start: tuple[int, ...]) -> Array:
    """`before` with a block written into it."""
    after = before.copy()
    for index in np.ndindex(tile.shape):
        at = tuple(s + i for s, i in zip(start, index, strict=True))
        if all(0 <= a < n for a, n in zip(at, before.shape, strict=True)):
            after[at] = tile[index]
    return after


def _made(name: str, extents: tuple[int, ...], block: tuple[int, ...], more: str = "") -> str:
    return (
        f"tl.make_tensor_descriptor({name}, {list(extents)}, {list(strides(extents))}, {list(block)}{more})"
    )


def _out(block: tuple[int, ...]) -> str:
    from triton_porting_kit.conformance.language.expression import addresses

    return addresses(block)[0]


def _load(padding: str = "") -> Op:
    def build(kind: Kind, shape: Shape) -> Work:
        (values,) = distinct((kind,), shape)
        block, start = shape.params["block"], shape.params["start"]
        more = f', padding_option="{padding}"' if padding else ""
        expected, _ = window(values, block, start, np.nan if padding == "nan" else 0)
        source = (
            f"def kernel_descriptor(X, O):\n    d = {_made('X', shape.extents, block, more)}\n"
            f"    tl.store(O + {_out(block)}, d.load({list(start)}))\n"
        )
        return Work(source, ((values, kind),), (Result(kind, expected),))

    name = "descriptor_load" + (f"_{padding}" if padding else "")
    form = (
        "tl.make_tensor_descriptor(...).load(at)"
        if not padding
        else 'tl.make_tensor_descriptor(..., padding_option="nan")'
    )
    return Op(
        name,
        SECTION,
        form,
        build,
        ("fp16", "bf16", "fp32", "fp64") if padding else TYPES,
        PLACES,
        note="Elements outside of the tensor are 0." if not padding else "",
    )


def _store() -> Op:
    def build(kind: Kind, shape: Shape) -> Work:
        block, start = shape.params["block"], shape.params["start"]
        (values,) = distinct((kind,), Shape("", block))
        before = np.zeros(shape.extents, kind.host)
        source = (
            f"def kernel_descriptor(X, O):\n    d = {_made('O', shape.extents, block)}\n"
            f"    d.store({list(start)}, tl.load(X + {_out(block)}))\n"
        )
        return Work(source, ((values, kind),), (Result(kind, placed(before, values, start), initial=before),))

    return Op(
        "descriptor_store", SECTION, "tl.make_tensor_descriptor(...).store(at, x)", build, TYPES, PLACES
    )


def _atomic(name: str, function: Callable[[Any, Any], Any], types: tuple[str, ...]) -> Op:
    def build(kind: Kind, shape: Shape) -> Work:
        block, start = shape.params["block"], shape.params["start"]
        x, v = (np.resize(o, s) for o, s in zip(operands(kind), (shape.extents, block), strict=True))
        old, _ = window(x, block, start)
        exact = [function(a, b) for a, b in zip(old.ravel().tolist(), v.ravel().tolist(), strict=True)]
        new = rounded(exact, kind) if kind.is_float else np.array([wrap(e, kind) for e in exact], kind.host)
        source = (
            f"def kernel_descriptor(X, O):\n    d = {_made('O', shape.extents, block)}\n"
            f"    d.atomic_{name}({list(start)}, tl.load(X + {_out(block)}))\n"
        )
        after = placed(x, new.reshape(block), start)
        return Work(source, ((v, kind),), (Result(kind, after, initial=x),))

    return Op(f"descriptor_atomic_{name}", SECTION, f"d.atomic_{name}(at, x)", build, types, PLACES[:2])


ROWS = Shape("rows", (32, 64), {"block": (1, 16), "rows": (3, 0, 31, 3, 40, 7, 9, 12)})


def _rows(name: str) -> Op:
    def build(kind: Kind, shape: Shape) -> Work:
        picked = np.array(shape.params["rows"], np.int32)
        if name == "scatter":  # each row occurs once, because the winner of two writes is not defined
            picked = np.array([3, 0, 31, 5, 40, 7, 9, 12], np.int32)
        head = f"def kernel_{name}(X, A, O):\n    rows = tl.load(A + tl.arange(0, 8))\n"
        (values,) = distinct((kind,), shape if name == "gather" else Shape("", (8, 16)))
        inside = picked < 32
        if name == "gather":
            source = f"{head}    d = {_made('X', shape.extents, (1, 16))}\n    tl.store(O + {_out((8, 16))}, d.gather(rows, 8))\n"
            expected = np.where(inside[:, None], values[np.minimum(picked, 31), 8:24], values.dtype.type(0))
            return Work(source, ((values, kind), (picked, KINDS["i32"])), (Result(kind, expected),))
        source = f"{head}    d = {_made('O', shape.extents, (1, 16))}\n    d.scatter(tl.load(X + {_out((8, 16))}), rows, 8)\n"
        before = np.zeros(shape.extents, kind.host)
        after = before.copy()
        after[picked[inside], 8:24] = values[inside]
        return Work(source, ((values, kind), (picked, KINDS["i32"])), (Result(kind, after, initial=before),))

    return Op(
        f"descriptor_{name}",
        SECTION,
        f"d.{name}(rows, column)",
        build,
        ("i32", "fp16", "bf16", "fp32"),
        (ROWS,),
    )


# --- block pointers -------------------------------------------------------------------------------


def _block_pointer(
    name: str, extents: tuple[int, ...], block: tuple[int, ...], start: tuple[int, ...]
) -> str:
    order = tuple(reversed(range(len(extents))))
    return f"tl.make_block_ptr({name}, {extents}, {strides(extents)}, {start}, {block}, {order})"


def _block_load(padding: str) -> Op:
    def build(kind: Kind, shape: Shape) -> Work:
        (values,) = distinct((kind,), shape)
        block, start = shape.params["block"], shape.params["start"]
        check = tuple(range(len(block)))
        more = f', padding_option="{padding}"' if padding else ""
        expected, inside = window(values, block, start, np.nan if padding == "nan" else 0)
        source = (
            f"def kernel_block_load(X, O):\n    p = {_block_pointer('X', shape.extents, block, tuple(s - 1 for s in start))}\n"
            f"    p = tl.advance(p, {(1,) * len(start)})\n"
            f"    tl.store(O + {_out(block)}, tl.load(p, boundary_check={check}{more}))\n"
        )
        return Work(source, ((values, kind),), (Result(kind, expected, defined=None if padding else inside),))

    name = "block_pointer_load" + (f"_{padding}" if padding else "")
    types = ("fp16", "bf16", "fp32", "fp64") if padding == "nan" else (*INTEGER, *FLOAT)
    return Op(
        name,
        SECTION,
        "tl.load(tl.make_block_ptr(...), boundary_check=...)",
        build,
        types,
        PLACES,
        until=(3, 8),
    )


def _block_store() -> Op:
    def build(kind: Kind, shape: Shape) -> Work:
        block, start = shape.params["block"], shape.params["start"]
        (values,) = distinct((kind,), Shape("", block))
        before = np.zeros(shape.extents, kind.host)
        source = (
            f"def kernel_block_store(X, O):\n    p = {_block_pointer('O', shape.extents, block, start)}\n"
            f"    tl.store(p, tl.load(X + {_out(block)}), boundary_check={tuple(range(len(block)))})\n"
        )
        return Work(source, ((values, kind),), (Result(kind, placed(before, values, start), initial=before),))

    return Op(
        "block_pointer_store",
        SECTION,
        "tl.store(tl.make_block_ptr(...), x, boundary_check=...)",
        build,
        (*INTEGER, *FLOAT),
        PLACES,
        until=(3, 8),
    )


OPS: tuple[Op, ...] = (
    _load(),
    _load("nan"),
    _store(),
    _atomic("add", lambda a, b: a + b, ("i32", "u32", "u64", "fp16", "bf16", "fp32")),
    _atomic("max", max, ("i32", "u32", "i64", "u64")),
    _atomic("min", min, ("i32", "u32", "i64", "u64")),
    _atomic("and", lambda a, b: a & b, ("i32", "u32", "i64", "u64")),
    _atomic("or", lambda a, b: a | b, ("i32", "u32", "i64", "u64")),
    _atomic("xor", lambda a, b: a ^ b, ("i32", "u32", "i64", "u64")),
    _rows("gather"),
    _rows("scatter"),
    _block_load(""),
    _block_load("zero"),
    _block_load("nan"),
    _block_store(),
)
