"""Convolutions as implicit matrix products, as Triton's users write them."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def by_loops(
    x, w, out, H, W, OH, OW, C, F,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, DIL: tl.constexpr,
    BX: tl.constexpr, BC: tl.constexpr, BF: tl.constexpr,
):  # fmt: skip
    """A part of a row for each program, in loops over the filter and over channels. x is NHWC, w is RSCF."""
    ox = tl.program_id(0) * BX + tl.arange(0, BX)
    f = tl.program_id(1) * BF + tl.arange(0, BF)
    image, oy = tl.program_id(2) // OH, tl.program_id(2) % OH
    total = tl.zeros((BX, BF), tl.float32)
    for r in range(R):
        y = oy * STRIDE + r * DIL - PAD
        for s in range(S):
            xs = ox * STRIDE + s * DIL - PAD
            for c0 in range(0, C, BC):
                c = c0 + tl.arange(0, BC)
                seen = (y >= 0) & (y < H) & (xs[:, None] >= 0) & (xs[:, None] < W) & (c[None, :] < C)
                a = tl.load(x + ((image * H + y) * W + xs[:, None]) * C + c[None, :], mask=seen, other=0.0)
                given = (c[:, None] < C) & (f[None, :] < F)
                b = tl.load(w + ((r * S + s) * C + c[:, None]) * F + f[None, :], mask=given, other=0.0)
                total = tl.dot(a, b, total, input_precision="ieee")
    inside = (ox[:, None] < OW) & (f[None, :] < F)
    tl.store(out + ((image * OH + oy) * OW + ox[:, None]) * F + f[None, :], total, mask=inside)


@triton.jit
def written_out(
    x, w, out, H, W, OH, OW, C, F, xn, xc, xh, xw, wf, wc, wr, ws, on, of, oh, ow,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, DIL: tl.constexpr,
    BX: tl.constexpr, BC: tl.constexpr, BF: tl.constexpr,
):  # fmt: skip
    """The same with channels outside, the filter written out, and arrays of any strides."""
    ox = tl.program_id(0) * BX + tl.arange(0, BX)
    f = tl.program_id(1) * BF + tl.arange(0, BF)
    image, oy = tl.program_id(2) // OH, tl.program_id(2) % OH
    total = tl.zeros((BX, BF), tl.float32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        for r in tl.static_range(R):
            y = oy * STRIDE + r * DIL - PAD
            for s in tl.static_range(S):
                xs = ox * STRIDE + s * DIL - PAD
                seen = (y >= 0) & (y < H) & (xs[:, None] >= 0) & (xs[:, None] < W) & (c[None, :] < C)
                at = image * xn + y * xh + xs[:, None] * xw + c[None, :] * xc
                a = tl.load(x + at, mask=seen, other=0.0)
                given = (c[:, None] < C) & (f[None, :] < F)
                b = tl.load(w + f[None, :] * wf + c[:, None] * wc + r * wr + s * ws, mask=given, other=0.0)
                total = tl.dot(a, b, total, input_precision="ieee")
    inside = (ox[:, None] < OW) & (f[None, :] < F)
    tl.store(out + image * on + oy * oh + ox[:, None] * ow + f[None, :] * of, total, mask=inside)


@triton.jit
def by_one_loop(
    x, w, out, H, W, OH, OW, F,
    C: tl.constexpr, R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, DIL: tl.constexpr,
    BX: tl.constexpr, BC: tl.constexpr, BF: tl.constexpr,
):  # fmt: skip
    """One loop over rows, columns and channels of the filter."""
    ox = tl.program_id(0) * BX + tl.arange(0, BX)
    f = tl.program_id(1) * BF + tl.arange(0, BF)
    image, oy = tl.program_id(2) // OH, tl.program_id(2) % OH
    total = tl.zeros((BX, BF), tl.float32)
    CHUNKS: tl.constexpr = C // BC
    for k in range(R * S * CHUNKS):
        r, s = k // CHUNKS // S, k // CHUNKS % S
        y = oy * STRIDE + r * DIL - PAD
        xs = ox * STRIDE + s * DIL - PAD
        c = k % CHUNKS * BC + tl.arange(0, BC)
        seen = (y >= 0) & (y < H) & (xs[:, None] >= 0) & (xs[:, None] < W)
        a = tl.load(x + ((image * H + y) * W + xs[:, None]) * C + c[None, :], mask=seen, other=0.0)
        b = tl.load(w + ((r * S + s) * C + c[:, None]) * F + f[None, :], mask=f[None, :] < F, other=0.0)
        total += tl.dot(a, b, input_precision="ieee")
    inside = (ox[:, None] < OW) & (f[None, :] < F)
    tl.store(out + ((image * OH + oy) * OW + ox[:, None]) * F + f[None, :], total, mask=inside)


@triton.jit
def of_rectangles(
    x, w, out, H, W, OH, OW, C, F, xn, xc, xh, xw, wf, wc, wr, ws, on, of, oh, ow,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, DIL: tl.constexpr,
    BY: tl.constexpr, BX: tl.constexpr, BC: tl.constexpr, BF: tl.constexpr,
):  # fmt: skip
    """A rectangle of pixels of one image for each program, and at most BC channels and BF filters."""
    oy = tl.program_id(0) * BY + tl.arange(0, BY)
    ox = tl.program_id(1) * BX + tl.arange(0, BX)
    f, c, image = tl.arange(0, BF), tl.arange(0, BC), tl.program_id(2)
    total = tl.zeros((BY * BX, BF), tl.float32)
    for r in range(R):
        for s in range(S):
            y = (oy * STRIDE + r * DIL - PAD)[:, None, None]
            xs = (ox * STRIDE + s * DIL - PAD)[None, :, None]
            seen = (y >= 0) & (y < H) & (xs >= 0) & (xs < W) & (c[None, None, :] < C)
            a = tl.load(x + image * xn + y * xh + xs * xw + c[None, None, :] * xc, mask=seen, other=0.0)
            given = (c[:, None] < C) & (f[None, :] < F)
            b = tl.load(w + f[None, :] * wf + c[:, None] * wc + r * wr + s * ws, mask=given, other=0.0)
            total = tl.dot(a.reshape(BY * BX, BC), b, total, input_precision="ieee")
    y, xs = oy[:, None, None], ox[None, :, None]
    inside = (y < OH) & (xs < OW) & (f[None, None, :] < F)
    at = image * on + y * oh + xs * ow + f[None, None, :] * of
    tl.store(out + at, total.reshape(BY, BX, BF), mask=inside)


@triton.jit
def of_images(
    x, w, out, H, W, OH, OW, C, F,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, DIL: tl.constexpr,
    BY: tl.constexpr, BX: tl.constexpr, BC: tl.constexpr, BF: tl.constexpr,
):  # fmt: skip
    """As `of_rectangles`, of dense images in NHWC: an address is a product of several arguments."""
    oy = tl.program_id(0) * BY + tl.arange(0, BY)
    ox = tl.program_id(1) * BX + tl.arange(0, BX)
    f, c, image = tl.arange(0, BF), tl.arange(0, BC), tl.program_id(2)
    total = tl.zeros((BY * BX, BF), tl.float32)
    for r in range(R):
        for s in range(S):
            y = (oy * STRIDE + r * DIL - PAD)[:, None, None]
            xs = (ox * STRIDE + s * DIL - PAD)[None, :, None]
            seen = (y >= 0) & (y < H) & (xs >= 0) & (xs < W) & (c[None, None, :] < C)
            a = tl.load(x + ((image * H + y) * W + xs) * C + c[None, None, :], mask=seen, other=0.0)
            given = (c[:, None] < C) & (f[None, :] < F)
            b = tl.load(w + ((r * S + s) * C + c[:, None]) * F + f[None, :], mask=given, other=0.0)
            total = tl.dot(a.reshape(BY * BX, BC), b, total, input_precision="ieee")
    y, xs = oy[:, None, None], ox[None, :, None]
    inside = (y < OH) & (xs < OW) & (f[None, None, :] < F)
    at = ((image * OH + y) * OW + xs) * F + f[None, None, :]
    tl.store(out + at, total.reshape(BY, BX, BF), mask=inside)
