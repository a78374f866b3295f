"""Two-dimensional convolution as an implicit matrix product: patches are gathered on the fly."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.conformance.kernels.problem import (
    Expected,
    Family,
    Problem,
    empty,
    expect,
    normal,
)
from triton_porting_kit.conformance.types import Array

TILE_M, TILE_N, TILE_K = 32, 32, 32


@triton.jit
def convolution_kernel(
    x_ptr, w_ptr, out_ptr, batch, height, width, channels, filters, out_height, out_width,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    """Pixels of the output by filters, over (r, s, channel). x is (batch, height, width, channels)."""
    pixel = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    chosen = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    image = pixel // (out_height * out_width)
    out_y = pixel // out_width % out_height
    out_x = pixel % out_width
    depth = R * S * channels
    accumulator = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in range(0, depth, TILE_K):
        k = start + tl.arange(0, TILE_K)
        channel = k % channels
        y = out_y[:, None] * STRIDE - PADDING + (k // channels // S)[None, :]
        x = out_x[:, None] * STRIDE - PADDING + (k // channels % S)[None, :]
        seen = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        seen = seen & (image[:, None] < batch) & (k[None, :] < depth)
        patch = tl.load(
            x_ptr + ((image[:, None] * height + y) * width + x) * channels + channel[None, :],
            mask=seen,
            other=0.0,
        )
        weights = tl.load(
            w_ptr + k[:, None] * filters + chosen[None, :],
            mask=(k[:, None] < depth) & (chosen[None, :] < filters),
            other=0.0,
        )
        accumulator = tl.dot(patch, weights, accumulator, input_precision="ieee")
    inside = (image[:, None] < batch) & (chosen[None, :] < filters)
    tl.store(
        out_ptr + pixel[:, None] * filters + chosen[None, :],
        accumulator.to(out_ptr.dtype.element_ty),
        mask=inside,
    )


def convolution(x: Any, w: Any, stride: int, padding: int) -> Any:
    """Launch over x (batch, height, width, channels) and w (R, S, channels, filters)."""
    (batch, height, width, channels), (r, s, _, filters) = x.shape, w.shape
    out_height, out_width = ((n + 2 * padding - d) // stride + 1 for n, d in ((height, r), (width, s)))
    out = empty((batch, out_height, out_width, filters), x)
    grid = (triton.cdiv(batch * out_height * out_width, TILE_M), triton.cdiv(filters, TILE_N))
    convolution_kernel[grid](
        x, w, out, batch, height, width, channels, filters, out_height, out_width,
        R=r, S=s, STRIDE=stride, PADDING=padding, TILE_M=TILE_M, TILE_N=TILE_N, TILE_K=TILE_K,
    )  # fmt: skip
    return out


def _convolution(x: Array, w: Array, stride: int, padding: int) -> Array:
    r, s = w.shape[:2]
    padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    height, width = ((n - d) // stride + 1 for n, d in zip(padded.shape[1:3], (r, s), strict=True))
    out = np.zeros((len(x), height, width, w.shape[3]), x.dtype)
    for i in range(r):
        for j in range(s):
            rows = slice(i, i + (height - 1) * stride + 1, stride)
            cols = slice(j, j + (width - 1) * stride + 1, stride)
            out += padded[:, rows, cols] @ w[i, j]
    return out


def problem(
    x: tuple[int, int, int, int],
    w: tuple[int, int, int],
    stride: int,
    padding: int,
    kind: str,
    peer: bool = False,
) -> Problem:
    """`x`: (batch, height, width, channels). `w`: (R, S, filters)."""
    shape = (w[0], w[1], x[3], w[2])

    def expected(a: Array, b: Array) -> Expected:
        scale = _convolution(np.abs(a), np.abs(b), stride, padding)
        return expect("out", _convolution(a, b, stride, padding), kind, "matmul", scale, w[0] * w[1] * x[3])

    return Problem(
        f"{'x'.join(map(str, x))}-{'x'.join(map(str, w))}-stride{stride}-pad{padding}",
        kind,
        lambda random: (normal(random, x, kind), normal(random, shape, kind)),
        lambda a, b: convolution(a, b, stride, padding),
        expected,
        max(TILE_M * TILE_N, TILE_M * TILE_K),
        peer=(lambda a, b: _convolution(a, b, stride, padding)) if peer else None,
    )


FAMILY = Family("convolution", "A convolution as an implicit matrix product", "matmul", ("feature:dot",))
for _kind, (_x, _w, _stride, _padding) in product(
    ("fp32", "fp16", "bf16"),
    (
        ((1, 1, 1, 1), (1, 1, 1), 1, 0),
        ((2, 7, 9, 5), (3, 3, 6), 1, 1),
        ((1, 11, 8, 17), (5, 2, 33), 2, 2),
        ((1, 10, 10, 3), (3, 3, 8), 3, 0),
    ),
):
    FAMILY.add(problem(_x, _w, _stride, _padding, _kind))
for _kind in ("fp32", "bf16"):
    FAMILY.add(problem((2, 56, 56, 64), (3, 3, 64), 1, 1, _kind, peer=True))

CHECKS = tuple(FAMILY.checks)
