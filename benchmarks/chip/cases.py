"""What is timed: a kernel written by hand, Triton's with a few tile sizes, the inputs of both, and NumPy's result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from triton_porting_kit.kernels.softmax import softmax_kernel

from .virtual import tests

Array = np.ndarray[Any, Any]
LOG2_E = 1.4426950408889634


@dataclass(frozen=True)
class Case:
    """One problem. The launches get the arrays on the device, first the inputs and then the result."""

    name: str
    inputs: Callable[[np.random.Generator], Sequence[Array]]
    expected: Callable[..., Array]
    hand: Callable[..., tuple[str, tuple[int, ...], tuple[Any, ...]]]
    """The name of the kernel, its grid, and its arguments."""
    triton: Callable[..., None]
    """Launches Triton's kernel, with one of the `tiles`."""
    tiles: Sequence[Mapping[str, int]]
    multiply_adds: int
    """Of the matrix unit; 0 for kernels without products."""
    bytes: int
    """What has to be read and written."""
    tolerance: float


def product(m: int, n: int, k: int) -> Case:
    """C[m, n] = A[m, k] B[k, n] in fp16."""

    def launch(a: Any, b: Any, c: Any, **tiles: int) -> None:
        programs = -(-m // tiles["BM"]) * -(-n // tiles["BN"])
        tests("chip_kernels").matmul[(programs,)](a, b, c, m, n, k, k, n, n, **tiles)

    return Case(
        name=f"matmul fp16 {m}x{n}x{k}",
        inputs=lambda random: [_halves(random, m, k), _halves(random, k, n)],
        expected=lambda a, b: np.asarray(a.astype(np.float32) @ b.astype(np.float32)),
        hand=lambda a, b, c: ("matmul", (m // 128 * (n // 256),), (a, b, c, m, n, k)),
        triton=launch,
        tiles=[{"BM": 128, "BN": 256, "BK": 64}, {"BM": 128, "BN": 128, "BK": 64}],
        multiply_adds=m * n * k,
        bytes=2 * (m * k + k * n + m * n),
        tolerance=2e-3,
    )


def softmax(rows: int, columns: int) -> Case:
    """Softmax of each row in fp32."""

    def expected(x: Array) -> Array:
        powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        return np.asarray(powers / powers.sum(1, keepdims=True))

    return Case(
        name=f"softmax fp32 {rows}x{columns}",
        inputs=lambda random: [random.standard_normal((rows, columns)).astype(np.float32)],
        expected=expected,
        hand=lambda x, out: ("softmax", (rows,), (x, out, columns)),
        triton=lambda x, out, **tiles: softmax_kernel[(rows,)](x, out, columns, columns, columns, **tiles),
        tiles=[{"BLOCK": columns}],
        multiply_adds=0,
        bytes=8 * rows * columns,
        tolerance=1e-5,
    )


def attention(heads: int, n: int, d: int, causal: bool) -> Case:
    """Forward attention in fp16."""
    scale = d**-0.5 * LOG2_E

    def expected(q: Array, k: Array, v: Array) -> Array:
        scores = np.einsum("hmd,hnd->hmn", q.astype(np.float32), k.astype(np.float32)) * scale
        if causal:
            scores = np.where(np.tri(n)[None] > 0, scores, -np.inf)
        weights = np.exp2(scores - scores.max(-1, keepdims=True))
        return np.asarray(weights / weights.sum(-1, keepdims=True) @ v.astype(np.float32))

    def launch(q: Any, k: Any, v: Any, out: Any, **tiles: int) -> None:
        kernel = tests("chip_kernels").attention
        kernel[(n // tiles["BM"], heads)](q, k, v, out, scale, n, D=d, CAUSAL=causal, **tiles)

    chunks = sum(128 // 64 * (tile + 1) if causal else n // 64 for tile in range(n // 128))
    return Case(
        name=f"attention fp16 {heads}x{n}x{d}{' causal' if causal else ''}",
        inputs=lambda random: [_halves(random, heads, n, d) for _ in range(3)],
        expected=expected,
        hand=lambda *arrays: (f"attention{d}", (n // 128, heads), (*arrays, float(scale), n, int(causal))),
        triton=launch,
        tiles=[{"BM": bm, "BN": bn} for bm in (64, 128) for bn in (64, 128)],
        multiply_adds=heads * chunks * 2 * 128 * 64 * d,
        bytes=8 * heads * n * d,
        tolerance=4e-3,
    )


def _halves(random: np.random.Generator, *shape: int) -> Array:
    return random.standard_normal(shape).astype(np.float16)


QUICK = [
    product(512, 512, 512),
    softmax(512, 1024),
    *(attention(8, 256, d, causal) for d in (64, 128) for causal in (False, True)),
]
WHOLE = [
    product(2048, 2048, 2048),
    product(4096, 1024, 512),
    softmax(4096, 1024),
    *(attention(8, 1024, d, causal) for d in (64, 128) for causal in (False, True)),
]
