"""Row softmax, fused: each row is read once and written once."""

from __future__ import annotations

import triton
import triton.language as tl

from .arrays import Array, check_shape, element_strides, empty


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_row_stride, out_row_stride, n_cols, BLOCK: tl.constexpr):
    """One program per row; BLOCK is a power of two that holds the whole row."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols, mask=inside, other=-float("inf")).to(tl.float32)
    # Subtracting the maximum keeps exp within (0, 1], so large inputs cannot overflow.
    numerator = tl.exp(x - tl.max(x, axis=0))
    result = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_row_stride + cols, result.to(out_ptr.dtype.element_ty), mask=inside)


def softmax(x: Array, *, out: Array | None = None) -> Array:
    """Softmax over the last dimension of a matrix whose rows are each contiguous.

    Computes in float32 and rounds to the type of `x`. Raises ValueError if the input is not two-dimensional.
    """
    if len(x.shape) != 2:
        raise ValueError(f"softmax takes a matrix, not an array of shape {tuple(x.shape)}")
    out = empty(x.shape, x) if out is None else out
    check_shape("out", out, x.shape)
    n_rows, n_cols = x.shape
    if n_cols == 0:
        return out
    (x_row, x_col), (out_row, out_col) = element_strides(x), element_strides(out)
    if n_cols > 1 and (x_col, out_col) != (1, 1):
        raise ValueError(f"softmax needs contiguous rows; column strides are {x_col} (x) and {out_col} (out)")
    softmax_kernel[(n_rows,)](x, out, x_row, out_row, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out
