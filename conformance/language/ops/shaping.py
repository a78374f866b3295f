"""Operations that move elements or change a tile's shape, on every type."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.expression import defaulted, distinct, expression
from triton_porting_kit.conformance.language.shapes import Shape, tile
from triton_porting_kit.conformance.language.table import ALL, FP8, Op

SECTION = "Shapes"
TWO = ("T", "T")
EVERY_RANK = (tile(16), tile(4, 8), tile(2, 4, 8), tile(2, 1, 4, 2), tile(2, 2, 1, 4, 2))


def _shape(*args: Any, **more: Any) -> Op:
    return expression(*args, **defaulted(more, {"inputs": distinct, "refused": ()}))


def _permuted(*extents: int) -> tuple[Shape, ...]:
    return tuple(tile(*extents, perm=order) for order in permutations(range(len(extents))))


def _reshaped(source: tuple[int, ...], *targets: tuple[int, ...]) -> tuple[Shape, ...]:
    return tuple(Shape(f"{_x(source)}_to_{_x(target)}", source, {"to": target}) for target in targets)


def _x(extents: tuple[int, ...]) -> str:
    return "x".join(map(str, extents)) or "scalar"


RESHAPES = (
    *_reshaped((64,), (8, 8), (2, 8, 4), (2, 2, 4, 4), (2, 2, 2, 2, 4), (1, 64), (64, 1)),
    *_reshaped((4, 16), (64,), (8, 8), (16, 4), (1, 4, 1, 16), (2, 2, 16), (2, 4, 2, 2, 2)),
    *_reshaped((2, 4, 8), (64,), (8, 8), (2, 32), (8, 4, 2)),
    *_reshaped((2, 2, 2, 2, 4), (64,), (4, 16), (2, 2, 16)),
    *_reshaped((1,), (1, 1), (1, 1, 1)),
)
PERMUTATIONS = (
    *_permuted(8, 32), *_permuted(1, 16), *_permuted(2, 8, 4), *_permuted(4, 1, 8),
    *_permuted(2, 4, 2, 8)[1::3], *_permuted(2, 4, 1, 2, 8)[1::17],
)  # fmt: skip
BROADCASTS = tuple(
    Shape(f"{_x(source)}_to_{_x(target)}", source, {"to": target})
    for source, target in (
        ((1,), (32,)), ((1, 16), (8, 16)), ((8, 1), (8, 16)), ((1, 1), (4, 4)), ((2, 1, 4), (2, 8, 4)),
        ((1, 4, 1, 2), (2, 4, 4, 2)), ((2, 1, 2, 1, 2), (2, 4, 2, 2, 2)), ((4, 8), (4, 8)),
    )
)  # fmt: skip
AXES = tuple(
    tile(*extents, axis=axis)
    for extents in ((16,), (4, 8), (2, 4, 8), (2, 2, 4, 2))
    for axis in range(len(extents) + 1)
)

FILLED = tuple(Shape(_x(to), (1,), {"to": to}) for to in ((16,), (4, 8), (2, 2, 4), (2, 2, 2, 1, 2)))

OPS: tuple[Op, ...] = (
    _shape("expand_dims", SECTION, "tl.expand_dims(x, {axis})", lambda x, axis: np.expand_dims(x, axis), ALL, shapes=AXES),
    _shape("unsqueeze", SECTION, "tl.unsqueeze(x, 0)", lambda x: x[None], ("i32", "fp16"), shapes=EVERY_RANK[:4], since=(3, 9)),
    _shape("index_none", SECTION, "x[:, None] + x[None, :] * 0", lambda x: x[:, None] + 0 * x[None], ("i32", "fp32", "bf16"),
        shapes=(tile(8), tile(1), tile(32))),
    _shape("outer", SECTION, "x[:, None] > y[None, :]", lambda x, y: (x[:, None] > y[None]).astype(int), ("i32", "u8", "fp32"),
        operands=TWO, results=("i1",), shapes=(tile(8), tile(32))),
    _shape("broadcast_to", SECTION, "tl.broadcast_to(x, {to})", lambda x, to: np.broadcast_to(x, to), ALL, shapes=BROADCASTS),
    _shape("broadcast", SECTION, "r0, r1 = tl.broadcast(x[:, None], y[None, :])",
        lambda x, y: tuple(np.broadcast_arrays(x[:, None], y[None])), ALL, operands=TWO, results=("T", "T"), shapes=(tile(8), tile(32))),
    _shape("trans", SECTION, "tl.trans(x)", lambda x: x.T, ALL, shapes=(tile(8, 32), tile(16, 16), tile(1, 16), tile(64, 1), tile(64, 64))),
    _shape("permute", SECTION, "tl.permute(x, {perm})", lambda x, perm: x.transpose(perm), ALL, shapes=PERMUTATIONS),
    _shape("trans_and_source", SECTION, "tl.trans(tl.trans(x) + 1) + x", lambda x: 2 * x + 1, ("i32", "i64"), shapes=(tile(8, 32), tile(16, 16))),
    _shape("reshape", SECTION, "tl.reshape(x, {to})", lambda x, to: x.reshape(to), ALL, shapes=RESHAPES),
    _shape("reshape_of_trans", SECTION, "tl.reshape(tl.trans(x), (8, 8))", lambda x: x.T.reshape(8, 8), ALL, shapes=(tile(4, 16), tile(8, 8))),
    _shape("view", SECTION, "tl.view(x, (8, 8))", lambda x: x.reshape(8, 8), ("i32", "fp16"), shapes=(tile(64), tile(4, 16))),
    _shape("ravel", SECTION, "tl.ravel(x)", lambda x: x.reshape(-1), ALL, shapes=EVERY_RANK),
    _shape("cat", SECTION, "tl.cat(x, y, can_reorder=True)", lambda x, y: np.concatenate([x, y]), ALL, operands=TWO, unordered=True,
        shapes=(tile(1), tile(2), tile(64)), note="The order of elements is not specified."),
    _shape("cat_along", SECTION, "tl.cat(x, y, dim={dim})", lambda x, y, dim: np.concatenate([x, y], dim), ALL, operands=TWO, since=(3, 7),
        shapes=(tile(16, dim=0), tile(4, 8, dim=0), tile(4, 8, dim=1), tile(2, 4, 8, dim=1), tile(2, 2, 2, 4, dim=3))),
    _shape("join", SECTION, "tl.join(x, y)", lambda x, y: np.stack([x, y], -1), ALL, operands=TWO, shapes=(tile(1), *EVERY_RANK[:4])),
    _shape("split", SECTION, "r0, r1 = tl.split(x)", lambda x: (x[..., 0], x[..., 1]), ALL, results=("T", "T"),
        shapes=(tile(16, 2), tile(1, 2), tile(4, 8, 2), tile(2, 4, 8, 2), tile(2, 2, 2, 4, 2))),
    _shape("split_of_join", SECTION, "r0, r1 = tl.split(tl.join(x, y))", lambda x, y: (x, y), ALL, operands=TWO, results=("T", "T"),
        shapes=EVERY_RANK[:4]),
    _shape("interleave", SECTION, "tl.interleave(x, y)", lambda x, y: np.stack([x, y], -1).reshape(*x.shape[:-1], -1), ALL,
        operands=TWO, shapes=(tile(1), *EVERY_RANK)),
    _shape("flip", SECTION, "tl.flip(x, {dim})", lambda x, dim: np.flip(x, dim), tuple(t for t in ALL if t != "i1"),
        shapes=(tile(2, dim=0), tile(32, dim=0), tile(8, 16, dim=0), tile(8, 16, dim=1), tile(2, 4, 8, dim=1))),
    _shape("flip_last", SECTION, "tl.flip(x)", lambda x: np.flip(x, -1), ("i32", "fp32"), shapes=EVERY_RANK[:3], since=(3, 9)),
    _shape("full", SECTION, "tl.full({to}, 3, {T})", lambda x, to: np.full(to, 3, x.dtype), tuple(t for t in ALL if t not in ("i1", *FP8)), shapes=FILLED),
    _shape("full_fp8", SECTION, "tl.full({to}, 1.5, {T})", lambda x, to: np.full(to, 1.5), FP8[:4], shapes=FILLED, since=(3, 7)),
    _shape("full_fp8e4b15", SECTION, "tl.full({to}, 1.5, {T})", lambda x, to: np.full(to, 1.5), FP8[4:], shapes=FILLED, since=(3, 9)),
    _shape("zeros", SECTION, "tl.zeros({to}, {T})", lambda x, to: np.full(to, 0, x.dtype), tuple(t for t in ALL if t != "fp8e4b15"),
        shapes=FILLED[:2]),
    _shape("zeros_like", SECTION, "tl.zeros_like(x)", lambda x: np.zeros_like(x), tuple(t for t in ALL if t != "fp8e4b15"), shapes=EVERY_RANK),
    _shape("arange", SECTION, "tl.arange({first}, {first} + 64)", lambda x, first: np.arange(first, first + 64).astype(object), ("i32",),
        shapes=tuple(Shape(f"from{first}", (1,), {"first": first}) for first in (0, 5, 64))),
    _shape("swizzle2d", SECTION, "r0, r1 = tl.swizzle2d(x // 4, x % 4, 4, 4, 2)", lambda x: _swizzle(), ("i32",), results=("T", "T"),
        inputs=lambda kinds, shape: (np.arange(16, dtype=np.int32),), shapes=(tile(16),)),
)  # fmt: skip


def _swizzle() -> tuple[Any, Any]:
    """The rows and columns of a 4x4 matrix, ordered column by column within groups of two rows."""
    numbers = np.array([0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15], object)
    return numbers // 4, numbers % 4
