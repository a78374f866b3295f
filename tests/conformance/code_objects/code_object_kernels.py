"""Kernels compiled by Triton's own AMD backend, for the tests of what is said of them. Compiled once a session."""

from __future__ import annotations

from functools import cache
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from triton_porting_kit.toolchain import compat

WARPS = {"gfx90a": 64, "gfx942": 64, "gfx950": 64, "gfx1100": 32, "gfx1201": 32}
if compat.release() >= (3, 8):  # before, Triton makes no use of all its matrix instructions
    WARPS["gfx1250"] = 32


def _matrix_form() -> Any:
    @triton.jit
    def product(A, B, O, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):  # type: ignore[no-untyped-def]
        m, c, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
        a = tl.load(A + m * n + k[None, :])
        b = tl.load(B + k[:, None] * N + c)
        tl.store(O + m * N + c, tl.dot(a, b, out_dtype=O.dtype.element_ty))

    return product


def _scalar_form() -> Any:
    @triton.jit
    def product(A, B, O, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):  # type: ignore[no-untyped-def]
        m, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
        total = tl.zeros((M, N), O.dtype.element_ty)
        for k in range(K):
            total += tl.load(A + m * n + k).to(total.dtype) * tl.load(B + k * N + c).to(total.dtype)
        tl.store(O + m * N + c, total)

    return product


def _unused_form() -> Any:
    @triton.jit
    def product(A, B, O, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):  # type: ignore[no-untyped-def]
        m, c, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
        a = tl.load(A + m * n + k[None, :])
        b = tl.load(B + k[:, None] * N + c)
        unused = tl.dot(a, b) + 1.0
        unused = tl.join(unused, unused)
        tl.store(O + m * n + k[None, :], a)

    return product


@cache
def unused_product() -> Any:
    """A kernel for gfx942 with a product of matrices whose result is not used."""
    signature = {"A": "*bf16", "B": "*bf16", "O": "*bf16", "n": "i32"}
    source = ASTSource(
        _unused_form(), signature | dict.fromkeys(("M", "N", "K"), "constexpr"), dict.fromkeys("MNK", 32)
    )
    return triton.compile(source, target=GPUTarget("hip", "gfx942", 64))


@cache
def product(arch: str, kind: str, m: int = 32, n: int = 32, k: int = 32, *, scalar: bool = False) -> Any:
    """A product of matrices for an architecture: by `tl.dot`, or (`scalar`) element by element."""
    out = {"i8": "i32", "fp64": "fp64"}.get(kind, "fp32")
    signature = {"A": f"*{kind}", "B": f"*{kind}", "O": f"*{out}", "n": "i32"}
    signature |= dict.fromkeys(("M", "N", "K"), "constexpr")
    source = ASTSource(
        _scalar_form() if scalar else _matrix_form(),
        signature,
        {"M": m, "N": n, "K": k},
    )
    return triton.compile(source, target=GPUTarget("hip", arch, WARPS[arch]))
