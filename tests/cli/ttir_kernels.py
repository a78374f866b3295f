"""Kernels whose TTIR `tests/cli/ttir` holds as four releases of Triton print it.

    python tests/cli/ttir_kernels.py FOLDER

writes the texts of the installed release to FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).parents[1] / "compiler"))
from ttir_source import ttir_module


@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    inside = at < n
    tl.store(o + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


@triton.jit
def softmax(x, o, n, B: tl.constexpr):
    at = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * n + at, at < n, other=float("-inf"))
    power = tl.exp(row - tl.max(row, 0))
    tl.store(o + tl.program_id(0) * n + at, power / tl.sum(power, 0), at < n)


@triton.jit
def product(a, b, c, K, N: tl.constexpr, B: tl.constexpr):
    m, n, k = tl.arange(0, B), tl.arange(0, N), tl.arange(0, B)
    total = tl.zeros((B, N), tl.float32)
    for start in range(0, K, B):
        x = tl.load(a + m[:, None] * K + start + k[None, :])
        y = tl.load(b + (start + k[:, None]) * N + n[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + m[:, None] * N + n[None, :], total)


@triton.jit
def described(x, o, M, N, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [B, B])
    target = tl.make_tensor_descriptor(o, [M, N], [N, 1], [B, B])
    tl.device_assert(M > 0, "no rows")
    target.store([0, 0], tl.cumsum(source.load([0, 0]), 1))


@triton.jit
def counted(x, o, B: tl.constexpr):
    at = tl.arange(0, B)
    found = tl.histogram(tl.load(x + at), 16)
    tl.atomic_add(o + tl.arange(0, 16), found)
    tl.atomic_cas(o, 0, 1)
    while tl.load(o) < 4:
        tl.atomic_xchg(o, 4)


CASES = {
    "add": (add, {"x": "*fp32", "y": "*fp32", "o": "*fp32", "n": "i32"}, {"B": 128}),
    "softmax": (softmax, {"x": "*fp32", "o": "*fp32", "n": "i32"}, {"B": 256}),
    "product": (product, {"a": "*fp16", "b": "*fp16", "c": "*fp32", "K": "i32"}, {"N": 32, "B": 16}),
    "described": (described, {"x": "*fp32", "o": "*fp32", "M": "i32", "N": "i32"}, {"B": 16}),
    "counted": (counted, {"x": "*i32", "o": "*i32"}, {"B": 64}),
}
"""Kernel, types and constants, by name."""


def text(name: str) -> str:
    """The kernel's TTIR as Triton prints it, without the folder of this file."""
    kernel, signature, constexprs = CASES[name]
    module, _context = ttir_module(kernel, signature, constexprs)
    return str(module).replace(f"{Path(__file__).parent}/", "")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        (folder / f"{case}.ttir").write_text(text(case))
