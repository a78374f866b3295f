"""Products whose left operand is gathered row by row: which are read where they lie, and in which loops they wait.

Rows that are masked have addresses between pages that must not be touched. The numbers are whole and small: every order of
adding them up gives the same, every other mistake shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from poisoned import Poisoned, targets

from triton_porting_kit.compiler.loops.matmul import k_blocking, row_tables
from triton_porting_kit.compiler.loops.matmul.instructions import product_for
from triton_porting_kit.compiler.loops.matmul.panels import Panel
from triton_porting_kit.compiler.loops.matmul.products import VectorProduct

Array = np.ndarray[Any, Any]
S, PROGRAMS, INNER, OUTER, PITCH = 16, 3, 3, 4, 80
SIGNATURE = dict.fromkeys("ABCD", "*fp64") | {
    "ROWS": "*i32", "inner": "i32", "outer": "i32", "width": "i32"
}  # fmt: skip


@triton.jit
def gathered(
    A, B, C, D, ROWS, inner, outer, width, FORM: tl.constexpr, S: tl.constexpr, PITCH: tl.constexpr,
    SUMS: tl.constexpr,
):  # fmt: skip
    """Adds up products of rows of A and a part of B that differs from one inner iteration to the next."""
    program = tl.program_id(0)
    i, k, j = tl.arange(0, S), tl.arange(0, S), tl.arange(0, S)
    row = tl.load(ROWS + program * S + i)
    there = row >= 0
    total = tl.zeros((S, S), SUMS)
    seen = 0.0
    for u in range(outer):
        steps = u if FORM == "as many as before" else inner
        for t in range(steps):
            column = t * S + k
            at = row[:, None] * PITCH + u + column[None, :]
            mask = there[:, None] & (column < width)[None, :]
            if FORM == "rows alone":
                a = tl.load(A + at, mask=there[:, None])
            elif FORM == "one by one":
                a = tl.load(A + at, mask=there[:, None] & (column[None, :] < width - i[:, None]), other=0.0)
            elif FORM == "filled":
                a = tl.load(A + at, mask=mask, other=3.0)
            elif FORM == "filled with minus zero":
                a = tl.load(A + at, mask=mask, other=-0.0)
            elif FORM == "every other":
                a = tl.load(A + at + column[None, :], mask=mask, other=0.0)
            elif FORM == "computed":
                a = tl.load(A + at, mask=mask, other=0.0) * 2
            elif FORM == "volatile":
                a = tl.load(A + at, mask=mask, other=0.0, volatile=True)
            else:
                a = tl.load(A + at, mask=mask, other=0.0)
            b = tl.load(B + (t * S + k[:, None]) * S + j[None, :])
            total = tl.dot(a, b, total, input_precision="ieee", out_dtype=SUMS)
            if FORM == "written inside":
                tl.store(D, 1.0)
        if FORM == "written between":
            tl.store(D, 1.0)
        if FORM == "changed between":
            total *= 2
        if FORM == "seen between":
            seen += tl.sum(total).to(tl.float32)
    tl.store(C + (program * S + i)[:, None] * S + j[None, :], total + seen)


FORMS = {
    # How many products read rows where they lie, if these are whole; and how many loops their operands wait in.
    "plain": (1, 2), "rows alone": (1, 2),
    "one by one": (0, 2), "filled": (0, 2), "filled with minus zero": (0, 2), "every other": (0, 2), "computed": (0, 2),
    "volatile": (0, 1), "written inside": (1, 1), "written between": (1, 1), "changed between": (1, 1),
    "seen between": (1, 1), "as many as before": (1, 1),
}  # fmt: skip


def expected(form: str, a: Array, b: Array, rows: Array, inner: int, outer: int, width: int) -> Array:
    """C after the kernel."""
    found = []
    for program in range(PROGRAMS):
        total, seen = np.zeros((S, S)), 0.0
        for u in range(outer):
            for t in range(u if form == "as many as before" else inner):
                left = np.full((S, S), 3.0 if form == "filled" else 0.0)
                for i, row in enumerate(rows[program * S : program * S + S]):
                    for k, column in enumerate(range(t * S, t * S + S)):
                        limit = {"rows alone": PITCH, "one by one": width - i}.get(form, width)
                        if row >= 0 and column < limit:
                            left[i, k] = a[row * PITCH + u + column * (2 if form == "every other" else 1)]
                total = total + left * (2 if form == "computed" else 1) @ b[t * S * S :][: S * S].reshape(
                    S, S
                )
            if form == "changed between":
                total = total * 2
            if form == "seen between":
                seen += total.sum()
        found.append(total + seen)
    return np.stack(found).ravel()


def noted(monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[bool]]:
    """In how many loops operands wait, and whether rows are always packed, of what is compiled from now on."""
    loops: list[int] = []
    always: list[bool] = []
    panel, packs = k_blocking._panel, row_tables.RowTable.packs

    def counted(lowering: Any, nest: Sequence[Any], dot: Any) -> Panel | None:
        loops.append(len(nest))
        return panel(lowering, nest, dot)

    def asked(table: Any, lowering: Any, a: Any) -> Any:
        found = packs(table, lowering, a)
        always.append(found.constant == 1)
        return found

    monkeypatch.setattr(k_blocking, "_panel", counted)
    monkeypatch.setattr(row_tables.RowTable, "packs", asked)
    return loops, always


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("form", FORMS)
def test_which_rows_are_read_where_they_lie(monkeypatch: pytest.MonkeyPatch, form: str, target: str) -> None:
    loops, always = noted(monkeypatch)
    kernel = Poisoned(gathered, SIGNATURE, targets()[target], FORM=form, S=S, PITCH=PITCH, SUMS=tl.float64)
    in_place, nest = FORMS[form]
    assert loops == [nest]
    assert always.count(False) == (in_place if target != "portable" else 0)
    random = np.random.default_rng(7)
    a = random.integers(-2, 3, 20 * PITCH).astype(np.float64)
    b = random.integers(-2, 3, S * S * INNER).astype(np.float64)
    rows = random.integers(0, 18, PROGRAMS * S).astype(np.int32)
    rows[::5] = -100_000
    for inner, outer in ((INNER, OUTER), (1, OUTER), (0, OUTER), (INNER, 0), (1, 1)):
        for width in (INNER * S, INNER * S - 3, S, 0):
            if form == "as many as before" and outer > INNER + 1:
                continue
            found = kernel(
                PROGRAMS, A=a, B=b, C=np.full(PROGRAMS * S * S, 9.0), D=np.zeros(1), ROWS=rows, inner=inner, outer=outer, width=width
            )  # fmt: skip
            np.testing.assert_array_equal(
                found["C"],
                expected(form, a, b, rows, inner, outer, width),
                err_msg=f"{inner} {outer} {width}",
            )


@pytest.mark.parametrize("size", [32, 128])
@pytest.mark.parametrize("element", ["i8", "bf16", "fp32"])
def test_rows_of_pairs_and_quads(monkeypatch: pytest.MonkeyPatch, element: str, size: int) -> None:
    """Also where each iteration fills a panel alone. Tiles of AMX are read at one pitch, so rows are packed for them."""
    random = np.random.default_rng(5)
    pitch = size * INNER + OUTER
    a = random.integers(-2, 3, 20 * pitch).astype(np.float32)
    b = random.integers(-2, 3, size * size * INNER).astype(np.float32)
    rows = random.integers(0, 19, PROGRAMS * size).astype(np.int32)
    rows[::5] = -100_000
    held = {
        "i8": lambda values: values.astype(np.int8),
        "bf16": lambda values: (values.view(np.uint32) >> 16).astype(np.uint16),
        "fp32": lambda values: values,
    }[element]
    sums, result = (tl.int32, np.int32) if element == "i8" else (tl.float32, np.float32)
    c = "*i32" if element == "i8" else "*fp32"
    types = {"i8": "i8", "bf16": "bf16", "fp32": "f32", "i32": "i32"}
    signature = SIGNATURE | {"A": f"*{element}", "B": f"*{element}", "C": c, "D": c}
    lies = np.maximum(rows, 0)[:, None] * pitch + np.arange(size * INNER + OUTER)
    left = np.where(rows[:, None] >= 0, a[lies], 0)
    right = b.reshape(size * INNER, size)
    for name, target in targets().items():
        if name == "portable":
            continue
        for features in ("", "-amx-tile"):
            _, always = noted(monkeypatch)
            chosen = target.with_features(features)
            constants = {"FORM": "plain", "S": size, "PITCH": pitch, "SUMS": sums}
            kernel = Poisoned(gathered, signature, chosen, **constants)
            product = product_for(chosen, types[element], types[element], (size,) * 3, types[c[1:]])
            reads = isinstance(product, VectorProduct) and product.element == types[element]
            assert always == ([False] if reads else [])
            for width in (size * INNER, size + 3):
                zeros = np.zeros(PROGRAMS * size * size, result)
                given = {"ROWS": rows, "inner": INNER, "outer": OUTER, "width": width}
                found = kernel(PROGRAMS, A=held(a), B=held(b), C=zeros, D=zeros[:1], **given)
                inside = np.arange(size * INNER) < width
                wanted = sum(left[:, u : u + size * INNER] * inside @ right for u in range(OUTER))
                np.testing.assert_array_equal(found["C"].reshape(-1, size), wanted)
            monkeypatch.undo()


@triton.jit
def convolved(
    X, W, Y, height, width, KERNEL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):
    """A convolution over one image whose channels are one tile."""
    places, cols, ks = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    column, row = places % width, places // width
    total = tl.zeros((M, N), dtype=tl.float32)
    for i in range(KERNEL):
        for j in range(KERNEL):
            y, x = row + i - KERNEL // 2, column + j - KERNEL // 2
            there = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            a = tl.load(X + ((y * width + x) * K)[:, None] + ks[None, :], mask=there[:, None], other=0.0)
            b = tl.load(W + ((i * KERNEL + j) * K + ks)[:, None] * N + cols[None, :])
            total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(Y + places[:, None] * N + cols[None, :], total, mask=(row < height)[:, None])


@pytest.mark.parametrize("target", targets())
def test_a_convolution_waits_in_all_its_loops(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    loops, always = noted(monkeypatch)
    signature = dict.fromkeys("XWY", "*fp32") | {"height": "i32", "width": "i32"}
    m, n, k, size = 32, 32, 16, 3
    kernel = Poisoned(convolved, signature, targets()[target], KERNEL=size, M=m, N=n, K=k)
    assert loops == [2]
    assert always == ([False] if target != "portable" else [])
    height, width = 7, 9
    random = np.random.default_rng(3)
    x = random.integers(-2, 3, (height, width, k)).astype(np.float32)
    w = random.integers(-2, 3, (size, size, k, n)).astype(np.float32)
    wanted = np.zeros((height, width, n), np.float32)
    padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    for i in range(size):
        for j in range(size):
            wanted += padded[i : i + height, j : j + width] @ w[i, j]
    found = kernel(
        -(-height * width // m), X=x.ravel(), W=w.ravel(), Y=np.full(wanted.size, 9.0, np.float32), height=height, width=width
    )  # fmt: skip
    np.testing.assert_array_equal(found["Y"].reshape(wanted.shape), wanted)
