"""Products whose right operand is gathered column by column: which are read in transposed blocks, and their results.

Columns that are masked have addresses that must not be touched, and the array ends where the last column does. The
numbers are whole and small, so that every order of adding them up gives the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from poisoned import Poisoned, targets

from triton_porting_kit.compiler import CpuTarget
from triton_porting_kit.compiler.loops.matmul import interleaved, products

Array = np.ndarray[Any, Any]
M, N, K, STEPS, COLUMNS = 16, 32, 32, 3, 24
PITCH = 2 * K


@triton.jit
def scores(
    A, B, C, PLACES, steps, width, FORM: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    SUMS: tl.constexpr,
):  # fmt: skip
    """The sum of products of A by columns of B that lie anywhere, those of `PLACES` in each step."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(A + i[:, None] * K + k[None, :])
    total = tl.zeros((M, N), SUMS)
    for step in range(steps):
        place = tl.load(PLACES + step * N + j)
        there = (place >= 0)[None, :]
        at = place[None, :] * (2 * K) + k[:, None]
        mask = there & (k < width)[:, None]
        if FORM == "whole columns":
            b = tl.load(B + at, mask=there, other=0)
        elif FORM == "one by one":
            b = tl.load(B + at, mask=there & (k[:, None] + j[None, :] < width), other=0)
        elif FORM == "filled":
            b = tl.load(B + at, mask=mask, other=3)
        elif FORM == "every other":
            b = tl.load(B + at + k[:, None], mask=mask, other=0)
        elif FORM == "in parts":
            b = tl.load(B + at + k[:, None] // 4, mask=mask, other=0)
        elif FORM == "volatile":
            b = tl.load(B + at, mask=mask, other=0, volatile=True)
        elif FORM == "turned":
            b = tl.trans(tl.load(B + tl.trans(at), mask=tl.trans(mask), other=0))
        else:
            b = tl.load(B + at, mask=mask, other=0)
        if FORM == "computed":
            b = (b.to(SUMS) * 2).to(b.dtype)
        if FORM == "used again":
            total += tl.sum(b.to(SUMS), axis=0)[None, :]
        total = tl.dot(a, b.to(a.dtype), total, input_precision="ieee", out_dtype=SUMS)
    tl.store(C + i[:, None] * N + j[None, :], total)


FORMS = {
    "plain": True, "whole columns": True, "one by one": True, "filled": True, "computed": True,
    "turned": True,
    "every other": False, "in parts": False, "volatile": False, "used again": False,
}  # fmt: skip
"""By form, whether columns are read in transposed blocks."""

HELD = {
    "i8": lambda values: values.astype(np.int8),
    "bf16": lambda values: (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16),
    "fp32": lambda values: values.astype(np.float32),
}


def expected(form: str, a: Array, b: Array, places: Array, steps: int, width: int) -> Array:
    """C after the kernel."""
    k, j = np.arange(K)[:, None], np.arange(N)[None, :]
    total = np.zeros((M, N))
    for place in places[:steps]:
        limit = {"whole columns": K, "one by one": width - j}.get(form, width)
        there = (place >= 0)[None, :] & (k < limit)
        more = {"every other": k, "in parts": k // 4}.get(form, 0)
        right = np.where(
            there, b[np.maximum(place, 0)[None, :] * PITCH + k + more], 3 if form == "filled" else 0
        )
        right = right * 2 if form == "computed" else right
        total += a @ right + (right.sum(0) if form == "used again" else 0)
    return total


def kinds() -> dict[str, CpuTarget]:
    """All targets, and the host without tiles."""
    tiles = "amx-tile" in targets()["host"].features
    return targets() | ({"without tiles": targets()["host"].with_features("-amx-tile")} if tiles else {})


@pytest.mark.parametrize("target", kinds())
@pytest.mark.parametrize("elements", ["fp32 fp32", "bf16 bf16", "i8 i8", "bf16 i8"])
@pytest.mark.parametrize("form", FORMS)
def test_which_columns_are_read_in_transposed_blocks(
    monkeypatch: pytest.MonkeyPatch, form: str, elements: str, target: str
) -> None:
    answers = []
    gathers = products.gathers_columns
    for module in (products, interleaved):
        monkeypatch.setattr(
            module, "gathers_columns", lambda *given: answers.append(gathers(*given)) or answers[-1]
        )
    left, right = elements.split()
    sums, result = (tl.int32, np.int32) if left == "i8" else (tl.float32, np.float32)
    signature = {"A": f"*{left}", "B": f"*{right}", "C": "*i32" if left == "i8" else "*fp32"} | {
        "PLACES": "*i32", "steps": "i32", "width": "i32"
    }  # fmt: skip
    constants = {"FORM": form, "M": M, "N": N, "K": K, "SUMS": sums}
    kernel = Poisoned(scores, signature, kinds()[target], **constants)
    assert answers  # asked of bytes first, and of what they are converted to
    assert any(answers) == (FORMS[form] and kinds()[target].shuffles)
    random = np.random.default_rng(3)
    a, b = random.integers(-2, 3, (M, K)), random.integers(-2, 3, COLUMNS * PITCH)
    b = b[: b.size - (0 if form in ("every other", "in parts") else K)]  # the last column ends the array
    places = random.integers(0, COLUMNS, (STEPS, N)).astype(np.int32)
    places[:, ::5] = -100_000
    places[:, 1] = COLUMNS - 1
    for steps, width in ((STEPS, K), (STEPS, K - 5), (1, 1), (1, 0), (0, K)):
        zeros = np.zeros(M * N, result)
        found = kernel(
            1, A=HELD[left](a.ravel()), B=HELD[right](b), C=zeros, PLACES=places.ravel(), steps=steps, width=width
        )  # fmt: skip
        wanted = expected(form, a, b, places, steps, width)
        np.testing.assert_array_equal(found["C"].reshape(M, N), wanted, err_msg=f"{steps} {width}")
