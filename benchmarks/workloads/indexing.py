"""Work by index: embeddings, sums by segment, histograms, the largest of a row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional

from ..inductor_patterns import Program, randn
from .work import Made, Workload


@triton.jit
def embedding_kernel(table_ptr, tokens_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """The row of one token."""
    place = tl.program_id(0)
    token = tl.load(tokens_ptr + place)
    cols = tl.arange(0, BLOCK)
    inside = cols < n
    tl.store(y_ptr + place * n + cols, tl.load(table_ptr + token * n + cols, mask=inside), mask=inside)


@triton.jit
def add_rows_kernel(values_ptr, index_ptr, sums_ptr, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Add `ROWS` rows to those that the index names, by atomics."""
    places = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    inside = (places[:, None] < rows) & (cols[None, :] < n)
    index = tl.load(index_ptr + places, mask=places < rows, other=0)
    values = tl.load(values_ptr + places[:, None] * n + cols[None, :], mask=inside)
    tl.atomic_add(sums_ptr + index[:, None] * n + cols[None, :], values, mask=inside, sem="relaxed")


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """Count one block of numbers, and add its counts by atomics."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    counts = tl.histogram(tl.load(x_ptr + places, mask=inside, other=0), BINS, mask=inside)
    tl.atomic_add(counts_ptr + tl.arange(0, BINS), counts, sem="relaxed")


@triton.jit
def topk_kernel(x_ptr, y_ptr, n, K: tl.constexpr, BLOCK: tl.constexpr):
    """The K largest numbers of one row, in order."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
    tl.store(y_ptr + row * K + tl.arange(0, K), tl.topk(x, K))


def add_rows(values: Tensor, index: Tensor, rows: int) -> Tensor:
    """The sums of rows by index, for `rows` indices."""
    count, n = values.shape
    sums = torch.zeros(rows, n, dtype=values.dtype)
    add_rows_kernel[(triton.cdiv(count, 16),)](
        values, index, sums, count, n, ROWS=16, BLOCK=triton.next_power_of_2(n)
    )
    return sums


def workloads() -> list[Workload]:
    """Those of this module."""
    return [
        Workload("embedding with gradient fp32 8192 of 32000x512", _embedding),
        Workload("segmented sum by atomics fp32 65536x64, 1024 segments", _segments),
        Workload("histogram int32 4M, 256 bins", _histogram, quick=True),
        Workload("top-k fp32 4096x1024, k=8", _topk),
    ]


def _embedding() -> Made:
    words, n, count = 32000, 512, 8192
    table, tokens = randn(words, n, grad=True), torch.randint(words, (count,))
    program = Program(lambda table, tokens: functional.embedding(tokens, table), (table, tokens), train=True)

    def ours(table: Tensor, tokens: Tensor) -> tuple[Tensor, ...]:
        y = torch.empty(count, n)
        embedding_kernel[(count,)](table.detach(), tokens, y, n, BLOCK=triton.next_power_of_2(n))
        return y, add_rows(program.seed(y), tokens, words)

    return Made(program, ours, 4 * n * (4 * count + words))


def _segments() -> Made:
    count, n, segments = 65536, 64, 1024
    values, index = randn(count, n), torch.randint(segments, (count,)).sort().values

    def program(values: Tensor, index: Tensor) -> Tensor:
        return torch.zeros(segments, n, dtype=values.dtype).index_add_(0, index, values)

    def scattered(values: Tensor, index: Tensor) -> Tensor:
        sums = torch.zeros(segments, n, dtype=values.dtype)
        return sums.scatter_add_(0, index[:, None].expand(count, n), values)

    return Made(
        Program(program, (values, index)),
        lambda values, index: (add_rows(values, index, segments),),
        4 * n * (count + segments) + 8 * count,
        others={"scatter_add": scattered},
    )


def _histogram() -> Made:
    n, bins, block = 1 << 22, 256, 8192
    x = torch.randint(bins, (n,), dtype=torch.int32)

    def ours(x: Tensor) -> tuple[Tensor, ...]:
        counts = torch.zeros(bins, dtype=torch.int32)
        histogram_kernel[(triton.cdiv(n, block),)](x, counts, n, BLOCK=block, BINS=bins)
        return (counts,)

    def program(x: Tensor) -> Tensor:
        return torch.bincount(x, minlength=bins).to(torch.int32)

    return Made(Program(program, (x,)), ours, 4 * n)


def _topk() -> Made:
    rows, n, k = 4096, 1024, 8

    def ours(x: Tensor) -> tuple[Tensor, ...]:
        y = torch.empty(rows, k)
        topk_kernel[(rows,)](x, y, n, K=k, BLOCK=triton.next_power_of_2(n))
        return (y,)

    return Made(Program(lambda x: x.topk(k).values, (randn(rows, n),)), ours, 4 * rows * (n + k))
