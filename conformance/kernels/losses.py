"""Losses and dropout: cross entropy with its gradient, generalised IoU, and dropout from a seed."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import triton
import triton.language as tl

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
from triton_porting_kit.kernels import references
from triton_porting_kit.kernels.dropout import BLOCK as DROPOUT_BLOCK
from triton_porting_kit.kernels.dropout import dropout
from triton_porting_kit.kernels.giou import giou_loss

FLOATS = ("fp32", "fp16", "bf16")


@triton.jit
def cross_entropy_kernel(logits_ptr, target_ptr, loss_ptr, grad_ptr, n_classes, factor, BLOCK: tl.constexpr):
    """One sample per program: loss = log(sum(exp(x))) - x[target], and factor times its gradient."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_classes
    target = tl.load(target_ptr + row)
    x = tl.load(logits_ptr + row * n_classes + cols, mask=inside, other=-float("inf")).to(tl.float32)
    top = tl.max(x, axis=0)
    weights = tl.exp(x - top)
    total = tl.sum(weights, axis=0)
    chosen = tl.load(logits_ptr + row * n_classes + target).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + top - chosen)
    grad = (weights / total - tl.where(cols == target, 1.0, 0.0)) * factor
    tl.store(grad_ptr + row * n_classes + cols, grad.to(grad_ptr.dtype.element_ty), mask=inside)


# --- cross entropy -----------------------------------------------------------------------------------


def cross_entropy(logits: Any, target: Any) -> tuple[Any, Any]:
    """The loss of each sample, and the gradient of their mean."""
    rows, classes = logits.shape
    loss, grad = empty((rows,), logits, "fp32"), empty(logits.shape, logits)
    cross_entropy_kernel[(rows,)](
        logits, target, loss, grad, classes, 1.0 / rows, BLOCK=triton.next_power_of_2(classes), num_warps=8
    )
    return loss, grad


def _cross_entropy(logits: Array, target: Array) -> tuple[Array, Array]:
    rows = np.arange(len(logits))
    top = logits.max(axis=1, keepdims=True)
    weights = np.exp(logits - top)
    total = weights.sum(axis=1, keepdims=True)
    loss = (np.log(total) + top)[:, 0] - logits[rows, target]
    grad = weights / total
    grad[rows, target] -= 1
    return loss, grad / len(rows)


def cross_entropy_problem(rows: int, classes: int, kind: str, peer: bool = False) -> Problem:
    """rows of logits, and the class of each."""

    def operands(random: Random) -> tuple[Operand, Operand]:
        target = random.integers(0, classes, rows)
        target[-1] = classes - 1
        return normal(random, (rows, classes), kind, 3.0), Operand(target, KINDS["i64"])

    def expected(logits: Array, target: Array) -> tuple[Expected, Expected]:
        loss, grad = _cross_entropy(logits, target)
        size = np.abs(logits).max(axis=1) + 1
        chosen = np.zeros_like(grad)
        chosen[np.arange(rows), target] = 1 / rows
        return (
            expect("loss", loss, "fp32", "cross_entropy", size, classes),
            expect("gradient", grad, kind, "cross_entropy", np.abs(grad) + 2 * chosen, classes),
        )

    return Problem(
        f"{rows}x{classes}",
        kind,
        operands,
        cross_entropy,
        expected,
        triton.next_power_of_2(classes),
        ("type:i64",),
        peer=_cross_entropy if peer else None,
    )


CROSS_ENTROPY = Family("cross-entropy", "Cross entropy with its gradient", "cross_entropy")
for _kind, (_rows, _classes) in product(FLOATS, ((1, 1), (5, 11), (17, 1000))):
    CROSS_ENTROPY.add(cross_entropy_problem(_rows, _classes, _kind))
for _kind in ("fp32", "bf16"):
    CROSS_ENTROPY.add(cross_entropy_problem(128, 16_000, _kind, peer=True))


# --- generalised IoU ---------------------------------------------------------------------------------


def boxes(random: Random, samples: int, count: int, kind: str) -> tuple[Operand, Operand, Operand]:
    """Overlapping, disjoint, equal and empty boxes; invalid ones are NaN."""
    corner = random.uniform(0, 400, (samples, count, 2))
    pred = np.concatenate([corner, corner + random.uniform(1, 200, corner.shape)], axis=2)
    target = pred + random.normal(0, 30, pred.shape)
    target = np.concatenate(
        [np.minimum(target[..., :2], target[..., 2:]), np.maximum(target[..., :2], target[..., 2:])], axis=2
    )
    special = random.integers(0, 12, (samples, count))
    target[special == 0] += 1000.0
    target[special == 1] = pred[special == 1]
    pred[special == 2, 2:] = pred[special == 2, :2]
    valid = random.random((samples, count)) < 0.8
    if samples > 1:
        valid[samples // 2] = False  # a sample without valid boxes
    pred[~valid] = np.nan
    return operand(pred, kind), operand(target, kind), Operand(valid, KINDS["i1"])


def _giou_by_numpy(pred: Array, target: Array, valid: Array) -> Array:
    """The loss in fp32, because areas are too large for fp16."""
    return references.giou_loss(pred.astype(np.float32), target.astype(np.float32), valid)


def giou(samples: int, count: int, kind: str, peer: bool = False) -> Problem:
    """Pairs of boxes."""
    return Problem(
        f"{samples}x{count}",
        kind,
        lambda random: boxes(random, samples, count, kind),
        giou_loss,
        lambda *values: expect("loss", references.giou_loss(*values), "fp32", "giou_loss", 3.0, count),
        min(1024, triton.next_power_of_2(count)),
        peer=_giou_by_numpy if peer else None,
    )


GIOU = Family("giou-loss", "The mean generalised IoU loss", "giou_loss")
for _kind, (_samples, _count) in product(FLOATS, ((1, 1), (3, 77), (4, 1100))):
    GIOU.add(giou(_samples, _count, _kind))
for _kind in ("fp32", "fp16"):
    GIOU.add(giou(32, 1024, _kind, peer=True))


# --- dropout -----------------------------------------------------------------------------------------


def dropout_problem(n: int, kind: str, p: float, seed: int, peer: bool = False) -> Problem:
    """n elements; a wrong random bit shows as an error of the element's size."""

    def expected(x: Array) -> Expected:
        return expect("out", references.dropout(x, p, seed), kind, "dropout")

    def by_numpy(x: Array) -> Array:
        keep = np.random.default_rng(seed).random(x.shape, np.float32) >= p
        return np.asarray(x * (keep / x.dtype.type(1 - p)))

    return Problem(
        f"{n}-p{p}-seed{seed}",
        kind,
        lambda random: (normal(random, (n,), kind),),
        lambda x: dropout(x, p, seed),
        expected,
        DROPOUT_BLOCK,
        peer=by_numpy if peer else None,
    )


DROPOUT = Family("dropout", "Dropout from a seed", "dropout")
for _kind, (_n, _p, _seed) in product(FLOATS, ((1, 0.5, 1), (1025, 0.25, 123456789), (5000, 0.9, 7))):
    DROPOUT.add(dropout_problem(_n, _kind, _p, _seed))
DROPOUT.add(dropout_problem(1000, "fp32", 0.5, 2**40 + 5))
for _kind in ("fp32", "bf16"):
    DROPOUT.add(dropout_problem(500_001, _kind, 0.25, 42, peer=True))

CHECKS = (*CROSS_ENTROPY.checks, *GIOU.checks, *DROPOUT.checks)
