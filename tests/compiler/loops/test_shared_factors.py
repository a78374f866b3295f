"""Left factors that a product has packed behind those of earlier iterations, and that later operations read, too."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from native_functions import host
from poisoned import Poisoned, targets

from triton_porting_kit.compiler import CpuTarget

M, N, K, DEPTH = 32, 32, 32, 128


@triton.jit
def shared(X, B, C, O, P, one, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, USE: tl.constexpr):
    """Every other element of X, which takes many instructions, times B; each iteration waits for the next."""
    m, k, n = tl.arange(0, M)[:, None], tl.arange(0, K), tl.arange(0, N)[None, :]
    total = tl.zeros((M, N), tl.float32)
    other = tl.zeros((M, N), tl.float32)
    for start in range(0, depth, K):
        column = start + k[None, :]
        a = tl.load(X + (m * depth + column) * 2, mask=column < depth, other=0.0)
        b = tl.load(B + (start + k[:, None]) * N + n)
        total = tl.dot(a, b, total, input_precision="ieee")
        c = tl.load(C + k[:, None] * N + n)
        if USE == "left":
            other = other * one + tl.dot(a, c, input_precision="ieee")
        elif USE == "right":
            other = other * one + tl.dot(c, a, input_precision="ieee")
        elif USE == "turned":
            other = other * one + tl.dot(tl.trans(a), c, input_precision="ieee")
        elif USE == "sums":
            other = other * one + tl.dot(b, c, a.to(tl.float32), input_precision="ieee")
        elif USE == "reshaped":
            other = other * one + tl.reshape(tl.reshape(a, (K // 2, 2 * M)), (M, K)).to(tl.float32)
        else:
            other = other * one + a.to(tl.float32)
    tl.store(O + m * N + n, total)
    tl.store(P + m * N + n, other)


def kinds() -> dict[str, CpuTarget]:
    """The host's loops, and those of AVX512-BF16 on a CPU that multiplies pairs in one cycle."""
    found = dict(targets())
    without = host().with_features("-amx-tile")
    if without.rounds_to_bf16:
        found["pairs"] = dataclasses.replace(without, cpu="znver4")
    return found


def stored(values: Any, kind: str) -> Any:
    """Whole numbers as the elements of an array of that type; those of bf16 are the upper halves of f32."""
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).ravel()
    return values.astype({"fp16": np.float16, "fp32": np.float32}[kind]).ravel()


@pytest.mark.parametrize("target", kinds())
@pytest.mark.parametrize("use", ["left", "right", "turned", "sums", "reshaped", "added"])
@pytest.mark.parametrize("kind", ["bf16", "fp16", "fp32"])
def test_later_uses_read_what_was_packed(kind: str, use: str, target: str) -> None:
    random = np.random.default_rng(5)
    x = random.integers(-2, 3, (M, DEPTH, 2))
    b, c = random.integers(-2, 3, (DEPTH, N)), random.integers(-2, 3, (K, N))
    signature = {"X": f"*{kind}", "B": f"*{kind}", "C": f"*{kind}", "O": "*fp32", "P": "*fp32"}
    signature |= dict.fromkeys(("one", "depth"), "i32")
    kernel = Poisoned(shared, signature, kinds()[target], M=M, N=N, K=K, USE=use)
    zeros = np.zeros(M * N, np.float32)
    found = kernel(
        X=stored(x, kind), B=stored(b, kind), C=stored(c, kind), O=zeros, P=zeros.copy(), one=1, depth=DEPTH,
    )  # fmt: skip
    a = x[:, :, 0]
    other = np.zeros((M, N), np.int64)
    for start in range(0, DEPTH, K):
        part, rows = a[:, start : start + K], b[start : start + K]
        other += {"left": part @ c, "right": c @ part, "turned": part.T @ c, "sums": rows @ c + part}.get(
            use, part
        )
    np.testing.assert_array_equal(found["O"].reshape(M, N), a @ b)
    np.testing.assert_array_equal(found["P"].reshape(M, N), other)
