"""Dropout from a seed: the mask is recomputed from seed and position, and never stored."""

from __future__ import annotations

import triton
import triton.language as tl

from .arrays import Array, check_contiguous, check_shape, element_count, empty

BLOCK = 1024


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n_elements, p, seed, BLOCK: tl.constexpr):
    """out[i] = x[i] / (1 - p) where the i-th random number of `seed` is at least p, else 0."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    keep = tl.rand(seed, offsets) >= p
    result = tl.where(keep, x / (1.0 - p), 0.0)
    tl.store(out_ptr + offsets, result.to(out_ptr.dtype.element_ty), mask=inside)


def dropout(x: Array, p: float, seed: int, *, out: Array | None = None) -> Array:
    """Set each element of a contiguous array to 0 with probability `p`, and scale the others by 1 / (1 - p).

    The same seed (a 64-bit integer) drops the same positions for any type; the gradient is `dropout(dy, p,
    seed)`. Raises ValueError if `p` is not between 0 and 1.
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"p = {p} is not a probability")
    out = empty(x.shape, x) if out is None else out
    check_shape("out", out, x.shape)
    check_contiguous(x=x, out=out)
    n_elements = element_count(x)
    dropout_kernel[(triton.cdiv(n_elements, BLOCK),)](x, out, n_elements, float(p), seed, BLOCK=BLOCK)
    return out
