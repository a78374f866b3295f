"""The code of a kernel does not grow with its tile: loops stay loops."""

from __future__ import annotations

import functools
import re
import struct
from typing import Any, NamedTuple

import pytest
import triton
import triton.language as tl
from running import empty
from triton.language import TRITON_MAX_TENSOR_NUMEL

from triton_porting_kit.compiler import ISA_LEVELS


class Growth(NamedTuple):
    """Two tiles, and how many times the machine code and the lines of the loops the large one may take."""

    small: tuple[int, int]
    large: tuple[int, int]
    code: float
    lines: float


GROWTHS = [Growth((32, 32), (128, 256), 2.0, 1.2), Growth((64, 64), (128, 512), 1.5, 1.1)]


@triton.jit
def vector_add(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M * N + tl.arange(0, M * N)
    x = tl.load(X + i, mask=i < n)
    tl.store(O + i, x + tl.load(Y + i, mask=i < n), mask=i < n)


@triton.jit
def softmax(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * n + tl.arange(0, N)[None, :]
    wanted = tl.arange(0, N)[None, :] < n
    x = tl.load(X + at, mask=wanted, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 1)[:, None])
    tl.store(O + at, e / tl.sum(e, 1)[:, None], mask=wanted)


@triton.jit
def matmul(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    m, k, c = tl.arange(0, M), tl.arange(0, 32), tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, n, 32):
        x = tl.load(X + m[:, None] * n + (start + k)[None, :], mask=(start + k)[None, :] < n, other=0.0)
        y = tl.load(Y + (start + k)[:, None] * N + c[None, :], mask=(start + k)[:, None] < n, other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(O + m[:, None] * N + c[None, :], acc)


@triton.jit
def layer_norm(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    c = tl.arange(0, N)
    at = tl.arange(0, M)[:, None] * n + c[None, :]
    wanted = c[None, :] < n
    x = tl.load(X + at, mask=wanted, other=0.0)
    centred = tl.where(wanted, x - (tl.sum(x, 1) / n)[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 1) / n + 1e-5)
    weight = tl.load(Y + c, mask=c < n)
    tl.store(O + at, centred * scale[:, None] * weight[None, :], mask=wanted)


@triton.jit
def transposed_copy(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    r, c = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(X + r[:, None] * n + c[None, :], mask=c[None, :] < n)
    tl.store(O + c[:, None] * M + r[None, :], tl.trans(x), mask=c[:, None] < n)


@triton.jit
def scan(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(O + at, tl.cumsum(tl.load(X + at), 1))


@triton.jit
def sort(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    # Rows of 32 in both tiles: what is sorted takes more steps, whatever the code, the longer it is.
    at = tl.arange(0, M * N // 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(O + at, tl.sort(tl.load(X + at), 1))


@triton.jit
def float8_round_trip(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(X + at).to(tl.float8e4nv).to(tl.float8e5).to(tl.float32)
    tl.store(O + at, x)


@triton.jit
def scaled_matmul(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    m, k, c, g = tl.arange(0, M), tl.arange(0, 64), tl.arange(0, N), tl.arange(0, 2)
    left, right = X.to(tl.pointer_type(tl.uint8)), Y.to(tl.pointer_type(tl.uint8))
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, n, 64):
        x = tl.load(left + m[:, None] * n + (start + k)[None, :])
        y = tl.load(right + (start // 2 + tl.arange(0, 32))[:, None] * N + c[None, :])
        sx = tl.load(left + m[:, None] * n + (start // 32 + g)[None, :])
        sy = tl.load(right + c[:, None] * n + (start // 32 + g)[None, :])
        acc = tl.dot_scaled(x, sx, "e4m3", y, sy, "e2m1", acc)
    tl.store(O + m[:, None] * N + c[None, :], acc)


@triton.jit
def columns_scan(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(O + at, tl.cumsum(tl.load(X + at), 0, reverse=True))


@triton.jit
def permuted(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M * N)
    x = tl.reshape(tl.load(X + i), (4, M // 4, 2, N // 8, 4))
    tl.store(O + i, tl.reshape(tl.permute(x, (4, 2, 0, 3, 1)), (M * N,)))


@triton.jit
def joined(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    a, b = tl.split(tl.reshape(tl.load(X + tl.arange(0, M * N)), (M * N // 2, 2)))
    tl.store(O + tl.arange(0, 2 * M * N), tl.interleave(tl.interleave(b, a), tl.cat(a, b, can_reorder=True)))


@triton.jit
def flipped(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    # Rows of 32 in both tiles: the front end unrolls over the bits of an index.
    at = tl.arange(0, M * N // 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(O + at, tl.flip(tl.load(X + at), 1))


@triton.jit
def largest(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M * N // 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    to = tl.arange(0, M * N // 32)[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(O + to, tl.topk(tl.load(X + at), 8, 1))


@triton.jit
def picked(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(O + at, tl.gather(tl.load(X + at), (at * 7) % M, 0))


@triton.jit
def counted(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(X + tl.arange(0, M * N)).to(tl.int32)
    tl.store(O + tl.arange(0, 32), tl.histogram(x, 32, mask=x < n))
    tl.atomic_add(O + x % 32, 1.0)


@triton.jit
def steps(x, y):
    while x > y:
        x = x / 2
    return x


@triton.jit
def mapped(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(O + at, tl.map_elementwise(steps, tl.load(X + at), tl.load(Y + at)))


KERNELS = [
    vector_add,
    softmax,
    matmul,
    layer_norm,
    transposed_copy,
    scan,
    float8_round_trip,
    scaled_matmul,
    columns_scan,
    sort,
    permuted,
    joined,
    flipped,
    largest,
    picked,
    counted,
    mapped,
]


def text_bytes(binary: bytes) -> int:
    """Bytes of executable sections in a 64-bit little-endian ELF object."""
    (sections,) = struct.unpack_from("<Q", binary, 40)
    entry_size, count = struct.unpack_from("<HH", binary, 58)
    total = 0
    for index in range(count):
        _, _, flags, _, _, size = struct.unpack_from("<IIQQQQ", binary, sections + index * entry_size)
        executable = 4
        total += size if flags & executable else 0
    return total


@functools.cache
def sizes(kernel: Any, rows: int, columns: int, options: tuple[tuple[str, str], ...]) -> tuple[int, int]:
    """Bytes of machine code, lines of the loops artefact."""
    array = empty(1, "fp32")
    compiled = kernel.warmup(array, array, array, 200, M=rows, N=columns, grid=(1,), **dict(options))
    return text_bytes(compiled.asm["obj"]), compiled.asm["loops"].count("\n")


def grown(kernel: Any, growth: Growth) -> list[float]:
    """How many times the code and the lines of the small tile the large one takes.

    With AVX2, a product has blocks of 24 columns, and of 16 in the rest. A tile of 32 columns has only the second kind,
    so that it is compared with AVX-512.
    """
    widened = kernel is matmul and growth.small == (32, 32)
    options = tuple(ISA_LEVELS["avx512"].options().items()) if widened else ()
    small, large = sizes(kernel, *growth.small, options), sizes(kernel, *growth.large, options)
    assert min(*small, *large) > 0
    return [after / before for before, after in zip(small, large, strict=True)]


@pytest.mark.parametrize("growth", GROWTHS, ids=["from 32x32", "from 64x64"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_machine_code_does_not_grow_with_the_tile(kernel: Any, growth: Growth) -> None:
    assert grown(kernel, growth)[0] <= growth.code


@pytest.mark.parametrize("growth", GROWTHS, ids=["from 32x32", "from 64x64"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_loops_do_not_grow_with_the_tile(kernel: Any, growth: Growth) -> None:
    assert grown(kernel, growth)[1] <= growth.lines


@triton.jit
def sorted_whole(X, Y, O, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M * N)
    tl.store(O + i, tl.flip(tl.sort(tl.load(X + i)), 0))


SCRATCH = 6
"""The largest tile that Triton allows may take this many times its size of scratch."""


@pytest.mark.parametrize(
    "kernel", [joined, permuted, mapped, sorted_whole], ids=lambda kernel: kernel.__name__
)
def test_largest_tile(kernel: Any) -> None:
    rows, columns = 1024, TRITON_MAX_TENSOR_NUMEL // 1024
    if kernel is joined:
        columns //= 2
    array = empty(1, "fp32")
    compiled = kernel.warmup(array, array, array, 200, M=rows, N=columns, grid=(1,))
    symbol = re.search(r"__scratch_bytes\(dense<\[(\d+), \d+\]>", compiled.asm["loops"])
    assert symbol is not None
    assert int(symbol[1]) <= SCRATCH * 4 * TRITON_MAX_TENSOR_NUMEL
    assert compiled.asm["loops"].count("\n") < 20_000
