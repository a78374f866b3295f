"""Kernels compiled by Triton's own AMD backend, which needs no GPU: what the kit's readers are compared with."""

from __future__ import annotations

from functools import cache
from typing import Any

import triton
import triton.language as tl
from packaging.version import Version
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

ARCHITECTURES = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
if Version(triton.__version__) >= Version("3.7"):  # 3.6 compiles a minute for this one
    ARCHITECTURES.append("gfx1250")


def warp_size(arch: str) -> int:
    return 64 if arch.startswith("gfx9") else 32


@triton.jit
def product(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        x = tl.load(a + m[:, None] * k + (start + inner)[None, :])
        y = tl.load(b + (start + inner)[:, None] * N + n[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + m[:, None] * N + n[None, :], total.to(tl.bfloat16))


@triton.jit
def scalars(out, byte, long, half, flag, double, short):
    tl.store(out, byte + long + half + flag + double + short)


@triton.jit
def talking(values, n):
    x = tl.load(values + tl.program_id(0))
    tl.device_print("x", x)
    tl.store(values + n, x)


#: Of each kernel: signature, constexprs, options.
KERNELS: dict[str, tuple[Any, dict[str, str], dict[str, int], dict[str, Any]]] = {
    "product": (
        product,
        {"a": "*bf16", "b": "*bf16", "c": "*bf16", "k": "i32"},
        {"M": 32, "N": 32, "K": 32},
        {},
    ),
    "scalars": (
        scalars,
        {
            "out": "*fp32",
            "byte": "i8",
            "long": "i64",
            "half": "fp16",
            "flag": "u1",
            "double": "fp64",
            "short": "i16",
        },
        {},
        {"num_warps": 1},
    ),
    "talking": (talking, {"values": "*fp32", "n": "i32"}, {}, {}),
}


def source(name: str) -> ASTSource:
    """Triton's source object of a kernel."""
    kernel, signature, constexprs, _ = KERNELS[name]
    return ASTSource(kernel, signature | dict.fromkeys(constexprs, "constexpr"), constexprs)


@cache
def compiled(name: str, arch: str, backend: str = "hip") -> Any:
    """A kernel as Triton compiled it: `asm["hsaco"]`, `asm["amdgcn"]`, `metadata`. `backend`: of the target."""
    target = GPUTarget(backend, arch, warp_size(arch))
    return triton.compile(source(name), target=target, options=KERNELS[name][3])
