"""Kernels whose launches tests look at, and their code objects."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


@triton.jit
def matmul(a, b, c, BLOCK: tl.constexpr):
    """One block, through LDS."""
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@triton.jit
def scalars(out, a, b, c, d, e, f, g, h):
    """Scalars of many sizes, so that the block has gaps."""
    tl.store(out, a.to(tl.float64) + b + c + d + e + f + g + h)


@triton.jit
def every_type(out, flag, small, large, real, group, long, nothing, one, LAST: tl.constexpr):
    """Arguments of many types; a tuple among them, and some that are constants."""
    tl.store(out, small + large + group[0] + long + one + LAST + flag)
    tl.store(group[2], real.to(tl.int64) + group[1].to(tl.int64))


@triton.jit
def takes(values):
    """Anything."""


@triton.jit
def move(source, out):
    """A block of a tensor descriptor."""
    i = tl.arange(0, 16)
    tl.store(out + i[:, None] * 64 + i[None, :], source.load([0, 16]))


def compile_for_hip(
    kernel: Any, signature: dict[str, str], constants: dict[str, Any], arch: str, **options: Any
) -> Any:
    """What Triton's own AMD backend makes, without a GPU."""
    warp = 64 if arch.startswith("gfx9") else 32
    types = {**signature, **dict.fromkeys(constants, "constexpr")}
    source = ASTSource(kernel, types, {(kernel.arg_names.index(name),): v for name, v in constants.items()})
    return triton.compile(source, target=GPUTarget("hip", arch, warp), options=options)


ADD = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}
SCALARS = {
    "out": "*fp64", "a": "i8", "b": "i64", "c": "i1", "d": "fp32", "e": "u16", "f": "fp64", "g": "i32", "h": "u8",
}  # fmt: skip


class CodeObjects:
    """Code objects of these kernels, each compiled once."""

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}

    def compiled(self, name: str, arch: str = "gfx942") -> Any:
        """What Triton made of a kernel: ``asm["hsaco"]``, ``metadata``."""
        if (name, arch) not in self._made:
            kernel, signature, constants = {
                "add": (add, ADD, {"BLOCK": 1024}),
                "scalars": (scalars, SCALARS, {}),
                "matmul": (matmul, {"a": "*fp16", "b": "*fp16", "c": "*fp32"}, {"BLOCK": 64}),
            }[name]
            self._made[name, arch] = compile_for_hip(kernel, signature, constants, arch)
        return self._made[name, arch]

    def add(self, arch: str = "gfx942") -> bytes:
        return bytes(self.compiled("add", arch).asm["hsaco"])

    def scalars(self, arch: str = "gfx942") -> bytes:
        return bytes(self.compiled("scalars", arch).asm["hsaco"])
