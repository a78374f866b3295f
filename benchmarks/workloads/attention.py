"""Attention as servers of language models need it: causal with grouped heads, and of one token over a paged cache."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional

from ..inductor_patterns import Program, randn
from .work import Made, Workload, bytes_of


@triton.jit
def causal_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, tokens, scale,
    GROUP: tl.constexpr, DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """A block of queries of one head, over the keys up to its diagonal; `GROUP` heads share keys and values."""
    block, head = tl.program_id(0), tl.program_id(1)
    rows, dims = block * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, DIM)
    shared = head // GROUP
    q = tl.load(q_ptr + (head * tokens + rows[:, None]) * DIM + dims[None, :])
    highest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    out = tl.zeros((BLOCK_M, DIM), tl.float32)
    scale *= 1.44269504  # exp2 is faster than exp
    for start in range(0, (block + 1) * BLOCK_M, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + (shared * tokens + cols[None, :]) * DIM + dims[:, None])
        scores = tl.dot(q, k) * scale
        scores = tl.where(rows[:, None] >= cols[None, :], scores, -float("inf"))
        above = tl.maximum(highest, tl.max(scores, axis=1))
        p = tl.exp2(scores - above[:, None])
        shrink = tl.exp2(highest - above)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(v_ptr + (shared * tokens + cols[:, None]) * DIM + dims[None, :])
        out = tl.dot(p.to(v.dtype), v, out * shrink[:, None])
        highest = above
    out /= total[:, None]
    tl.store(
        out_ptr + (head * tokens + rows[:, None]) * DIM + dims[None, :], out.to(out_ptr.dtype.element_ty)
    )


@triton.jit
def paged_kernel(
    q_ptr, k_ptr, v_ptr, pages_ptr, lengths_ptr, out_ptr, most_pages, scale, HEADS: tl.constexpr,
    GROUP: tl.constexpr, ROWS: tl.constexpr, DIM: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The heads of one sequence that share keys; pages are (PAGE, heads of keys, DIM), `BLOCK` tokens at a time."""
    sequence, shared = tl.program_id(0), tl.program_id(1)
    heads, dims = tl.arange(0, ROWS), tl.arange(0, DIM)
    q_places = (sequence * HEADS + shared) * GROUP * DIM + heads[:, None] * DIM + dims[None, :]
    there = (heads < GROUP)[:, None]
    q = tl.load(q_ptr + q_places, mask=there, other=0.0)
    length = tl.load(lengths_ptr + sequence)
    highest = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    out = tl.zeros((ROWS, DIM), tl.float32)
    for start in range(0, length, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        inside = tokens < length
        page = tl.load(pages_ptr + sequence * most_pages + tokens // PAGE, mask=inside, other=0)
        places = ((page * PAGE + tokens % PAGE) * HEADS + shared) * DIM
        k = tl.load(k_ptr + places[None, :] + dims[:, None], mask=inside[None, :], other=0.0)
        scores = tl.where(inside[None, :], tl.dot(q, k) * scale, -float("inf"))
        above = tl.maximum(highest, tl.max(scores, axis=1))
        p = tl.exp(scores - above[:, None])
        shrink = tl.exp(highest - above)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(v_ptr + places[:, None] + dims[None, :], mask=inside[:, None], other=0.0)
        out = tl.dot(p.to(v.dtype), v, out * shrink[:, None])
        highest = above
    out /= total[:, None]
    tl.store(out_ptr + q_places, out.to(out_ptr.dtype.element_ty), mask=there)


def workloads() -> list[Workload]:
    """Those of this module."""
    return [
        Workload("causal attention bf16 8 of 2 heads, 4096x64", _causal),
        Workload("attention of one token bf16, paged, 8x2048, 16 of 4 heads", _paged, quick=True),
    ]


def _causal() -> Made:
    heads, shared, tokens, dim = 8, 2, 4096, 64
    q = randn(1, heads, tokens, dim, dtype=torch.bfloat16)
    k, v = (randn(1, shared, tokens, dim, dtype=torch.bfloat16) for _ in range(2))

    def program(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    def ours(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        out = torch.empty_like(q)
        tiles = {"BLOCK_M": 64, "BLOCK_N": 128}
        causal_kernel[(tokens // tiles["BLOCK_M"], heads)](
            q, k, v, out, tokens, dim**-0.5, GROUP=heads // shared, DIM=dim, **tiles
        )
        return (out,)

    flops = 2 * 2 * heads * tokens * tokens * dim // 2
    return Made(Program(program, (q, k, v)), ours, 2 * bytes_of(q) + bytes_of(k, v), flops, "bfloat16")


def _paged() -> Made:
    sequences, heads, shared, dim, page, most = 8, 16, 4, 128, 16, 2048
    pages = sequences * most // page
    q = randn(sequences, heads, dim, dtype=torch.bfloat16)
    k, v = (randn(pages, page, shared, dim, dtype=torch.bfloat16) for _ in range(2))
    table = torch.randperm(pages, dtype=torch.int32).reshape(sequences, -1)
    lengths = torch.randint(most // 2, most + 1, (sequences,), dtype=torch.int32)
    mask = (torch.arange(most) < lengths[:, None])[:, None, None, :]

    def program(q: Tensor, k: Tensor, v: Tensor, table: Tensor) -> Tensor:
        k, v = (x[table].reshape(sequences, most, shared, dim).transpose(1, 2) for x in (k, v))
        out = functional.scaled_dot_product_attention(q[:, :, None], k, v, attn_mask=mask, enable_gqa=True)
        return out[:, :, 0]

    def ours(q: Tensor, k: Tensor, v: Tensor, table: Tensor) -> tuple[Tensor, ...]:
        out = torch.empty_like(q)
        paged_kernel[(sequences, shared)](
            q, k, v, table, lengths, out, most // page, dim**-0.5,
            HEADS=shared, GROUP=heads // shared, ROWS=16, DIM=dim, PAGE=page, BLOCK=64,
        )  # fmt: skip
        return (out,)

    read = 2 * int(lengths.sum()) * shared * dim * 2
    flops = 2 * 2 * int(lengths.sum()) * heads * dim
    return Made(Program(program, (q, k, v, table)), ours, read, flops, "bfloat16")
