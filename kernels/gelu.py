"""GELU of a scaled and shifted input plus a residual, fused: each array is read or written once."""

from __future__ import annotations

import triton
import triton.language as tl

from .arrays import Array, check_contiguous, check_shape, element_count, empty

BLOCK = 1024


@triton.jit
def gelu_residual_kernel(x_ptr, residual_ptr, out_ptr, a, b, n_elements, BLOCK: tl.constexpr):
    """out = gelu(x * a + b) + residual, where gelu(t) = t * P(N <= t) for a standard normal N."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=inside).to(tl.float32)
    residual = tl.load(residual_ptr + offsets, mask=inside).to(tl.float32)
    t = x * a + b
    result = 0.5 * t * (1.0 + tl.erf(t * 0.7071067811865476)) + residual
    tl.store(out_ptr + offsets, result.to(out_ptr.dtype.element_ty), mask=inside)


def gelu_residual(
    x: Array, residual: Array, a: float, b: float, *, out: Array | None = None, block: int = BLOCK
) -> Array:
    """gelu(x * a + b) + residual of contiguous arrays of one shape.

    Computes in float32 and rounds to the type of `x`. Raises ValueError if shapes differ.
    """
    out = empty(x.shape, x) if out is None else out
    check_shape("residual", residual, x.shape)
    check_shape("out", out, x.shape)
    check_contiguous(x=x, residual=residual, out=out)
    n_elements = element_count(x)
    grid = (triton.cdiv(n_elements, block),)
    gelu_residual_kernel[grid](x, residual, out, float(a), float(b), n_elements, BLOCK=block)
    return out
