"""Vector addition: the smallest kernel with a masked tail."""

from __future__ import annotations

import triton
import triton.language as tl

from .arrays import Array, check_contiguous, check_shape, element_count, empty

BLOCK = 4096


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    """out[i] = x[i] + y[i]; each program computes BLOCK consecutive elements."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + y, mask=inside)


def vector_add(x: Array, y: Array, *, out: Array | None = None, block: int = BLOCK) -> Array:
    """Add two contiguous arrays of one shape and type.

    `block` (a power of two) is the number of elements per program. Raises ValueError if shapes differ.
    """
    out = empty(x.shape, x) if out is None else out
    check_shape("y", y, x.shape)
    check_shape("out", out, x.shape)
    check_contiguous(x=x, y=y, out=out)
    n_elements = element_count(x)
    vector_add_kernel[(triton.cdiv(n_elements, block),)](x, y, out, n_elements, BLOCK=block)
    return out
