"""Layer normalisation over the last dimension, forward and backward.

y = (x - mean) * rstd * weight + bias, with mean and rstd = 1 / sqrt(variance + eps) of each row.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .arrays import Array, check_contiguous, check_shape, empty

# The number of programs that share the rows in the backward pass; each stores partial sums for weight and bias.
MAX_GROUPS = 32
REDUCE_BLOCK = 128


@triton.jit
def layer_norm_forward_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, rstd_ptr, n_cols, eps, BLOCK: tl.constexpr
):
    """One program per row; BLOCK is a power of two that holds the whole row."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    # Compute the variance from centred values: E[x²] - mean² would cancel if the mean is large.
    centred = tl.where(inside, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / n_cols
    rstd = 1.0 / tl.sqrt(variance + eps)
    weight = tl.load(weight_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    y = centred * rstd * weight + bias
    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=inside)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def layer_norm_backward_kernel(
    dy_ptr,
    x_ptr,
    weight_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    partial_dweight_ptr,
    partial_dbias_ptr,
    n_rows,
    n_cols,
    BLOCK: tl.constexpr,
):
    """First stage: each program computes dx of some consecutive rows, and their partial sums for weight and bias."""
    group = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    weight = tl.load(weight_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    dweight = tl.zeros((BLOCK,), dtype=tl.float32)
    dbias = tl.zeros((BLOCK,), dtype=tl.float32)
    rows = tl.cdiv(n_rows, tl.num_programs(0))
    for row in range(group * rows, tl.minimum(group * rows + rows, n_rows)):
        x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * n_cols + cols, mask=inside, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
        normalised = tl.where(inside, (x - mean) * rstd, 0.0)
        scaled = dy * weight
        # Remove the gradient's components along the row's mean and deviation, which do not affect the output.
        along_deviation = tl.sum(scaled * normalised, axis=0) / n_cols
        along_mean = tl.sum(scaled, axis=0) / n_cols
        dx = (scaled - normalised * along_deviation - along_mean) * rstd
        tl.store(dx_ptr + row * n_cols + cols, dx.to(dx_ptr.dtype.element_ty), mask=inside)
        dweight += dy * normalised
        dbias += dy
    tl.store(partial_dweight_ptr + group * n_cols + cols, dweight, mask=inside)
    tl.store(partial_dbias_ptr + group * n_cols + cols, dbias, mask=inside)


@triton.jit
def layer_norm_reduce_kernel(
    partial_dweight_ptr,
    partial_dbias_ptr,
    dweight_ptr,
    dbias_ptr,
    n_groups,
    n_cols,
    BLOCK_GROUPS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    """Second stage: add up the partial sums of all groups, BLOCK_COLS columns per program."""
    groups = tl.arange(0, BLOCK_GROUPS)
    cols = tl.program_id(0) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    inside = (groups[:, None] < n_groups) & (cols[None, :] < n_cols)
    offsets = groups[:, None] * n_cols + cols[None, :]
    dweight = tl.sum(tl.load(partial_dweight_ptr + offsets, mask=inside, other=0.0), axis=0)
    dbias = tl.sum(tl.load(partial_dbias_ptr + offsets, mask=inside, other=0.0), axis=0)
    tl.store(dweight_ptr + cols, dweight.to(dweight_ptr.dtype.element_ty), mask=cols < n_cols)
    tl.store(dbias_ptr + cols, dbias.to(dbias_ptr.dtype.element_ty), mask=cols < n_cols)


def layer_norm(
    x: Array, weight: Array, bias: Array, *, eps: float = 1e-5, out: Array | None = None
) -> tuple[Array, Array, Array]:
    """Normalise the rows of `x` (rows, cols); `weight` and `bias` have shape (cols,). All contiguous.

    Returns y like `x`, and the mean and rstd of each row, float32 of shape (rows,), for the backward pass.
    """
    n_rows, n_cols = _check_rows(x, weight)
    out = empty(x.shape, x) if out is None else out
    check_shape("bias", bias, (n_cols,))
    check_shape("out", out, x.shape)
    check_contiguous(bias=bias, out=out)
    mean, rstd = (empty((n_rows,), x, "float32") for _ in range(2))
    layer_norm_forward_kernel[(n_rows,)](
        x, weight, bias, out, mean, rstd, n_cols, eps, BLOCK=triton.next_power_of_2(n_cols)
    )
    return out, mean, rstd


def layer_norm_backward(
    dy: Array, x: Array, weight: Array, mean: Array, rstd: Array, *, out: Array | None = None
) -> tuple[Array, Array, Array]:
    """Compute the gradients of `layer_norm` for the gradient `dy` of its output. It also returned `mean` and `rstd`.

    Returns dx like `x` (in `out` if given), and dweight and dbias like `weight`. The sums over rows are computed
    in two stages in a fixed order, so results are reproducible bit for bit.
    """
    n_rows, n_cols = _check_rows(x, weight)
    out = empty(x.shape, x) if out is None else out
    check_shape("dy", dy, x.shape)
    check_shape("mean", mean, (n_rows,))
    check_shape("rstd", rstd, (n_rows,))
    check_shape("out", out, x.shape)
    check_contiguous(dy=dy, mean=mean, rstd=rstd, out=out)
    # The smallest number of groups with the same number of rows per group, so that no group is empty.
    n_groups = triton.cdiv(n_rows, triton.cdiv(n_rows, MAX_GROUPS))
    partial_dweight, partial_dbias = (empty((n_groups, n_cols), x, "float32") for _ in range(2))
    dweight, dbias = (empty((n_cols,), weight) for _ in range(2))
    layer_norm_backward_kernel[(n_groups,)](
        dy,
        x,
        weight,
        mean,
        rstd,
        out,
        partial_dweight,
        partial_dbias,
        n_rows,
        n_cols,
        BLOCK=triton.next_power_of_2(n_cols),
    )
    layer_norm_reduce_kernel[(triton.cdiv(n_cols, REDUCE_BLOCK),)](
        partial_dweight,
        partial_dbias,
        dweight,
        dbias,
        n_groups,
        n_cols,
        BLOCK_GROUPS=triton.next_power_of_2(n_groups),
        BLOCK_COLS=REDUCE_BLOCK,
    )
    return out, dweight, dbias


def _check_rows(x: Array, weight: Array) -> tuple[int, int]:
    if len(x.shape) != 2 or 0 in x.shape:
        raise ValueError(f"layer normalisation takes a matrix with elements, not shape {tuple(x.shape)}")
    check_shape("weight", weight, (x.shape[1],))
    check_contiguous(x=x, weight=weight)
    return x.shape[0], x.shape[1]
