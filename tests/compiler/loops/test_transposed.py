"""Operands that lie in memory across the way they are multiplied: whole, cut off, and on several processors."""

from __future__ import annotations

import re

import native_functions
import numpy as np
import pytest
import triton
import triton.language as tl
from running import KINDS, Array, empty, from_float64, get, put

from triton_porting_kit.compiler import CpuTarget

SHAPES = [(16, 16, 32), (16, 64, 64), (32, 16, 128), (64, 32, 16), (4, 8, 8)]
TYPES = {"fp32": "fp32", "fp16": "fp32", "bf16": "fp32", "i8": "i32", "fp64": "fp64"}
SIGNATURE = {"A": "*fp32", "B": "*fp32", "C": "*fp32", "columns": "i32", "depth": "i32"}


@triton.jit
def turned(A, B, C, columns, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, MASKED: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(A + m[:, None] * K + k[None, :])
    places = B + n[:, None] * K + k[None, :]
    if MASKED:
        b = tl.load(places, mask=(n[:, None] < columns) & (k[None, :] < depth), other=0)
    else:
        b = tl.load(places)
    product = tl.dot(a, tl.trans(b.to(a.dtype)), out_dtype=C.dtype.element_ty, input_precision="ieee")
    tl.store(C + m[:, None] * N + n[None, :], product)


@triton.jit
def turned_twice(A, B, C, columns, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(A + k[:, None] * M + m[None, :])
    b = tl.load(B + k[:, None] * N + n[None, :])
    tl.store(C + m[:, None] * N + n[None, :], tl.dot(tl.trans(a), b, input_precision="ieee"))


def numbers(shape: tuple[int, int], kind: str, seed: int) -> Array:
    """Such that all sums are exact."""
    values = np.random.default_rng(seed).integers(-3, 4, shape)
    return values.astype(np.int8) if kind == "i8" else from_float64(values.astype(np.float64), KINDS[kind])


@pytest.mark.parametrize("cut", [(0, 0), (3, 0), (0, 5), (1, 1)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", TYPES)
def test_the_right_factor_lies_by_columns(
    kind: str, shape: tuple[int, int, int], cut: tuple[int, int]
) -> None:
    m, n, k = shape
    columns, depth = n - cut[0], k - cut[1]
    a, b = numbers((m, k), kind, 1), numbers((n, k), kind, 2)
    out = empty((m, n), TYPES[kind])
    turned[(1,)](put(a, kind), put(b, kind), out, columns, depth, M=m, N=n, K=k, MASKED=cut != (0, 0))
    seen = b.astype(np.float64)
    seen[columns:] = 0
    seen[:, depth:] = 0
    np.testing.assert_array_equal(get(out), a.astype(np.float64) @ seen.T)


@pytest.mark.parametrize("cut", [(0, 0), (3, 0), (0, 5), (1, 1)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["fp32", "fp16", "bf16"])
def test_the_right_factor_is_converted(kind: str, shape: tuple[int, int, int], cut: tuple[int, int]) -> None:
    m, n, k = shape
    columns, depth = n - cut[0], k - cut[1]
    a, b = numbers((m, k), kind, 5), np.random.default_rng(6).integers(-128, 128, (n, k)).astype(np.int8)
    out = empty((m, n), "fp32")
    turned[(1,)](put(a, kind), put(b, "i8"), out, columns, depth, M=m, N=n, K=k, MASKED=cut != (0, 0))
    seen = b.astype(np.float64)
    seen[columns:] = 0
    seen[:, depth:] = 0
    np.testing.assert_array_equal(get(out), get(put(a, kind)).astype(np.float64) @ seen.T)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["fp32", "fp16", "bf16"])
def test_the_left_factor_lies_by_columns(kind: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = numbers((k, m), kind, 3), numbers((k, n), kind, 4)
    out = empty((m, n), "fp32")
    turned_twice[(1,)](put(a, kind), put(b, kind), out, n, k, M=m, N=n, K=k)
    np.testing.assert_array_equal(get(out), a.astype(np.float64).T @ b.astype(np.float64))


def text(kind: str, shape: tuple[int, int, int], target: CpuTarget, *, masked: bool = False) -> str:
    m, n, k = shape
    signature = {**SIGNATURE, "A": f"*{kind}", "B": f"*{kind}", "C": f"*{TYPES[kind]}"}
    loops = native_functions.loops_of(turned, signature, target, M=m, N=n, K=k, MASKED=masked)
    return str(loops.text)


@pytest.mark.parametrize(
    ("cpu", "kind", "shape", "shuffles"),
    [
        ("sapphirerapids", "fp32", (16, 64, 64), 20),
        ("sapphirerapids", "fp16", (16, 64, 64), 72),
        ("sapphirerapids", "bf16", (16, 64, 64), 20),
        ("sapphirerapids", "i8", (16, 64, 64), 20),
        ("znver4", "bf16", (4, 64, 64), 20),
        ("haswell", "fp32", (16, 64, 64), 12),
        ("neoverse-v1", "fp32", (16, 64, 64), 8),
    ],
)
def test_blocks_are_transposed_in_registers(
    cpu: str, kind: str, shape: tuple[int, int, int], shuffles: int
) -> None:
    found = text(kind, shape, CpuTarget.named(cpu))
    # Eight to interleave, and those that put the columns of each block of 128 bits beside each other. Columns of halves
    # are converted two blocks at a time, of which each is taken out.
    assert found.count("vector.shuffle") == shuffles
    assert "gather" not in found


@pytest.mark.parametrize(
    ("kind", "shape", "target"),
    [
        ("fp32", (16, 8, 64), CpuTarget.named("sapphirerapids")),
        ("fp64", (16, 64, 64), CpuTarget.named("sapphirerapids")),
        ("fp32", (16, 64, 64), CpuTarget.portable(64)),
    ],
    ids=["columns", "wide", "c++"],
)
def test_what_makes_no_blocks_is_read_lane_by_lane(
    kind: str, shape: tuple[int, int, int], target: CpuTarget
) -> None:
    found = text(kind, shape, target)
    assert "vector.shuffle" not in found
    assert "gather" in found


@pytest.mark.parametrize(("cpu", "kind", "lanes"), [("sapphirerapids", "bf16", 16), ("haswell", "fp32", 8)])
def test_whole_vectors_are_converted(cpu: str, kind: str, lanes: int) -> None:
    signature = {**SIGNATURE, "A": f"*{kind}", "B": "*i8"}
    found = native_functions.loops_of(turned, signature, CpuTarget.named(cpu), M=16, N=64, K=64, MASKED=False)
    widths = {int(lanes) for lanes in re.findall(r"arith.sitofp .* : vector<(\d+)xi8>", str(found.text))}
    assert widths == {lanes}


def test_both_ways_of_a_masked_tile_are_transposed() -> None:
    found = text("fp32", (16, 64, 64), CpuTarget.named("sapphirerapids"), masked=True)
    assert found.count("vector.shuffle") == 2 * 20
    assert "masked.load" in found
    assert "gather" not in found
