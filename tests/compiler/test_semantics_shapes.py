"""Shapes end to end: what broadcasting, reshaping and moving elements give, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from running import KINDS, Array, assert_same, empty, get, make_kernel, put

from triton_porting_kit.toolchain import compat

#: Source lines between the load of x (and of y) and the store of r, with the same in NumPy.
CASES: dict[str, tuple[tuple[int, ...], str, Any]] = {
    "expand_last": ((8,), "r = x[:, None] + tl.arange(0, 4)[None, :]", lambda x: x[:, None] + np.arange(4)),
    "expand_first": ((8,), "r = x[None, :] * (tl.arange(0, 4)[:, None] + 1)", lambda x: x[None] * (np.arange(4)[:, None] + 1)),
    "expand_middle": ((4, 8), "r = tl.broadcast_to(x[:, None, :], (4, 2, 8))", lambda x: np.broadcast_to(x[:, None], (4, 2, 8))),
    "outer": ((32,), "r = x[:, None] * x[None, :]", lambda x: x[:, None] * x[None, :]),
    "transpose": ((8, 32), "r = tl.trans(x)", lambda x: x.T),
    "transpose_square": ((16, 16), "r = tl.trans(x) + x", lambda x: x.T + x),
    "transpose_twice": ((8, 32), "r = tl.trans(tl.trans(x) * 2)", lambda x: x * 2),
    **{
        f"permute_{''.join(map(str, p))}": ((2, 8, 4), f"r = tl.permute(x, {p})", lambda x, p=p: x.transpose(p))
        for p in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    },
    "permute_4": ((2, 4, 2, 8), "r = tl.permute(x, (3, 1, 0, 2))", lambda x: x.transpose(3, 1, 0, 2)),
    "reshape_flat": ((4, 8), "r = tl.reshape(x, (32,))", lambda x: x.reshape(32)),
    "reshape_split": ((64,), "r = tl.reshape(x, (2, 8, 4))", lambda x: x.reshape(2, 8, 4)),
    "reshape_across": ((4, 16), "r = tl.reshape(x, (8, 8))", lambda x: x.reshape(8, 8)),
    "reshape_of_transposed": ((4, 16), "r = tl.reshape(tl.trans(x), (8, 8))", lambda x: x.T.reshape(8, 8)),
    "reshape_unit": ((4, 16), "r = tl.reshape(x, (1, 4, 1, 16))", lambda x: x.reshape(1, 4, 1, 16)),
    "reshape_of_sum": ((4, 16), "r = tl.reshape(x + 1, (64,)) * 2", lambda x: (x.reshape(64) + 1) * 2),
    "ravel": ((4, 8), "r = tl.ravel(x)", lambda x: x.ravel()),
    "view_and_source": ((4, 8), "v = tl.reshape(x, (8, 4))\n    r = tl.reshape(v + 1, (4, 8)) + x", lambda x: 2 * x + 1),
    "join": ((16,), "r = tl.join(x, x + 100)", lambda x: np.stack([x, x + 100], -1)),
    "join_2d": ((4, 8), "r = tl.join(x, x * 2)", lambda x: np.stack([x, x * 2], -1)),
    "join_one": ((1,), "r = tl.join(x, x * 2)", lambda x: np.stack([x, x * 2], -1)),
    "join_transposed": ((4, 8), "r = tl.permute(tl.join(x, x * 2), (2, 0, 1))", lambda x: np.stack([x, x * 2])),
    "split": ((16, 2), "a, b = tl.split(x)\n    r = a - 3 * b", lambda x: x[:, 0] - 3 * x[:, 1]),
    "split_3d": ((4, 8, 2), "a, b = tl.split(x)\n    r = a - 3 * b", lambda x: x[..., 0] - 3 * x[..., 1]),
    "split_to_scalars": ((2,), "a, b = tl.split(x)\n    r = a - b + tl.zeros((4,), x.dtype)", lambda x: np.full(4, x[0] - x[1])),
    "split_of_join": ((16,), "a, b = tl.split(tl.join(x, x + 1))\n    r = a * 10 + b", lambda x: 11 * x + 1),
    "interleave": ((16,), "r = tl.interleave(x, 100 - x)", lambda x: np.stack([x, 100 - x], -1).ravel()),
    "interleave_2d": ((4, 8), "r = tl.interleave(x, x + 1)", lambda x: np.stack([x, x + 1], -1).reshape(4, 16)),
    "cat": ((16,), "r = tl.cat(x, x + 50, can_reorder=True)", lambda x: np.concatenate([x, x + 50])),
    "cat_small": ((2,), "r = tl.cat(x, x + 50, can_reorder=True)", lambda x: np.concatenate([x, x + 50])),
    "cat_2d": ((4, 8), "r = tl.cat(x, x + 50, dim=1)", lambda x: np.concatenate([x, x + 50], 1)),
    "cat_2d_rows": ((4, 8), "r = tl.cat(x, x + 50, dim=0)", lambda x: np.concatenate([x, x + 50], 0)),
    "flip": ((32,), "r = tl.flip(x)", lambda x: x[::-1]),
    "flip_rows": ((8, 16), "r = tl.flip(x, 0)", lambda x: x[::-1]),
    "flip_columns": ((8, 16), "r = tl.flip(x, 1)", lambda x: x[:, ::-1]),
    "gather": ((32,), "r = tl.gather(x, (tl.arange(0, 32) * 7 + 3) % 32, 0)", lambda x: x[(np.arange(32) * 7 + 3) % 32]),
    "gather_wider": ((8,), "r = tl.gather(x, tl.arange(0, 64) % 8, 0)", lambda x: np.tile(x, 8)),
    "gather_columns": (
        (8, 16),
        "r = tl.gather(x, (tl.arange(0, 8)[:, None] + tl.arange(0, 4)[None, :] * 3) % 16, 1)",
        lambda x: np.take_along_axis(x, (np.arange(8)[:, None] + np.arange(4) * 3) % 16, 1),
    ),
    "gather_rows": (
        (8, 16),
        "r = tl.gather(x, (tl.arange(0, 4)[:, None] + tl.arange(0, 16)[None, :]) % 8, 0)",
        lambda x: np.take_along_axis(x, (np.arange(4)[:, None] + np.arange(16)) % 8, 0),
    ),
    "gather_of_chain": ((16,), "r = tl.gather(x * x, 15 - tl.arange(0, 16), 0) + x", lambda x: (x * x)[::-1] + x),
    "sort": ((64,), "r = tl.sort(x)", np.sort),
    "sort_descending": ((64,), "r = tl.sort(x, descending=True)", lambda x: np.sort(x)[::-1]),
    "sort_rows": ((4, 32), "r = tl.sort(x, 1)", lambda x: np.sort(x, 1)),
    "topk": ((4, 32), "r = tl.topk(x, 8, 1)", lambda x: np.sort(x, 1)[:, ::-1][:, :8]),
    "full": ((4,), "r = tl.full((8, 4), 3, x.dtype) + x[None, :]", lambda x: np.full((8, 4), 3) + x),
    "swizzle": (
        (16,),
        "i = tl.arange(0, 16)\n    a, b = tl.swizzle2d(i // 4, i % 4, 4, 4, 2)\n    r = a * 4 + b + x * 0",
        lambda x: np.array([0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15]),
    ),
}  # fmt: skip


def load_of(shape: tuple[int, ...]) -> str:
    """Row-major offsets of a tile."""
    terms, stride = [], 1
    for d in reversed(range(len(shape))):
        index = ", ".join(":" if i == d else "None" for i in range(len(shape)))
        terms.append(
            f"tl.arange(0, {shape[d]})[{index}] * {stride}" if len(shape) > 1 else f"tl.arange(0, {shape[d]})"
        )
        stride *= shape[d]
    return " + ".join(terms)


def run(shape: tuple[int, ...], line: str, x: Array, expected: Array, kind: str) -> None:
    source = (
        f"def shapes(X, O):\n    x = tl.load(X + {load_of(shape)})\n    {line}\n"
        f"    tl.store(O + {load_of(expected.shape)}, r)\n"
    )
    out = empty(expected.shape, kind)
    make_kernel(source)[(1,)](put(x, kind), out)
    assert_same(get(out), expected.astype(KINDS[kind].host))


# `tl.cat` takes a dimension since Triton 3.7; `tl.flip` needs none since 3.8.
SINCE = {"cat_2d": (3, 7), "cat_2d_rows": (3, 7), "flip": (3, 8)}


@pytest.mark.parametrize("kind", ["i32", "fp32", "bf16", "i8"])
@pytest.mark.parametrize("name", [name for name in CASES if compat.release() >= SINCE.get(name, (0, 0))])
def test_shape_operation(name: str, kind: str) -> None:
    shape, line, reference = CASES[name]
    x = np.random.default_rng(1).permutation(np.prod(shape)).reshape(shape) % 50
    if not fits(x, reference, kind):
        x = x % 3
    run(shape, line, x, np.asarray(reference(x)), kind)


def fits(x: Array, reference: Any, kind: str) -> bool:
    """Whether the results are numbers of the type."""
    limit = {"i8": 127, "bf16": 256}.get(kind, 1 << 24)
    return bool(np.abs(reference(x)).max() <= limit)


@pytest.mark.parametrize("size", [1, 16, 256])
@pytest.mark.parametrize("bins", [1, 2, 16, 128])
def test_histogram_counts(size: int, bins: int) -> None:
    x = np.random.default_rng(2).integers(0, bins, size).astype(np.int32)
    out = empty(bins, "i32")
    source = "def counts(X, O, N: tl.constexpr, B: tl.constexpr):\n    tl.store(O + tl.arange(0, B), tl.histogram(tl.load(X + tl.arange(0, N)), B))\n"
    make_kernel(source)[(1,)](put(x, "i32"), out, N=size, B=bins)
    assert_same(get(out), np.bincount(x, minlength=bins))


def test_histogram_leaves_out_masked_elements() -> None:
    x = np.random.default_rng(2).integers(0, 8, 64).astype(np.int32)
    out = empty(8, "i32")
    source = (
        "def masked_counts(X, O, n):\n    i = tl.arange(0, 64)\n"
        "    x = tl.load(X + i)\n    tl.store(O + tl.arange(0, 8), tl.histogram(x, 8, mask=(i < n) & (x != 3)))\n"
    )
    make_kernel(source)[(1,)](put(x, "i32"), out, 50)
    assert_same(get(out), np.bincount(x[:50][x[:50] != 3], minlength=8))
