"""Running sums and sorting of rows."""

from __future__ import annotations

import triton
import triton.language as tl

from .arrays import Array, check_contiguous, check_shape, empty


@triton.jit
def cumulative_sum_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    """One program per row; BLOCK is a power of two that holds the whole row."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=0.0).to(tl.float32)
    result = tl.cumsum(x, axis=0)
    tl.store(out_ptr + row * n_cols + cols, result.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def sort_kernel(x_ptr, out_ptr, n_cols, padding, BLOCK: tl.constexpr, DESCENDING: tl.constexpr):
    """One program per row; BLOCK is a power of two that holds the whole row.

    `padding` fills the rest of BLOCK. It must sort last: no element may come after it.
    """
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=padding)
    tl.store(out_ptr + row * n_cols + cols, tl.sort(x, descending=DESCENDING), mask=inside)


def cumulative_sum(x: Array, *, out: Array | None = None) -> Array:
    """Compute the running sum along each row of a contiguous matrix of floats, accumulated in float32.

    Raises ValueError for other than a matrix with elements.
    """
    out, n_rows, n_cols = _prepare(x, out)
    cumulative_sum_kernel[(n_rows,)](x, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out


def sort_rows(x: Array, *, out: Array | None = None) -> Array:
    """Sort each row of a contiguous matrix of floats without NaN in ascending order.

    Raises ValueError for other than a matrix with elements.
    """
    out, n_rows, n_cols = _prepare(x, out)
    block = triton.next_power_of_2(n_cols)
    sort_kernel[(n_rows,)](x, out, n_cols, float("inf"), BLOCK=block, DESCENDING=False)
    return out


def _prepare(x: Array, out: Array | None) -> tuple[Array, int, int]:
    if len(x.shape) != 2 or 0 in x.shape:
        raise ValueError(f"this takes a matrix with elements, not shape {tuple(x.shape)}")
    out = empty(x.shape, x) if out is None else out
    check_shape("out", out, x.shape)
    check_contiguous(x=x, out=out)
    return out, x.shape[0], x.shape[1]
