"""Products of the next program that start in the last iteration of this one's loop, products that are turned, and masks
below a diagonal, on the chip n1, by NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from chip_backend import VirtualChip, put, running_on
from chip_kernels import attention
from ttir_source import ttir_text

from triton_porting_kit import chips
from triton_porting_kit.compiler import npu_pipeline
from triton_porting_kit.compiler.tiles.passes import TILE_PASSES

D, BM, BN, LENGTHS = 64, 32, 64, 4


@pytest.fixture(scope="module")
def device() -> Iterator[VirtualChip]:
    with running_on("n1") as opened:
        yield opened


def halves(*shape: int, seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


@triton.jit
def of_other_lengths(
    q, k, v, out, first, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, LENGTHS: tl.constexpr
):
    """Program i has (first + i) % LENGTHS iterations: of neighbours, any one may have none, one, or more."""
    program = tl.program_id(0)
    m, n, d = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    query = tl.load(q + program * BM * D + m[:, None] * D + d[None, :])
    total = tl.zeros((BM,), tl.float32)
    sums = tl.zeros((BM, D), tl.float32)
    for start in range(0, ((first + program) & (LENGTHS - 1)) * BN, BN):
        at = (start + n)[:, None] * D + d[None, :]
        weights = tl.exp2(tl.dot(query, tl.trans(tl.load(k + at))) * 0.1)
        total += tl.sum(weights, 1)
        sums = tl.dot(weights.to(tl.float16), tl.load(v + at), sums)
    tl.store(out + program * BM * D + m[:, None] * D + d[None, :], sums + total[:, None])


@triton.jit
def of_a_product(a, b, out, count, SIDE: tl.constexpr):
    """A loop adds products of a product that is computed before it."""
    side = tl.arange(0, SIDE)
    at = side[:, None] * SIDE + side[None, :]
    x, y = tl.load(a + at), tl.load(b + at)
    first = tl.dot(x, y, input_precision="ieee")
    sums = tl.full((SIDE, SIDE), 1, tl.float32)
    for _ in range(count):
        sums = tl.dot(first, y, sums, input_precision="ieee")
    tl.store(out + at, sums)


def test_products_of_a_product_are_added_up(device: VirtualChip) -> None:
    """The operand of the second product changes when the first one is raised."""
    a, b = (np.random.default_rng(seed).integers(-4, 5, (16, 16)).astype(np.float32) for seed in (5, 6))
    out = put(device, np.full(a.shape, -77, np.float32))
    compiled = of_a_product[(1,)](put(device, a), put(device, b), out, 3, SIDE=16)
    np.testing.assert_array_equal(out.numpy(), 1 + 3 * (a @ b @ b))
    sums = [line for line in compiled.asm["tiles"].splitlines() if 'memory = "sums"' in line]
    assert len(sums) == 2  # the loop's sums stay in their buffer


@pytest.mark.parametrize("first", range(LENGTHS))
@pytest.mark.parametrize("programs", [5, 24, 41])
def test_programs_begin_before_others_of_any_length_end(
    device: VirtualChip, programs: int, first: int
) -> None:
    q = halves(programs, BM, D, seed=0)
    k, v = (halves(LENGTHS * BN, D, seed=seed) for seed in (1, 2))
    out = put(device, np.full(q.shape, -77, np.float32))
    compiled = of_other_lengths[(programs,)](
        *(put(device, x) for x in (q, k, v)), out, first, D=D, BM=BM, BN=BN, LENGTHS=LENGTHS
    )
    expected = np.zeros(q.shape, np.float32)
    for program in range(programs):
        keys = (first + program) % LENGTHS * BN
        weights = np.exp2(q[program].astype(np.float32) @ k[:keys].astype(np.float32).T * 0.1)
        sums = weights.astype(np.float16).astype(np.float32) @ v[:keys].astype(np.float32)
        expected[program] = sums + weights.sum(1)[:, None]
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-2, atol=2e-2)
    # Of the first product there are three: before the loop, for the next iteration, and for the next program.
    assert compiled.asm["tiles"].count('"tpk.npu_matrix"') == 4
    # The result is stored in the next program's loop, or, if that has not begun, behind its own.
    assert compiled.asm["tiles"].count('direction = "store"') == 2


@triton.jit
def with_row_sums(q, k, v, out, rows, N, D: tl.constexpr, B: tl.constexpr, WHOLE: tl.constexpr):
    """Two results; with WHOLE, the second is a sum of both directions, which only the program itself computes."""
    program = tl.program_id(0)
    i, d = tl.arange(0, B), tl.arange(0, D)
    query = tl.load(q + program * B * D + i[:, None] * D + d[None, :])
    total = tl.zeros((B,), tl.float32)
    sums = tl.zeros((B, D), tl.float32)
    for start in range(0, N, B):
        at = (start + i)[:, None] * D + d[None, :]
        weights = tl.dot(query, tl.trans(tl.load(k + at)))
        total += tl.sum(weights, 1)
        sums = tl.dot(weights.to(tl.float16), tl.load(v + at), sums)
    tl.store(out + program * B * D + i[:, None] * D + d[None, :], sums)
    if WHOLE:
        tl.store(rows + program * B + i, tl.sum(sums, 1))
    else:
        tl.store(rows + program * B + i, total * 2, mask=i < N)


@pytest.mark.parametrize(("whole", "places"), [(False, 2), (True, 1)])
@pytest.mark.parametrize("iterations", [0, 1, 3])
def test_a_program_with_two_results_ends_in_the_next_one_s_loop(
    device: VirtualChip, iterations: int, whole: bool, places: int
) -> None:
    programs, size, d = 19, 32, 16
    q, k = small(programs, size, d, seed=0) / 4, small(96, d, seed=1) / 4
    out = put(device, np.full(q.shape, -77, np.float32))
    rows = put(device, np.full((programs, size), -77, np.float32))
    n = iterations * size
    compiled = with_row_sums[(programs,)](
        put(device, q), put(device, k), put(device, k), out, rows, n, D=d, B=size, WHOLE=whole
    )
    keys = k[:n].astype(np.float32)
    weights = q.astype(np.float32) @ keys.T
    expected = weights.astype(np.float16).astype(np.float32) @ keys
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-3, atol=1e-2)
    if whole:
        np.testing.assert_allclose(rows.numpy(), expected.sum(2), rtol=1e-3, atol=5e-2)
    else:
        wanted = 2 * weights.sum(2)
        wanted[:, n:] = -77
        np.testing.assert_allclose(rows.numpy(), wanted, rtol=1e-3, atol=1e-2)
    assert compiled.asm["tiles"].count('direction = "store"') == 2 * places


def placed(**given: Any) -> str:
    pointers = dict.fromkeys(("q", "k", "v", "out"), "*fp16")
    signature = {**pointers, "scale": "fp32", "N": "i32"}
    source = ttir_text(attention, signature, D=64, BM=32, BN=64, CAUSAL=True)
    stages = npu_pipeline(chips.load("n1"), **given).after("ttir").until("placed")
    return str(stages.run(source, {})["placed"])


def test_reductions_of_a_product_s_rows_become_reductions_of_columns() -> None:
    assert placed().count("{axis = 0 : i32}") == 2
    rows = placed(passes=tuple(name for name in TILE_PASSES if name != "turning"))
    assert rows.count("{axis = 1 : i32}") == 2


@triton.jit
def both_reduced(a, b, out, rows, columns, T: tl.constexpr):
    i = tl.arange(0, T)
    at = i[:, None] * T + i[None, :]
    product = tl.dot(tl.load(a + at), tl.load(b + at))
    tl.store(rows + i, tl.max(product, 1))
    tl.store(columns + i, tl.max(product, 0))
    tl.store(out + at, product)


@triton.jit
def rows_of_a_chain(a, b, bias, out, T: tl.constexpr):
    """Turned, with all that a tile can be made of anew: splats, broadcasts along both dimensions, positions, constants."""
    i = tl.arange(0, T)
    at = i[:, None] * T + i[None, :]
    product = tl.dot(tl.load(a + at), tl.load(b + at)) * tl.load(bias + i)[None, :] - i[:, None]
    product = tl.where(i[None, :] * 2 > i[:, None], product, 1.5)
    tl.store(out + i, tl.sum(product, 1))
    tl.store(out + T + i, tl.min(product, 1))


def small(*shape: int, seed: int) -> np.ndarray[Any, Any]:
    """Integers, whose products and sums are exact."""
    return np.random.default_rng(seed).integers(-8, 8, shape).astype(np.float16)


def test_a_product_that_is_stored_or_reduced_both_ways_stays(device: VirtualChip) -> None:
    a, b = small(32, 32, seed=0), small(32, 32, seed=1)
    out, rows, columns = (put(device, np.zeros(shape, np.float32)) for shape in ((32, 32), 32, 32))
    both_reduced[(1,)](put(device, a), put(device, b), out, rows, columns, T=32)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    for found, wanted in ((out, expected), (rows, expected.max(1)), (columns, expected.max(0))):
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_a_chain_is_turned_with_its_product(device: VirtualChip) -> None:
    a, b, bias = small(32, 32, seed=0), small(32, 32, seed=1), small(32, seed=2)
    out = put(device, np.zeros((2, 32), np.float32))
    compiled = rows_of_a_chain[(1,)](*(put(device, x) for x in (a, b, bias)), out, T=32)
    i = np.arange(32)
    product = a.astype(np.float32) @ b.astype(np.float32) * bias[None, :] - i[:, None]
    product = np.where(i[None, :] * 2 > i[:, None], product, 1.5)
    np.testing.assert_array_equal(out.numpy(), [product.sum(1), product.min(1)])
    assert "{axis = 0 : i32}" in compiled.asm["tiles"]


@triton.jit
def below_a_diagonal(
    x, out, rows, columns, first, second, B: tl.constexpr, C: tl.constexpr, STRICT: tl.constexpr
):
    i, j = tl.arange(0, B), tl.arange(0, C)
    at = i[:, None] * C + j[None, :]
    value = tl.load(x + at)
    if STRICT:
        mask = (first + i)[:, None] > (second + j)[None, :]
    else:
        mask = (second + j)[None, :] <= (first + i)[:, None]
    value = tl.where(mask, value, -1.0)
    tl.store(out + at, value)
    tl.store(rows + i, tl.sum(value, 1))
    tl.store(columns + j, tl.max(value, 0))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("first", "second"),
    [(0, 0), (0, 64), (64, 0), (500, 0), (0, 500), (33, 20), (-7, -40), (2**31 - 8, 0), (0, 2**31 - 8)],
)
def test_a_mask_below_a_diagonal(device: VirtualChip, first: int, second: int, strict: bool) -> None:
    b, c = 32, 64
    x = small(b, c, seed=0).astype(np.float32)
    out, rows, columns = (put(device, np.zeros(shape, np.float32)) for shape in ((b, c), b, c))
    below_a_diagonal[(1,)](put(device, x), out, rows, columns, first, second, B=b, C=c, STRICT=strict)
    i, j = (
        (start + np.arange(n)).astype(np.int64).astype(np.int32) for start, n in ((first, b), (second, c))
    )
    mask = i[:, None] > j[None, :] if strict else i[:, None] >= j[None, :]
    expected = np.where(mask, x, -1)
    for found, wanted in ((out, expected), (rows, expected.sum(1)), (columns, expected.max(0))):
        np.testing.assert_array_equal(found.numpy(), wanted)
