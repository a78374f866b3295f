"""Flash attention without a mask, forward and backward: softmax(q kᵀ / √dim) v, without storing the weights.

Arrays have the shape (heads, n, dim) and are contiguous; n is a multiple of `MULTIPLE`, so tiles need no masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import triton
import triton.language as tl

from .arrays import Array, check_contiguous, check_shape, empty, zeros
from .tuning import Tuned

MULTIPLE = 128
LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)
LN_2: tl.constexpr = tl.constexpr(0.6931471805599453)


class AttentionTiles(NamedTuple):
    """The number of queries and keys of a tile; each divides `MULTIPLE`."""

    block_m: int = 64
    block_n: int = 64

    def constexprs(self) -> dict[str, int]:
        """The kernels' compile-time arguments."""
        return {"BLOCK_M": self.block_m, "BLOCK_N": self.block_n}


TUNED_TILES = tuple(AttentionTiles(m, n) for m in (32, 64, 128) for n in (32, 64, 128))


@triton.jit
def attention_forward_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, n, scale, DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):  # fmt: skip
    """One tile of queries of one head per program; keys and values stream past."""
    head = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, DIM)
    base = head * n * DIM
    own = base + rows[:, None] * DIM + dims[None, :]
    q = tl.load(q_ptr + own)
    k_ptrs = k_ptr + base + cols[:, None] * DIM + dims[None, :]
    v_ptrs = v_ptr + base + cols[:, None] * DIM + dims[None, :]
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    accumulator = tl.zeros((BLOCK_M, DIM), tl.float32)
    scale *= LOG2_E  # exp2 is cheaper than exp
    for _ in range(0, n, BLOCK_N):
        s = tl.dot(q, tl.trans(tl.load(k_ptrs)), input_precision="ieee")
        new_top = tl.maximum(top, tl.max(s, axis=1) * scale)
        p = tl.exp2(s * scale - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(v_ptrs)
        accumulator = tl.dot(p.to(v.dtype), v, accumulator * shrink[:, None], input_precision="ieee")
        top = new_top
        k_ptrs += BLOCK_N * DIM
        v_ptrs += BLOCK_N * DIM
    tl.store(out_ptr + own, (accumulator / total[:, None]).to(out_ptr.dtype.element_ty))
    tl.store(lse_ptr + head * n + rows, (top + tl.log2(total)) * LN_2)


@triton.jit
def attention_delta_kernel(out_ptr, dout_ptr, delta_ptr, DIM: tl.constexpr, BLOCK_M: tl.constexpr):
    """delta = the sum of out * dout over the dimensions of each query of all heads."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offsets = rows[:, None] * DIM + tl.arange(0, DIM)[None, :]
    out = tl.load(out_ptr + offsets).to(tl.float32)
    dout = tl.load(dout_ptr + offsets).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(out * dout, axis=1))


@triton.jit
def _add_queries(q, k, v, dout, lse, delta, dk, dv, scale):
    """What a tile of queries adds to dk / scale and dv of a tile of keys, and the gradient of the scores.

    Keys are the rows of these tiles, so the products need no transposed weights.
    """
    s = tl.dot(k, tl.trans(q), input_precision="ieee")
    p = tl.exp2(s * (scale * LOG2_E) - lse[None, :])
    dv = tl.dot(p.to(dout.dtype), dout, dv, input_precision="ieee")
    dp = tl.dot(v, tl.trans(dout), input_precision="ieee")
    ds = (p * (dp - delta[None, :])).to(q.dtype)
    dk = tl.dot(ds, q, dk, input_precision="ieee")
    return dk, dv, ds


@triton.jit
def attention_backward_kv_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, n, scale,
    DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """dk and dv: one tile of keys of one head per program; queries and gradients stream past."""
    head = tl.program_id(1)
    base = head * n * DIM
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dims = tl.arange(0, DIM)
    own = base + cols[:, None] * DIM + dims[None, :]
    k = tl.load(k_ptr + own)
    v = tl.load(v_ptr + own)
    dk = tl.zeros((BLOCK_N, DIM), tl.float32)
    dv = tl.zeros((BLOCK_N, DIM), tl.float32)
    for start in range(0, n, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        offsets = base + rows[:, None] * DIM + dims[None, :]
        q = tl.load(q_ptr + offsets)
        dout = tl.load(dout_ptr + offsets)
        lse = tl.load(lse_ptr + head * n + rows) * LOG2_E
        delta = tl.load(delta_ptr + head * n + rows)
        dk, dv, _ = _add_queries(q, k, v, dout, lse, delta, dk, dv, scale)
    tl.store(dk_ptr + own, (dk * scale).to(dk_ptr.dtype.element_ty))
    tl.store(dv_ptr + own, dv.to(dv_ptr.dtype.element_ty))


@triton.jit
def attention_backward_q_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dq_ptr, n, scale,
    DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """dq: one tile of queries of one head per program; keys and values stream past."""
    head = tl.program_id(1)
    base = head * n * DIM
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, DIM)
    own = base + rows[:, None] * DIM + dims[None, :]
    q = tl.load(q_ptr + own)
    dout = tl.load(dout_ptr + own)
    lse = tl.load(lse_ptr + head * n + rows) * LOG2_E
    delta = tl.load(delta_ptr + head * n + rows)
    dq = tl.zeros((BLOCK_M, DIM), tl.float32)
    for start in range(0, n, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        offsets = base + cols[:, None] * DIM + dims[None, :]
        k = tl.load(k_ptr + offsets)
        v = tl.load(v_ptr + offsets)
        s = tl.dot(q, tl.trans(k), input_precision="ieee")
        p = tl.exp2(s * (scale * LOG2_E) - lse[:, None])
        dp = tl.dot(dout, tl.trans(v), input_precision="ieee")
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision="ieee")
    tl.store(dq_ptr + own, (dq * scale).to(dq_ptr.dtype.element_ty))


@triton.jit
def attention_backward_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, sum_ptr, dk_ptr, dv_ptr, n, scale,
    DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """dk and dv as in `attention_backward_kv_kernel`. Each tile of keys adds its part of dq / scale to a sum in memory
    (FlashAttention-2, arXiv:2307.08691, section 3.1.2), so weights are computed once: five products, not seven."""
    head = tl.program_id(1)
    base = head * n * DIM
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dims = tl.arange(0, DIM)
    own = base + cols[:, None] * DIM + dims[None, :]
    k = tl.load(k_ptr + own)
    v = tl.load(v_ptr + own)
    dk = tl.zeros((BLOCK_N, DIM), tl.float32)
    dv = tl.zeros((BLOCK_N, DIM), tl.float32)
    for start in range(0, n, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        offsets = base + rows[:, None] * DIM + dims[None, :]
        q = tl.load(q_ptr + offsets)
        dout = tl.load(dout_ptr + offsets)
        lse = tl.load(lse_ptr + head * n + rows) * LOG2_E
        delta = tl.load(delta_ptr + head * n + rows)
        dk, dv, ds = _add_queries(q, k, v, dout, lse, delta, dk, dv, scale)
        tl.atomic_add(sum_ptr + offsets, tl.dot(tl.trans(ds), k, input_precision="ieee"), sem="relaxed")
    tl.store(dk_ptr + own, (dk * scale).to(dk_ptr.dtype.element_ty))
    tl.store(dv_ptr + own, dv.to(dv_ptr.dtype.element_ty))


@triton.jit
def attention_scale_kernel(sum_ptr, dq_ptr, scale, DIM: tl.constexpr, BLOCK_M: tl.constexpr):
    """dq of the queries of all heads, from the sums of `attention_backward_kernel`."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offsets = rows[:, None] * DIM + tl.arange(0, DIM)[None, :]
    tl.store(dq_ptr + offsets, (tl.load(sum_ptr + offsets) * scale).to(dq_ptr.dtype.element_ty))


def _tuned(kernel: Any, sums: Sequence[str] = ()) -> Tuned:
    configs = [triton.Config(tiles.constexprs()) for tiles in TUNED_TILES]
    return Tuned(kernel, configs, ["n", "DIM"], sums)


tuned_forward_kernel = _tuned(attention_forward_kernel)
tuned_backward_kv_kernel = _tuned(attention_backward_kv_kernel)
tuned_backward_q_kernel = _tuned(attention_backward_q_kernel)
tuned_backward_kernel = _tuned(attention_backward_kernel, ["sum_ptr"])


def attention(
    q: Array, k: Array, v: Array, *, tiles: AttentionTiles | None = None, out: Array | None = None
) -> tuple[Array, Array]:
    """Compute the output, shaped like `q`, and the logarithm of each query's sum of weights, float32 of (heads, n).

    Without `tiles` the kernel is autotuned. Raises ValueError if shapes do not match.
    """
    heads, n, dim = _check(q, k, v)
    if out is None:
        out = empty(q.shape, q)
    else:
        check_shape("out", out, q.shape)
        check_contiguous(out=out)
    lse = empty((heads, n), q, "float32")
    problem, config = (n, dim, q.dtype), tiles and tiles.constexprs()
    tuned_forward_kernel.launch(
        problem, config, lambda meta: (n // meta["BLOCK_M"], heads), q, k, v, out, lse, n, dim**-0.5, DIM=dim
    )
    return out, lse


def attention_backward(
    q: Array,
    k: Array,
    v: Array,
    output: Array,
    lse: Array,
    dout: Array,
    *,
    tiles: AttentionTiles | None = None,
    atomic: bool = False,
    out: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Compute dq (in `out` if given), dk and dv for the gradient `dout` of `output`. `attention` returns `output`
    and `lse`.

    With `atomic`, one kernel computes all three with atomic additions of float32, whose order decides the last bits
    of dq. Else two kernels do, which takes seven products instead of five, and is reproducible bit for bit.

    Without `tiles` the kernels are autotuned. Raises ValueError if shapes do not match.
    """
    heads, n, dim = _check(q, k, v)
    check_shape("lse", lse, (heads, n))
    check_shape("dout", dout, q.shape)
    check_shape("output", output, q.shape)
    dq = empty(q.shape, q) if out is None else out
    check_shape("out", dq, q.shape)
    check_contiguous(output=output, lse=lse, dout=dout, out=dq)
    dk, dv, delta = empty(q.shape, q), empty(q.shape, q), empty((heads, n), q, "float32")
    attention_delta_kernel[(heads * n // MULTIPLE,)](output, dout, delta, DIM=dim, BLOCK_M=MULTIPLE)
    problem, config = (n, dim, q.dtype), tiles and tiles.constexprs()
    inputs, sizes = (q, k, v, dout, lse, delta), (n, dim**-0.5)

    def of_keys(meta: dict[str, Any]) -> tuple[int, int]:
        return n // meta["BLOCK_N"], heads

    if atomic:
        total = zeros(q.shape, q, "float32")
        tuned_backward_kernel.launch(problem, config, of_keys, *inputs, total, dk, dv, *sizes, DIM=dim)
        attention_scale_kernel[(heads * n // MULTIPLE,)](total, dq, sizes[1], DIM=dim, BLOCK_M=MULTIPLE)
        return dq, dk, dv
    tuned_backward_kv_kernel.launch(problem, config, of_keys, *inputs, dk, dv, *sizes, DIM=dim)
    tuned_backward_q_kernel.launch(
        problem, config, lambda meta: (n // meta["BLOCK_M"], heads), *inputs, dq, *sizes, DIM=dim
    )
    return dq, dk, dv


def _check(q: Array, k: Array, v: Array) -> tuple[int, int, int]:
    shape = tuple(q.shape)
    if len(shape) != 3 or shape[1] % MULTIPLE or 0 in shape:
        raise ValueError(f"q has shape {shape}, expected (heads, n, dim) where n is a multiple of {MULTIPLE}")
    check_shape("k", k, shape)
    check_shape("v", v, shape)
    check_contiguous(q=q, k=k, v=v)
    heads, n, dim = shape
    if dim & (dim - 1) or dim < 16:
        raise ValueError(f"the number of dimensions is {dim}; it must be a power of 2 and at least 16")
    return heads, n, dim
