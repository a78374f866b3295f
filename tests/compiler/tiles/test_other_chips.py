"""The compiler asks of no unit what the chip's description does not say: chips whose units do less than those of n1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from chip_backend import VirtualChip, put, running_on
from other_chips import CHANGES, described
from test_tiles_suite import agreeing

from triton_porting_kit import chips
from triton_porting_kit.compiler.tiles import fetching, rows

PARTS = 384
"""Of the language checks. The one that is run has products of matrices, reductions and programs about products."""


@triton.jit
def boxes(X, Y, OUT, a, b, c, start, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    """A box of `X` within bounds, and one of `Y` that wraps around in its first dimension, both stored transposed."""
    i = tl.arange(0, A)[:, None, None]
    j, k = tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    inside = (i + start < a) & (j < b) & (k < c)
    x = tl.load(X + (i + start) * b * c + j * c + k, mask=inside, other=7)
    y = tl.load(Y + (i + start) % a * B * C + j * C + k)
    at = k * A * B + j * A + i
    tl.store(OUT + at, x, mask=(j < b) & (k < c))
    tl.store(OUT + A * B * C + at, y)


@triton.jit
def products(X, Y, OUT, H: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The products of `H` pairs of matrices, and of the first pair by itself."""
    h, m = tl.arange(0, H)[:, None, None], tl.arange(0, M)[None, :, None]
    n, k = tl.arange(0, N)[None, None, :], tl.arange(0, K)
    x = tl.load(X + h * M * K + m * K + k[None, None, :])
    y = tl.load(Y + h * K * N + k[None, :, None] * N + n)
    tl.store(OUT + h * M * N + m * N + n, tl.dot(x, y))
    row, column = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    first = tl.dot(tl.load(X + row * K + k[None, :]), tl.load(Y + k[:, None] * N + column))
    tl.store(OUT + H * M * N + row * N + column, first)


@triton.jit
def doubled(X, OUT, s, n, M: tl.constexpr, N: tl.constexpr):
    """Tile after tile, in rows that lie `s` elements apart."""
    for number in range(n):
        at = (number * M + tl.arange(0, M)[:, None]) * s + tl.arange(0, N)[None, :]
        tl.store(OUT + at, tl.load(X + at) * 2)


@triton.jit
def rotated(X, OUT, size, start, n, M: tl.constexpr):
    """Tile after tile, to places that wrap around."""
    for number in range(n):
        i = number * M + tl.arange(0, M)
        tl.store(OUT + (i + start) % size, tl.load(X + i) * 2)


KERNELS = (boxes, products, doubled, rotated)


@pytest.fixture(scope="module", params=CHANGES)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return described(request.param, tmp_path_factory.mktemp("chips"))


@pytest.fixture(scope="module")
def device(path: str) -> Iterator[VirtualChip]:
    for kernel in KERNELS:
        kernel.device_caches.clear()  # they are another chip's
    with running_on(path) as opened:
        yield opened
    for kernel in KERNELS:
        kernel.device_caches.clear()


def numbers(*shape: int, kind: Any, seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(kind)


@pytest.mark.parametrize("kind", [np.int8, np.float16, np.float32, np.int64])
@pytest.mark.parametrize(("start", "b", "c"), [(0, 8, 32), (3, 5, 27), (3, 1, 1)])
def test_boxes_are_right(device: VirtualChip, kind: Any, start: int, b: int, c: int) -> None:
    a, shape = 5, (4, 8, 32)
    x, y = numbers(a, b, c, kind=kind, seed=1), numbers(a, 8, 32, kind=kind, seed=2)
    out = put(device, np.full((2, 32, 8, 4), -1, kind))
    compiled = boxes[(1,)](put(device, x), put(device, y), out, a, b, c, start, *shape)
    expected = np.full((2, 4, 8, 32), -1, kind)
    expected[0, :, :b, :c] = 7
    rest = min(4, a - start)
    expected[0, :rest, :b, :c] = x[start : start + rest]
    expected[1] = y[(start + np.arange(4)) % a]
    np.testing.assert_array_equal(out.numpy(), expected.transpose(0, 3, 2, 1))
    size = np.dtype(kind).itemsize
    moved = size in device.description.engines[0].element_bytes
    assert ('direction = "load"' in compiled.asm["placed"]) == moved


@pytest.mark.parametrize("kind", [np.int8, np.float16, np.float32])
@pytest.mark.parametrize(("h", "m", "n", "k"), [(2, 16, 16, 16), (4, 16, 32, 64), (1, 64, 32, 256)])
def test_products_are_right(device: VirtualChip, kind: Any, h: int, m: int, n: int, k: int) -> None:
    x, y = numbers(h, m, k, kind=kind, seed=1), numbers(h, k, n, kind=kind, seed=2)
    sums = np.int32 if kind is np.int8 else np.float32
    out = put(device, np.zeros((h + 1, m, n), sums))
    compiled = products[(1,)](put(device, x), put(device, y), out, h, m, n, k)
    expected = x.astype(np.int64) @ y.astype(np.int64)
    np.testing.assert_array_equal(out.numpy(), np.concatenate([expected, expected[:1]]))
    moved = np.dtype(kind).itemsize in device.description.engines[0].element_bytes
    assert ("tpk.npu_matrix" in compiled.asm["placed"]) == moved


def test_tiles_are_stored_beside_the_next_one(device: VirtualChip) -> None:
    """Also where a tile is stored by a transfer for each row; two arrays of one address are not."""
    x, out = numbers(64, 80, kind=np.float32, seed=1), np.zeros((64, 80), np.float32)
    given, stored = put(device, x), put(device, out)
    compiled = doubled[(1,)](given, stored, 80, 4, 16, 64)
    out[:, :64] = 2 * x[:, :64]
    np.testing.assert_array_equal(stored.numpy(), out)
    buffers = [line for line in compiled.asm["placed"].splitlines() if "npu_buffer" in line]
    assert all("copies" in line for line in buffers)
    doubled[(1,)](given, given, 80, 4, 16, 64)
    np.testing.assert_array_equal(given.numpy()[:, :64], out[:, :64])


@pytest.mark.parametrize(("size", "start"), [(64, 0), (64, 60), (80, 70)])
def test_parts_of_a_tile_are_stored_beside_the_next_one(device: VirtualChip, size: int, start: int) -> None:
    x, out = np.arange(64, dtype=np.float32), np.full(size, -1, np.float32)
    stored = put(device, out)
    compiled = rotated[(1,)](put(device, x), stored, size, start, 4, 16)
    out[(np.arange(64) + start) % size] = 2 * x
    np.testing.assert_array_equal(stored.numpy(), out)
    buffers = [line for line in compiled.asm["placed"].splitlines() if "npu_buffer" in line]
    assert len(buffers) == 2
    assert all("copies" in line for line in buffers)


def test_a_share_of_the_language(path: str) -> None:
    assert agreeing("chip_suite.py", path, 121, PARTS) > 20


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((4, 8), (8, 1), ((32,), (1,))),
        ((4, 8), (16, 1), ((4, 8), (16, 1))),
        ((1, 4, 8), (999, 16, 1), ((4, 8), (16, 1))),
        ((2, 4, 8), (64, 16, 1), ((8, 8), (16, 1))),
        ((2, 4, 8), (128, 8, 1), ((2, 32), (128, 1))),
        ((1, 1), (5, 5), ((1,), (1,))),
    ],
)
def test_dimensions_that_follow_each_other_are_merged(shape: Any, strides: Any, expected: Any) -> None:
    assert fetching.merged(shape, strides) == expected


@pytest.mark.parametrize(
    ("name", "shape", "element", "expected"),
    [
        ("rows", (64, 64), "f32", True),
        ("rows", (64, 2), "f32", False),  # rows of 8 bytes begin off the alignment of 16
        ("planes", (8, 4, 8), "f32", True),
        ("planes", (8, 2, 8), "f64", False),  # offsets bring 16 elements sooner than a transfer starts
        ("planes", (2, 8), "f64", True),
    ],
)
def test_when_rows_pay(name: str, shape: Any, element: str, expected: bool, tmp_path: Path) -> None:
    engine = chips.load(described(name, tmp_path)).engines[0]
    assert rows.pays(shape, element, engine, engine if engine.gather else None) == expected
