"""Losses over a vocabulary: cross entropy with its gradient, alone and after a linear layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional

from ..inductor_patterns import Program, randn
from .work import Made, Workload

BLOCK = 4096


@triton.jit
def cross_entropy_kernel(logits_ptr, target_ptr, loss_ptr, gradient_ptr, n, rows, BLOCK: tl.constexpr):
    """The loss of one row and its gradient; the exponentials' sum is found in one pass over the row."""
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * n
    gradient_ptr += row * n
    target = tl.load(target_ptr + row)
    highest = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + cols, mask=cols < n, other=-float("inf"))
        above = tl.maximum(highest, tl.max(x, axis=0))
        total = total * tl.exp(highest - above) + tl.sum(tl.exp(x - above), axis=0)
        highest = above
    chosen = tl.load(logits_ptr + target)
    tl.store(loss_ptr + row, (highest + tl.log(total) - chosen) / rows)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + cols, mask=cols < n, other=-float("inf"))
        gradient = tl.exp(x - highest) / total
        gradient = tl.where(cols == target, gradient - 1.0, gradient) / rows
        tl.store(gradient_ptr + cols, gradient, mask=cols < n)


def cross_entropy(
    logits: Tensor, target: Tensor, rows: int, gradient: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The losses of rows, divided by how many there are in all, and the gradient of their sum."""
    gradient = torch.empty_like(logits) if gradient is None else gradient
    losses = torch.empty(len(logits))
    n = logits.shape[1]
    cross_entropy_kernel[(len(logits),)](logits, target, losses, gradient, n, rows, BLOCK=BLOCK)
    return losses, gradient


def workloads() -> list[Workload]:
    """Those of this module."""
    return [
        Workload("cross entropy with gradient fp32 1024x32000", _cross_entropy, quick=True),
        Workload("linear and cross entropy with gradients fp32 2048x512x8192", _linear_cross_entropy),
    ]


def _cross_entropy() -> Made:
    rows, n = 1024, 32000
    logits, target = randn(rows, n, grad=True), torch.randint(n, (rows,))

    def ours(logits: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        losses, gradient = cross_entropy(logits.detach(), target, rows)
        return losses.sum(), gradient

    return Made(Program(functional.cross_entropy, (logits, target), train=True), ours, 2 * 4 * rows * n)


def _linear_cross_entropy() -> Made:
    """In chunks of so many rows that their logits take as much memory as all hidden states, as in Liger's kernels.

    These leave the products to torch, too; the kernel is that of the loss.
    """
    rows, inner, n = 2048, 512, 8192
    chunk = rows * inner // n
    hidden, target = randn(rows, inner, grad=True), torch.randint(n, (rows,))
    weight = (randn(n, inner) * inner**-0.5).requires_grad_()

    def program(hidden: Tensor, weight: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(hidden @ weight.t(), target)

    def in_chunks(loss_of: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> Callable[..., Any]:
        """Loss and gradients; `loss_of` takes logits and targets and gives losses and the gradient of the logits."""

        def run(hidden: Tensor, weight: Tensor, target: Tensor) -> tuple[Tensor, ...]:
            hidden, weight = hidden.detach(), weight.detach()
            loss, dhidden, dweight = torch.zeros(()), torch.empty_like(hidden), torch.zeros_like(weight)
            for start in range(0, rows, chunk):
                part = slice(start, start + chunk)
                losses, gradient = loss_of(hidden[part] @ weight.t(), target[part])
                loss += losses.sum()
                torch.mm(gradient, weight, out=dhidden[part])
                torch.addmm(dweight, gradient.t(), hidden[part], out=dweight)
            return loss, dhidden, dweight

        return run

    def by_torch(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        logs = torch.log_softmax(logits, dim=1)
        losses = logs.gather(1, target[:, None]) / -rows
        gradient = logs.exp_().div_(rows)
        gradient[torch.arange(len(gradient)), target] -= 1 / rows
        return losses, gradient

    flops = 3 * 2 * rows * inner * n
    return Made(
        Program(program, (hidden, weight, target), train=True),
        in_chunks(lambda logits, target: cross_entropy(logits, target, rows, logits)),
        4 * (2 * rows * inner + 2 * n * inner),
        flops,
        others={"torch in chunks": in_chunks(by_torch)},
    )
