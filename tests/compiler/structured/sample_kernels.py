"""Kernels whose structured form is checked in, so that a change of it is seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import triton
import triton.language as tl


@dataclass
class Sample:
    """A kernel with the types of its run-time parameters; the others are constexprs."""

    kernel: Any
    signature: dict[str, str]
    constexprs: dict[str, Any] = field(default_factory=dict)


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def softmax(out, x, out_stride, x_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * x_stride + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * out_stride + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def matmul(a, b, c, M, N, K, am, ak, bk, bn, cm, cn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_tile = a + (rows % M)[:, None] * am + k[None, :] * ak
    b_tile = b + k[:, None] * bk + (columns % N)[None, :] * bn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        left = tl.load(a_tile, mask=k[None, :] < K - step * BK, other=0.0)
        right = tl.load(b_tile, mask=k[:, None] < K - step * BK, other=0.0)
        total = tl.dot(left, right, total)
        a_tile += BK * ak
        b_tile += BK * bk
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * cm + columns[None, :] * cn, total.to(tl.float16), mask=mask)


@triton.jit
def layer_norm(x, out, weight, stride, n, eps, BLOCK: tl.constexpr):
    x += tl.program_id(0) * stride
    out += tl.program_id(0) * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32) - mean
        tl.store(out + i, v * tl.rsqrt(eps) * tl.load(weight + i, mask=i < n), mask=i < n)


@triton.jit
def gather_rows(table, rows, out, n, width, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.arange(0, WIDTH)
    row = tl.load(rows + i, mask=i < n, other=0)
    mask = (i[:, None] < n) & (j[None, :] < width)
    tile = tl.load(table + row[:, None] * width + j[None, :], mask=mask)
    tl.store(out + i[:, None] * width + j[None, :], tile, mask=mask)


@triton.jit
def wrap_around(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i % n))


@triton.jit
def reverse(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    from_end = n - 1 - i
    tl.store(out + i, tl.load(x + from_end, mask=from_end >= 0), mask=i < n)


@triton.jit
def mixed_mask(x, keep, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    wanted = tl.load(keep + i, mask=i < n, other=0) != 0
    tl.store(out + i, tl.load(x + i, mask=(i < n) & wanted, other=1.0))


@triton.jit
def moving_index(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    while tl.max(i, axis=0) < n:
        total += tl.load(x + i)
        i += BLOCK
    tl.store(out + tl.arange(0, BLOCK), total)


@triton.jit
def either_pointer(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    source = x + i if n > 4 else y + i
    shifted = x + i if n > 8 else x + i + n
    tl.store(out + i, tl.load(source) + tl.load(shifted))


@triton.jit
def copy_tile(x, out, rows, columns, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    at = [tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK]
    target.store(at, source.load(at))


@triton.jit
def early_return(x, out, n):
    i = tl.program_id(0)
    if i >= n:
        return
    tl.store(out + i, tl.load(x + i))


_HALF = "*fp16"
_FLOAT = "*fp32"
SAMPLES = {
    "vector_add": Sample(
        vector_add, dict.fromkeys(("x", "y", "out"), _FLOAT) | {"n": "i32"}, {"BLOCK": 1024}
    ),
    "softmax": Sample(
        softmax,
        {"out": _FLOAT, "x": _FLOAT, "out_stride": "i32", "x_stride": "i32", "n": "i32"},
        {"BLOCK": 1024},
    ),
    "matmul": Sample(
        matmul,
        dict.fromkeys(("a", "b", "c"), _HALF) | dict.fromkeys(("M", "N", "K", "am", "bk", "cm"), "i32"),
        {"ak": 1, "bn": 1, "cn": 1, "BM": 64, "BN": 64, "BK": 32},
    ),
    "layer_norm": Sample(
        layer_norm,
        dict.fromkeys(("x", "out", "weight"), _HALF) | {"stride": "i32", "n": "i32", "eps": "fp32"},
        {"BLOCK": 256},
    ),
    "gather_rows": Sample(
        gather_rows,
        {"table": _FLOAT, "rows": "*i32", "out": _FLOAT, "n": "i32", "width": "i32"},
        {"BLOCK": 32, "WIDTH": 64},
    ),
    "wrap_around": Sample(wrap_around, {"x": _FLOAT, "out": _FLOAT, "n": "i32"}, {"BLOCK": 128}),
    "reverse": Sample(reverse, {"x": _FLOAT, "out": _FLOAT, "n": "i32"}, {"BLOCK": 128}),
    "mixed_mask": Sample(
        mixed_mask, {"x": _FLOAT, "keep": "*i32", "out": _FLOAT, "n": "i32"}, {"BLOCK": 128}
    ),
    "moving_index": Sample(moving_index, {"x": _FLOAT, "out": _FLOAT, "n": "i32"}, {"BLOCK": 64}),
    "either_pointer": Sample(
        either_pointer, dict.fromkeys(("x", "y", "out"), _FLOAT) | {"n": "i32"}, {"BLOCK": 64}
    ),
    "copy_tile": Sample(
        copy_tile, {"x": _FLOAT, "out": _FLOAT, "rows": "i32", "columns": "i32"}, {"BLOCK": 32}
    ),
    "early_return": Sample(early_return, {"x": _FLOAT, "out": _FLOAT, "n": "i32"}),
}
