"""Flash attention: forward, and backward from the stored logarithms of the sums of weights."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.conformance import tolerances
from triton_porting_kit.conformance.kernels.problem import (
    Expected,
    Family,
    Operand,
    Problem,
    Random,
    empty,
    expect,
    normal,
    operand,
)
from triton_porting_kit.conformance.types import KINDS, Array

ROWS = COLS = 32
"""The number of queries and keys of a tile."""


@triton.jit
def scores(q, k, rows, cols, n_keys, scale, CAUSAL: tl.constexpr):
    """Scaled products of queries and keys; minus infinity where a key is masked."""
    s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    seen = cols[None, :] < n_keys
    if CAUSAL:
        seen = seen & (rows[:, None] >= cols[None, :])
    return tl.where(seen, s, -float("inf"))


@triton.jit
def attention_forward_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, n, scale,
    CAUSAL: tl.constexpr, DIM: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """One tile of queries of one head per program; keys and values stream past."""
    head = tl.program_id(1)
    q_ptr += head * n * DIM
    k_ptr += head * n * DIM
    v_ptr += head * n * DIM
    out_ptr += head * n * DIM
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    dims = tl.arange(0, DIM)
    q = tl.load(q_ptr + rows[:, None] * DIM + dims[None, :], mask=rows[:, None] < n, other=0.0)
    top = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    accumulator = tl.zeros((ROWS, DIM), tl.float32)
    end = n
    if CAUSAL:
        end = tl.minimum(n, (tl.program_id(0) + 1) * ROWS)
    for start in range(0, end, COLS):
        cols = start + tl.arange(0, COLS)
        k = tl.load(k_ptr + cols[:, None] * DIM + dims[None, :], mask=cols[:, None] < n, other=0.0)
        s = scores(q, k, rows, cols, n, scale, CAUSAL)
        new_top = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp(s - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(v_ptr + cols[:, None] * DIM + dims[None, :], mask=cols[:, None] < n, other=0.0)
        accumulator = accumulator * shrink[:, None]
        accumulator = tl.dot(p.to(v.dtype), v, accumulator, input_precision="ieee")
        top = new_top
    out = accumulator / total[:, None]
    tl.store(
        out_ptr + rows[:, None] * DIM + dims[None, :],
        out.to(out_ptr.dtype.element_ty),
        mask=rows[:, None] < n,
    )
    tl.store(lse_ptr + head * n + rows, top + tl.log(total), mask=rows < n)


@triton.jit
def attention_delta_kernel(out_ptr, dout_ptr, delta_ptr, n, DIM: tl.constexpr, ROWS: tl.constexpr):
    """delta = sum of out * dout over the dimensions of each query."""
    head = tl.program_id(1)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    offsets = (head * n + rows[:, None]) * DIM + tl.arange(0, DIM)[None, :]
    out = tl.load(out_ptr + offsets, mask=rows[:, None] < n, other=0.0).to(tl.float32)
    dout = tl.load(dout_ptr + offsets, mask=rows[:, None] < n, other=0.0).to(tl.float32)
    tl.store(delta_ptr + head * n + rows, tl.sum(out * dout, axis=1), mask=rows < n)


@triton.jit
def attention_backward_kv_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, n, scale,
    CAUSAL: tl.constexpr, DIM: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """One tile of keys of one head per program; queries and gradients stream past."""
    head = tl.program_id(1)
    base = head * n * DIM
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    dims = tl.arange(0, DIM)
    own = cols[:, None] * DIM + dims[None, :]
    k = tl.load(k_ptr + base + own, mask=cols[:, None] < n, other=0.0)
    v = tl.load(v_ptr + base + own, mask=cols[:, None] < n, other=0.0)
    dk = tl.zeros((COLS, DIM), tl.float32)
    dv = tl.zeros((COLS, DIM), tl.float32)
    begin = 0
    if CAUSAL:
        begin = tl.program_id(0) * COLS // ROWS * ROWS
    for start in range(begin, n, ROWS):
        rows = start + tl.arange(0, ROWS)
        offsets = base + rows[:, None] * DIM + dims[None, :]
        q = tl.load(q_ptr + offsets, mask=rows[:, None] < n, other=0.0)
        dout = tl.load(dout_ptr + offsets, mask=rows[:, None] < n, other=0.0)
        lse = tl.load(lse_ptr + head * n + rows, mask=rows < n, other=0.0)
        delta = tl.load(delta_ptr + head * n + rows, mask=rows < n, other=0.0)
        p = tl.exp(scores(q, k, rows, cols, n, scale, CAUSAL) - lse[:, None])
        dv = tl.dot(tl.trans(p.to(dout.dtype)), dout, dv, input_precision="ieee")
        dp = tl.dot(dout, tl.trans(v), input_precision="ieee")
        ds = p * (dp - delta[:, None]) * scale
        dk = tl.dot(tl.trans(ds.to(q.dtype)), q, dk, input_precision="ieee")
    tl.store(dk_ptr + base + own, dk.to(dk_ptr.dtype.element_ty), mask=cols[:, None] < n)
    tl.store(dv_ptr + base + own, dv.to(dv_ptr.dtype.element_ty), mask=cols[:, None] < n)


@triton.jit
def attention_backward_q_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dq_ptr, n, scale,
    CAUSAL: tl.constexpr, DIM: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """One tile of queries of one head per program; keys and values stream past."""
    head = tl.program_id(1)
    base = head * n * DIM
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    dims = tl.arange(0, DIM)
    own = rows[:, None] * DIM + dims[None, :]
    q = tl.load(q_ptr + base + own, mask=rows[:, None] < n, other=0.0)
    dout = tl.load(dout_ptr + base + own, mask=rows[:, None] < n, other=0.0)
    lse = tl.load(lse_ptr + head * n + rows, mask=rows < n, other=0.0)
    delta = tl.load(delta_ptr + head * n + rows, mask=rows < n, other=0.0)
    dq = tl.zeros((ROWS, DIM), tl.float32)
    end = n
    if CAUSAL:
        end = tl.minimum(n, (tl.program_id(0) + 1) * ROWS)
    for start in range(0, end, COLS):
        cols = start + tl.arange(0, COLS)
        offsets = base + cols[:, None] * DIM + dims[None, :]
        k = tl.load(k_ptr + offsets, mask=cols[:, None] < n, other=0.0)
        v = tl.load(v_ptr + offsets, mask=cols[:, None] < n, other=0.0)
        p = tl.exp(scores(q, k, rows, cols, n, scale, CAUSAL) - lse[:, None])
        dp = tl.dot(dout, tl.trans(v), input_precision="ieee")
        ds = p * (dp - delta[:, None]) * scale
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision="ieee")
    tl.store(dq_ptr + base + own, dq.to(dq_ptr.dtype.element_ty), mask=rows[:, None] < n)


def _meta(dim: int, causal: bool) -> dict[str, Any]:
    return {"CAUSAL": causal, "DIM": dim, "ROWS": ROWS, "COLS": COLS, "num_stages": 1}


def attention(q: Any, k: Any, v: Any, causal: bool) -> tuple[Any, Any]:
    """The output, and the logarithm of each query's sum of weights, of (heads, n, dimensions)."""
    heads, n, dim = q.shape
    out, lse = empty(q.shape, q), empty((heads, n), q, "fp32")
    grid = (triton.cdiv(n, ROWS), heads)
    attention_forward_kernel[grid](q, k, v, out, lse, n, dim**-0.5, **_meta(dim, causal))
    return out, lse


def attention_backward(
    q: Any, k: Any, v: Any, out: Any, lse: Any, dout: Any, *, causal: bool
) -> tuple[Any, Any, Any]:
    """dq, dk and dv for the gradient `dout` of the output."""
    heads, n, dim = q.shape
    delta = empty((heads, n), q, "fp32")
    dq, dk, dv = (empty(q.shape, q) for _ in range(3))
    attention_delta_kernel[(triton.cdiv(n, ROWS), heads)](out, dout, delta, n, DIM=dim, ROWS=ROWS)
    common = (n, dim**-0.5)
    attention_backward_kv_kernel[(triton.cdiv(n, COLS), heads)](
        q, k, v, dout, lse, delta, dk, dv, *common, **_meta(dim, causal)
    )
    attention_backward_q_kernel[(triton.cdiv(n, ROWS), heads)](
        q, k, v, dout, lse, delta, dq, *common, **_meta(dim, causal)
    )
    return dq, dk, dv


# --- oracle ------------------------------------------------------------------------------------------


def _weights(q: Array, k: Array, causal: bool) -> tuple[Array, Array]:
    """Softmax of the scaled scores, and the logarithm of each row's sum."""
    n, dim = q.shape[1:]
    s = q @ k.swapaxes(1, 2) * dim**-0.5
    if causal:
        s = np.where(np.tril(np.ones((n, n), bool)), s, -np.inf)
    top = s.max(axis=2, keepdims=True)
    lse = top + np.log(np.exp(s - top).sum(axis=2, keepdims=True))
    return np.exp(s - lse), lse[..., 0]


def _size_of_scores(q: Array, k: Array) -> float:
    """The largest sum of magnitudes of a score's terms. Rounding errors of scores multiply the weights."""
    return float((np.abs(q) @ np.abs(k).swapaxes(1, 2)).max() * q.shape[2] ** -0.5)


def _rounded(kind: str, weights: Array, values: Array) -> Array:
    """The error from rounding each weight of a sum to the type of the operands."""
    own = KINDS[kind]
    per_term = 2.0**-own.precision + 2.0**own.lowest_exponent  # the last term: underflow
    lost = np.minimum(1.0, tolerances.lost(weights.shape[-1]) / weights.shape[-1])
    largest = 2.0**-own.precision * np.max(np.abs(weights), axis=-1, keepdims=True) * np.max(np.abs(values))
    return np.asarray(per_term * lost * (np.abs(weights) @ np.abs(values)) + largest * (own.bits < 32))


def _plus(found: Expected, more: Array) -> Expected:
    assert found.allowed is not None
    rule = found.rule + ", and the rounding of weights to the type of the operands"
    return Expected(found.what, found.values, found.kind, found.allowed + more, rule)


def forward_expected(kind: str, causal: bool, q: Array, k: Array, v: Array) -> tuple[Expected, Expected]:
    """The output and the logarithms."""
    p, lse = _weights(q, k, causal)
    size, terms = 1 + _size_of_scores(q, k), sum(q.shape[1:])
    out = expect("out", p @ v, kind, "attention", (p @ np.abs(v)) * size, terms)
    return _plus(out, _rounded(kind, p, v)), expect(
        "lse", lse, "fp32", "attention", np.abs(lse) + size, terms
    )


def backward_expected(kind: str, causal: bool, *values: Array) -> tuple[Expected, ...]:
    """dq, dk and dv, from the given output and logarithms."""
    q, k, v, out, lse, dout = values
    (_, n, dim), factor = q.shape, q.shape[2] ** -0.5
    s = q @ k.swapaxes(1, 2) * factor
    p = (
        np.exp(np.where(np.tril(np.ones((n, n), bool)), s, -np.inf) if causal else s)
        * np.exp(-lse)[..., None]
    )
    delta = (out * dout).sum(axis=2, keepdims=True)
    dp = dout @ v.swapaxes(1, 2)
    ds = p * (dp - delta) * factor
    turned, weights = ds.swapaxes(1, 2), p.swapaxes(1, 2)
    size = 1 + _size_of_scores(q, k) + float(np.abs(lse).max())
    rough = (
        p
        * factor
        * (np.abs(dout) @ np.abs(v).swapaxes(1, 2) + (np.abs(out * dout)).sum(axis=2, keepdims=True))
    )
    terms = n + dim
    return (
        _plus(
            expect("dq", ds @ k, kind, "attention", rough @ np.abs(k) * size, terms), _rounded(kind, ds, k)
        ),
        _plus(
            expect("dk", turned @ q, kind, "attention", rough.swapaxes(1, 2) @ np.abs(q) * size, terms),
            _rounded(kind, turned, q),
        ),
        _plus(
            expect("dv", weights @ dout, kind, "attention", weights @ np.abs(dout) * size, terms),
            _rounded(kind, weights, dout),
        ),
    )


def _inputs(random: Random, heads: int, n: int, dim: int, kind: str) -> tuple[Operand, ...]:
    return tuple(normal(random, (heads, n, dim), kind) for _ in range(3))


def _backward_inputs(
    random: Random, heads: int, n: int, dim: int, kind: str, causal: bool
) -> tuple[Operand, ...]:
    q, k, v = _inputs(random, heads, n, dim, kind)
    p, lse = _weights(q.values.astype(np.float64), k.values.astype(np.float64), causal)
    return q, k, v, operand(p @ v.values, kind), operand(lse, "fp32"), normal(random, (heads, n, dim), kind)


def problem(heads: int, n: int, dim: int, kind: str, causal: bool, peer: bool = False) -> Problem:
    """n queries, keys and values of `dim` dimensions, for each head."""

    def by_numpy(q: Array, k: Array, v: Array) -> Array:
        return np.asarray(_weights(q, k, causal)[0] @ v)

    return Problem(
        f"{heads}x{n}x{dim}" + "-causal" * causal,
        kind,
        lambda random: _inputs(random, heads, n, dim, kind),
        lambda q, k, v: attention(q, k, v, causal),
        lambda *values: forward_expected(kind, causal, *values),
        ROWS * max(dim, COLS),
        peer=by_numpy if peer else None,
    )


def _backward_by_numpy(causal: bool, *values: Array) -> tuple[Array, ...]:
    q, k, v, out, _, dout = values
    p, _ = _weights(q, k, causal)
    ds = (
        p
        * (dout @ v.swapaxes(1, 2) - (out * dout).sum(axis=2, keepdims=True))
        * q.dtype.type(q.shape[2] ** -0.5)
    )
    return ds @ k, ds.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ dout


def backward(heads: int, n: int, dim: int, kind: str, causal: bool, peer: bool = False) -> Problem:
    """The gradients of `problem`."""
    return Problem(
        f"{heads}x{n}x{dim}" + "-causal" * causal,
        kind,
        lambda random: _backward_inputs(random, heads, n, dim, kind, causal),
        lambda *arrays: attention_backward(*arrays, causal=causal),
        lambda *values: backward_expected(kind, causal, *values),
        ROWS * max(dim, COLS),
        peer=(lambda *values: _backward_by_numpy(causal, *values)) if peer else None,
    )


FORWARD = Family("attention", "Flash attention", "attention", ("feature:dot",))
BACKWARD = Family("attention-backward", "The gradients of flash attention", "attention", ("feature:dot",))
for _kind, _causal in product(("fp32", "fp16", "bf16"), (False, True)):
    for _heads, _n, _dim in ((1, 1, 32), (3, 77, 32), (2, 64, 64), (1, 100, 128)):
        FORWARD.add(problem(_heads, _n, _dim, _kind, _causal))
        BACKWARD.add(backward(_heads, _n, _dim, _kind, _causal))
for _kind in ("fp32", "bf16"):
    FORWARD.add(problem(8, 1024, 64, _kind, True, peer=True))
    FORWARD.add(problem(4, 512, 128, _kind, False))
    BACKWARD.add(backward(4, 1024, 64, _kind, True, peer=True))

CHECKS = (*FORWARD.checks, *BACKWARD.checks)
