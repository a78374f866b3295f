"""Rotary position embedding."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.conformance.kernels.problem import (
    Family,
    Operand,
    Problem,
    Random,
    empty,
    expect,
    normal,
    operand,
)
from triton_porting_kit.conformance.types import Array


@triton.jit
def rotary_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, heads, half, HEADS: tl.constexpr, HALF: tl.constexpr):
    """One position per program: the two halves of each head are rotated by the position's angles."""
    position = tl.program_id(0)
    head = tl.arange(0, HEADS)
    dim = tl.arange(0, HALF)
    inside = (head[:, None] < heads) & (dim[None, :] < half)
    cos = tl.load(cos_ptr + position * half + dim, mask=dim < half, other=0.0).to(tl.float32)[None, :]
    sin = tl.load(sin_ptr + position * half + dim, mask=dim < half, other=0.0).to(tl.float32)[None, :]
    first = (position * heads + head[:, None]) * 2 * half + dim[None, :]
    second = first + half
    x = tl.load(x_ptr + first, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(x_ptr + second, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + first, (x * cos - y * sin).to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(out_ptr + second, (y * cos + x * sin).to(out_ptr.dtype.element_ty), mask=inside)


def rotary(x: Any, cos: Any, sin: Any) -> Any:
    """Launch over (positions, heads, dimensions); angles are (positions, dimensions / 2)."""
    positions, heads, dim = x.shape
    out = empty(x.shape, x)
    rotary_kernel[(positions,)](
        x, cos, sin, out, heads, dim // 2,
        HEADS=triton.next_power_of_2(heads), HALF=triton.next_power_of_2(dim // 2),
    )  # fmt: skip
    return out


def _rotary(x: Array, cos: Array, sin: Array) -> Array:
    half = x.shape[2] // 2
    first, second = x[..., :half], x[..., half:]
    c, s = cos[:, None], sin[:, None]
    return np.concatenate([first * c - second * s, second * c + first * s], axis=2)


def problem(positions: int, heads: int, dim: int, kind: str, peer: bool = False) -> Problem:
    """Heads with an even number of dimensions."""

    def operands(random: Random) -> tuple[Operand, ...]:
        angles = np.outer(np.arange(positions), 10000.0 ** (-np.arange(dim // 2) / (dim // 2)))
        return (
            normal(random, (positions, heads, dim), kind),
            operand(np.cos(angles), "fp32"),
            operand(np.sin(angles), "fp32"),
        )

    return Problem(
        f"{positions}x{heads}x{dim}",
        kind,
        operands,
        rotary,
        lambda x, c, s: expect("out", _rotary(x, c, s), kind, "rotary", _magnitude(x, c, s)),
        triton.next_power_of_2(heads) * triton.next_power_of_2(dim // 2),
        peer=_rotary if peer else None,
    )


def _magnitude(x: Array, cos: Array, sin: Array) -> Array:
    half = x.shape[2] // 2
    first, second = np.abs(x[..., :half]), np.abs(x[..., half:])
    c, s = np.abs(cos[:, None]), np.abs(sin[:, None])
    return np.concatenate([first * c + second * s, second * c + first * s], axis=2)


FAMILY = Family("rotary", "Rotary position embedding", "rotary")
for _kind, _shape in product(("fp32", "fp16", "bf16"), ((1, 1, 2), (5, 3, 34), (9, 6, 80))):
    FAMILY.add(problem(*_shape, _kind))
for _kind in ("fp32", "bf16"):
    FAMILY.add(problem(256, 16, 64, _kind, peer=True))

CHECKS = tuple(FAMILY.checks)
