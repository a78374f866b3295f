"""Kernels that are compiled for AMD's architectures: small, one of each kind."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@triton.jit
def matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.arange(0, BM)
    n = tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), c.dtype.element_ty)
    for at in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (at + k)[None, :])
        y = tl.load(b + (at + k)[:, None] * BN + n[None, :])
        acc = tl.dot(x, y, acc, out_dtype=c.dtype.element_ty)
    tl.store(c + m[:, None] * BN + n[None, :], acc)


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(1) * n + i, i < n, -float("inf"))
    e = tl.exp(row - tl.max(row, 0))
    tl.store(out + tl.program_id(1) * n + i, e / tl.sum(e, 0), i < n)


@triton.jit
def convert(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


@triton.jit
def power(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, libdevice.pow(tl.load(x + i), 0.3))


@triton.jit
def exchange(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.atomic_xchg(x + i, tl.load(out + i)))


@triton.jit
def gather_rows(x, out, rows, columns, BLOCK: tl.constexpr):
    tile = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    i = tl.arange(0, BLOCK)
    tl.store(out + i[:, None] * BLOCK + i[None, :], tile.load([tl.program_id(0) * BLOCK, 0]))


@triton.jit
def sums_by_descriptor(x, out, rows, columns, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    target.atomic_add([0, 0], source.load([0, 0]))


@triton.jit
def padded_with_nan(x, out, rows, columns, BLOCK: tl.constexpr):
    tile = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BLOCK, BLOCK], padding_option="nan")
    i = tl.arange(0, BLOCK)
    tl.store(out + i[:, None] * BLOCK + i[None, :], tile.load([0, 0]))


@triton.jit
def from_descriptor(tile, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i[:, None] * BLOCK + i[None, :], tile.load([0, 0]))


@triton.jit
def wide_tiles(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.arange(0, BM)
    n = tl.arange(0, BN)
    k = tl.arange(0, BK)
    x = tl.load(a + m[:, None] * BK + k[None, :])
    y = tl.load(b + k[:, None] * BN + n[None, :])
    tl.store(c + m[:, None] * BN + n[None, :], tl.dot(x, y))


@triton.jit
def foreign_assembly(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    y = tl.inline_asm_elementwise(
        "mov.b32 $0, $1;", "=v,v", [tl.load(x + i)], dtype=tl.int32, is_pure=True, pack=1
    )
    tl.store(x + i, y)


Arguments = tuple[dict[str, str], dict[str, Any]]


def matmul_arguments(operand: str, result: str = "fp32", size: int = 64, depth: int = 32) -> Arguments:
    """Types and constants of `matmul` and `wide_tiles`, whose tiles are `size` by `size` by `depth`."""
    types = {"a": f"*{operand}", "b": f"*{operand}", "c": f"*{result}", "K": "i32"}
    return types, {"BM": size, "BN": size, "BK": depth}


ARGUMENTS: dict[str, Arguments] = {
    "add": ({"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 1024}),
    "matmul": matmul_arguments("bf16"),
    "softmax": ({"x": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 1024}),
    "power": ({"x": "*fp32", "out": "*fp32"}, {"BLOCK": 256}),
    "convert": ({"x": "*fp32", "out": "*fp16"}, {"BLOCK": 256}),
    "exchange": ({"x": "*fp32", "out": "*fp32"}, {"BLOCK": 256}),
    "gather_rows": ({"x": "*fp16", "out": "*fp16", "rows": "i32", "columns": "i32"}, {"BLOCK": 32}),
    "sums_by_descriptor": ({"x": "*fp32", "out": "*fp32", "rows": "i32", "columns": "i32"}, {"BLOCK": 32}),
    "padded_with_nan": ({"x": "*fp32", "out": "*fp32", "rows": "i32", "columns": "i32"}, {"BLOCK": 32}),
    "from_descriptor": ({"tile": "tensordesc<fp16[32, 32]>", "out": "*fp16"}, {"BLOCK": 32}),
    "wide_tiles": matmul_arguments("fp32", size=256, depth=256),
    "foreign_assembly": ({"x": "*i32"}, {"BLOCK": 256}),
}
