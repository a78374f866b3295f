"""What becomes of products: results turned or used again, loops, split K, attention; by float64 or exact integers.

The table of operations has products by themselves: types, shapes, turned operands, batches, accumulators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import KINDS, Array, Kind, assert_same, empty, from_float64, get, make_kernel, put
from test_semantics_shapes import load_of

#: Inputs, accumulator.
TYPES = [
    ("fp32", "fp32"),
    ("fp16", "fp32"),
    ("fp16", "fp16"),
    ("bf16", "fp32"),
    ("fp64", "fp64"),
    ("i8", "i32"),
]
TYPE_IDS = ["-".join(pair) for pair in TYPES]


def operand(shape: tuple[int, ...], kind: Kind, seed: int) -> Array:
    random = np.random.default_rng(seed)
    if kind.is_integer:
        return random.integers(kind.lowest, kind.highest, shape, dtype=kind.host, endpoint=True)
    return from_float64(random.standard_normal(shape), kind)


def check(
    actual: Array, a: Array, b: Array, c: Array | float, kind: Kind, accumulator: Kind, roundings: int = 1
) -> None:
    """a @ b + c: integers exactly, floats within the rounding of K + 1 sums in the accumulator's type (f32 for f16)."""
    if kind.is_integer:
        exact = a.astype(np.int64) @ b.astype(np.int64) + np.asarray(c, np.int64)
        assert_same(actual, exact.astype(np.int32))
        return
    wide = [np.asarray(v, np.float64) for v in (a, b, c)]
    exact = wide[0] @ wide[1] + wide[2]
    scale = np.abs(wide[0]) @ np.abs(wide[1]) + np.abs(wide[2])
    working = 53 if accumulator.name == "fp64" else 24
    # Where the accumulator is rounded between products, partial sums are larger than the result may be.
    stored = np.abs(exact) if roundings == 1 else roundings * scale
    allowed = (a.shape[-1] + 2) * 2.0**-working * scale + stored * 2.0**-accumulator.precision + 1e-300
    assert np.all(np.abs(actual.astype(np.float64) - exact) <= allowed)


def out_type(accumulator: str) -> str:
    # Triton 3.6 wants the type said where there is an accumulator, even if there is no other.
    return "" if accumulator == "fp32" else f", out_dtype={KINDS[accumulator].language}"


@pytest.mark.parametrize("types", TYPES, ids=TYPE_IDS)
def test_transposed_result(types: tuple[str, str]) -> None:
    m, n, k = 16, 32, 8
    kind, accumulator = (KINDS[name] for name in types)
    a, b = operand((m, k), kind, 3), operand((k, n), kind, 4)
    source = (
        f"def turned(A, B, O):\n    a = tl.load(A + {load_of((m, k))})\n    b = tl.load(B + {load_of((k, n))})\n"
        f"    tl.store(O + {load_of((n, m))}, tl.trans(tl.dot(a, b{out_type(types[1])})))\n"
    )
    out = empty((n, m), accumulator)
    make_kernel(source)[(1,)](put(a, kind), put(b, kind), out)
    check(get(out).T, a, b, 0, kind, accumulator)


@triton.jit
def chained_kernel(A, B, C, O, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a, b, c = tl.load(A + i), tl.load(B + i), tl.load(C + i)
    ab = tl.dot(a, b)
    # The first product is needed after the second one accumulates on it.
    tl.store(O + i, tl.dot(ab * 0.5, c, acc=ab) - ab)


def test_chained_products_keep_what_is_still_needed() -> None:
    n = 32
    a, b, c = (operand((n, n), KINDS["fp32"], seed) for seed in (8, 9, 10))
    out = empty((n, n), "fp32")
    chained_kernel[(1,)](*(put(v, "fp32") for v in (a, b, c)), out, N=n)
    wide = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(get(out), wide * 0.5 @ c.astype(np.float64), atol=1e-3)


@triton.jit
def reshaped_accumulator_kernel(A, O, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(A + i) * 2
    flat = tl.reshape(x, (N * N // 4, 4))
    acc = tl.reshape(flat, (N, N))
    acc = tl.dot(x, x, acc=acc)
    tl.store(O + i, acc)
    tl.store(O + N * N + i, x)


def test_product_spares_the_source_of_a_reshaped_accumulator() -> None:
    n = 16
    a = operand((n, n), KINDS["fp32"], 11)
    out = empty((2, n, n), "fp32")
    reshaped_accumulator_kernel[(1,)](put(a, "fp32"), out, N=n)
    x = a.astype(np.float64) * 2
    np.testing.assert_allclose(get(out)[0], x @ x + x, atol=1e-4)
    assert_same(get(out)[1], a * 2)


MATMUL = """def matmul(A, B, C, M, N, K, sam, sak, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_at = A + rm[:, None] * sam + rk[None, :] * sak
    b_at = B + rk[:, None] * sbk + rn[None, :] * sbn
    acc = tl.zeros((BM, BN), ACC)
    for k in range(0, K, BK):
        a = tl.load(a_at, mask=(rm[:, None] < M) & (rk[None, :] + k < K), other=0)
        b = tl.load(b_at, mask=(rk[:, None] + k < K) & (rn[None, :] < N), other=0)
        acc = tl.dot(a, b, acc=acc, out_dtype=ACC)
        a_at += BK * sak
        b_at += BK * sbk
    tl.store(C + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))
"""


@pytest.mark.parametrize("types", TYPES, ids=TYPE_IDS)
@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
def test_product_in_a_loop(types: tuple[str, str], columns: bool) -> None:
    m, n, k = 37, 45, 50
    kind, accumulator = (KINDS[name] for name in types)
    a, b = operand((m, k), kind, 12), operand((k, n), kind, 13)
    strides = (1, m, 1, k) if columns else (k, 1, n, 1)
    out = empty((m, n), accumulator)
    stored = (a.T, b.T) if columns else (a, b)
    make_kernel(MATMUL)[(3, 3)](
        *(put(v, kind) for v in stored),
        out,
        m,
        n,
        k,
        *strides,
        BM=16,
        BN=16,
        BK=16,
        ACC=getattr(tl, accumulator.device),
    )
    check(get(out), a, b, 0, kind, accumulator, roundings=5)


SPLIT_K = """def split_k(A, B, C, N: tl.constexpr, K, BK: tl.constexpr):
    i, k = tl.arange(0, N), tl.program_id(0) * BK + tl.arange(0, BK)
    a = tl.load(A + i[:, None] * K + k[None, :], mask=k[None, :] < K, other=0)
    b = tl.load(B + k[:, None] * N + i[None, :], mask=k[:, None] < K, other=0)
    tl.atomic_add(C + i[:, None] * N + i[None, :], tl.dot(a, b))
"""


@pytest.mark.parametrize("types", [("fp32", "fp32"), ("bf16", "fp32"), ("i8", "i32")], ids=lambda t: t[0])
def test_split_k_with_atomics(types: tuple[str, str]) -> None:
    n, k = 16, 500
    kind, accumulator = (KINDS[name] for name in types)
    a, b = operand((n, k), kind, 14), operand((k, n), kind, 15)
    out = empty((n, n), accumulator, 0)
    make_kernel(SPLIT_K)[(16,)](put(a, kind), put(b, kind), out, N=n, K=k, BK=32)
    check(get(out), a, b, 0, kind, accumulator)


@triton.jit
def attention_kernel(
    Q, K, V, O, n, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr
):
    """Flash attention forward: one head, rows of queries [BM * pid, ...), keys in blocks of BN."""
    start = tl.program_id(0) * BM
    rows, d = start + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(Q + rows[:, None] * D + d[None, :], mask=rows[:, None] < n, other=0.0)
    highest = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = tl.minimum(start + BM, n) if CAUSAL else n
    for first in range(0, end, BN):
        columns = first + tl.arange(0, BN)
        k = tl.load(K + columns[None, :] * D + d[:, None], mask=columns[None, :] < n, other=0.0)
        v = tl.load(V + columns[:, None] * D + d[None, :], mask=columns[:, None] < n, other=0.0)
        scores = tl.dot(q, k) * scale
        wanted = columns[None, :] < n
        if CAUSAL:
            wanted = wanted & (columns[None, :] <= rows[:, None])
        scores = tl.where(wanted, scores, float("-inf"))
        higher = tl.maximum(highest, tl.max(scores, 1))
        shrink = tl.exp(highest - higher)
        p = tl.exp(scores - higher[:, None])
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc=acc * shrink[:, None])
        highest = higher
    tl.store(O + rows[:, None] * D + d[None, :], acc / total[:, None], mask=rows[:, None] < n)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("kind", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize(("n", "d"), [(64, 16), (50, 32)])
def test_flash_attention(n: int, d: int, kind: str, causal: bool) -> None:
    q, k, v = (operand((n, d), KINDS[kind], seed) for seed in (16, 17, 18))
    out: Any = empty((n, d), "fp32")
    scale = d**-0.5
    attention_kernel[(-(-n // 16),)](
        *(put(x, kind) for x in (q, k, v)), out, n, scale, BM=16, BN=32, D=d, CAUSAL=causal
    )
    wide = [x.astype(np.float64) for x in (q, k, v)]
    scores = wide[0] @ wide[1].T * scale
    if causal:
        scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
    p = np.exp(scores - scores.max(1, keepdims=True))
    exact = p @ wide[2] / p.sum(1, keepdims=True)
    # The weights p are rounded to the input type; everything else is single precision.
    np.testing.assert_allclose(get(out), exact, atol=2.0 ** -KINDS[kind].precision * 4 + 1e-5)


@triton.jit
def own_accumulator_kernel(X, O, FORM: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(X + i)
    if FORM == "constant":
        y = tl.full((N, N), 1.0, tl.float32)
    elif FORM == "computed":
        y = x * 2
    elif FORM == "product":
        y = tl.dot(x, x, input_precision="ieee")
    elif FORM == "flipped":
        y = tl.flip(x, 1)
    else:
        y = x
    tl.store(O + i, tl.dot(x, y, acc=y, input_precision="ieee"))
    tl.store(O + N * N + i, tl.dot(y, x, acc=y, input_precision="ieee"))
    tl.store(O + 2 * N * N + i, tl.dot(y, y, acc=y, input_precision="ieee"))


@pytest.mark.parametrize("form", ["constant", "computed", "product", "flipped", "loaded"])
def test_a_factor_that_is_also_the_accumulator_is_not_overwritten(form: str) -> None:
    n = 32
    x = (np.arange(n * n) % 3).reshape(n, n).astype(np.float32)
    y = {
        "constant": np.ones_like(x),
        "computed": x * 2,
        "product": x @ x,
        "flipped": x[:, ::-1],
        "loaded": x,
    }[form]
    out = empty((3, n, n), "fp32")
    own_accumulator_kernel[(1,)](put(x, "fp32"), out, form, n)
    assert_same(get(out), np.stack([x @ y + y, y @ x + y, y @ y + y]))
