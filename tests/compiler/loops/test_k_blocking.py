"""Loops of dots that look as if their sums, or the rows of A, could wait for later iterations, and some that can.

What is multiplied several iterations at a time, and what of A is read where it lies, is counted; NumPy does one iteration after
the other. The numbers are whole and small: every order of adding them up gives the same, every other mistake shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from poisoned import Poisoned, targets

from triton_porting_kit.compiler.loops.matmul import k_blocking
from triton_porting_kit.compiler.loops.matmul.panels import Panel
from triton_porting_kit.compiler.loops.matmul.products import Elements

Array = np.ndarray[Any, Any]
S, ITERATIONS = 16, 5
AWAY = S * S * ITERATIONS
"""The element of A that the kernel begins at."""


@triton.jit
def summed(A, B, C, D, start, iterations, pitch, period, FORM: tl.constexpr, S: tl.constexpr):
    i, j = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    total = tl.zeros((S, S), tl.float64)
    if FORM == "begins elsewhere":
        total = tl.load(D + i * S + j)
    other = tl.full((S, S), 2.0, tl.float64)
    rows = (i % period) if FORM == "wrapped rows" else i
    a_at, b_at = A + start + rows * pitch + j, B + i * S + j
    ahead = tl.load(a_at)
    offset = 0
    for t in range(iterations):
        if FORM == "offset by the iteration":
            a = tl.load(A + start + i * pitch + t * S + j)
        elif FORM == "growing steps":
            a = tl.load(A + start + i * pitch + offset + j)
            offset += S * t
        elif FORM == "another pitch":
            a = tl.load(A + start + i * (pitch + t) + t * S + j)
        elif FORM == "another array":
            a = tl.load((A + start if t % 2 == 0 else B) + i * pitch + t * S + j)
        elif FORM == "volatile":
            a = tl.load(a_at, volatile=True)
        elif FORM == "fixed":
            a = ahead
        elif FORM == "of the iteration before":
            a = ahead
            ahead = tl.load(a_at)
        elif FORM == "computed":
            a = tl.load(a_at) * 2 + 1
        elif FORM == "turned":
            a = tl.trans(tl.load(a_at))
        else:
            a = tl.load(a_at)
        b = tl.load(b_at)
        if FORM == "under a condition":
            if t % 2 == 0:
                total = tl.dot(a, b, total, input_precision="ieee", out_dtype=tl.float64)
        elif FORM == "in turns":
            total, other = tl.dot(a, b, other, input_precision="ieee", out_dtype=tl.float64), total
        elif FORM == "a factor":
            total = tl.dot(a, total, total, input_precision="ieee", out_dtype=tl.float64)
        elif FORM == "from one each time":
            total = tl.dot(
                a, b, tl.full((S, S), 1.0, tl.float64), input_precision="ieee", out_dtype=tl.float64
            )
        else:
            total = tl.dot(a, b, total, input_precision="ieee", out_dtype=tl.float64)
        if FORM == "carried twice":
            other = total
        if FORM == "added up":
            other += total
        if FORM == "summed up":
            other += tl.sum(total)
        if FORM == "writes the next rows":
            tl.store(a_at + S, a + b)
        if FORM == "writes the last rows":
            tl.store(a_at, b)
        if FORM == "atomic":
            tl.atomic_add(a_at, b)
        if FORM == "barrier":
            tl.debug_barrier()
        a_at += -S if FORM == "backwards" else S
        b_at += S * S
    tl.store(C + i * S + j, total)
    tl.store(D + i * S + j, other)


FORMS = {
    "plain": (1, 1), "begins elsewhere": (1, 1), "offset by the iteration": (1, 0), "wrapped rows": (1, 1),
    "barrier": (1, 1),  # a program is one thread
    # What lies elsewhere in every iteration than K elements behind is packed, or, where no more than one iteration fits, alone.
    "growing steps": (1, 0), "another pitch": (1, 0), "another array": (1, 0), "computed": (1, 0), "turned": (1, 0),
    "backwards": (1, 0),
    # What the loop may change is read in its turn.
    "volatile": (1, 0), "writes the next rows": (1, 0), "writes the last rows": (1, 0), "atomic": (1, 0),
    # What is not the iteration's own, or is seen before the end, does not wait.
    "fixed": (0, 0), "of the iteration before": (0, 0), "under a condition": (0, 0), "in turns": (0, 0), "a factor": (0, 0),
    "from one each time": (0, 0), "carried twice": (0, 0), "added up": (0, 0), "summed up": (0, 0),
}  # fmt: skip
"""By form: how many dots wait for later iterations, and of how many of them A is read where it lies."""


def expected(
    form: str, a: Array, b: Array, d: Array, start: int, pitch: int, iterations: int, period: int
) -> Any:
    """A, C and D after the kernel; `a` and `b` as they lie."""
    a = a.copy()
    i, j = np.arange(S)[:, None], np.arange(S)[None, :]
    total = d.reshape(S, S).copy() if form == "begins elsewhere" else np.zeros((S, S))
    other = np.full((S, S), 2.0)
    rows = i % period if form == "wrapped rows" else i
    ahead = a[start + rows * pitch + j]
    offset = 0
    for t in range(iterations):
        by = -t if form == "backwards" else t
        at = start + rows * pitch + by * S + j
        left, right = a[at], b[t * S * S + i * S + j]
        if form == "growing steps":
            left = a[start + i * pitch + offset + j]
            offset += S * t
        elif form == "another pitch":
            left = a[start + i * (pitch + t) + t * S + j]
        elif form == "another array" and t % 2:
            left = b[i * pitch + t * S + j]
        elif form == "fixed":
            left = ahead
        elif form == "of the iteration before":
            left, ahead = ahead, left
        elif form == "computed":
            left = left * 2 + 1
        elif form == "turned":
            left = left.T
        if form == "under a condition":
            total = total + (left @ right if t % 2 == 0 else 0)
        elif form == "in turns":
            total, other = other + left @ right, total
        elif form == "a factor":
            total = total + left @ total
        elif form == "from one each time":
            total = 1 + left @ right
        else:
            total = total + left @ right
        if form == "carried twice":
            other = total
        if form == "added up":
            other = other + total
        if form == "summed up":
            other = other + total.sum()
        if form == "writes the next rows":
            a[at + S] = left + right
        if form == "writes the last rows":
            a[at] = right
        if form == "atomic":
            np.add.at(a, at, right)
    return {"A": a, "C": total.ravel(), "D": other.ravel()}


def compiled(
    monkeypatch: pytest.MonkeyPatch, kernel: Any, signature: dict[str, str], target: str, **constexprs: Any
) -> tuple[Poisoned, list[Panel]]:
    """A kernel, and the dots of it that wait."""
    found: list[Panel] = []
    plan = k_blocking.plan

    def noted(*arguments: Any) -> list[Panel]:
        panels = plan(*arguments)
        found.extend(panels)
        return panels

    monkeypatch.setattr(k_blocking, "plan", noted)
    return Poisoned(kernel, signature, targets()[target], **constexprs), found


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("form", FORMS)
def test_which_dots_wait(monkeypatch: pytest.MonkeyPatch, form: str, target: str) -> None:
    signature = dict.fromkeys("ABCD", "*fp64") | dict.fromkeys(
        ("start", "iterations", "pitch", "period"), "i32"
    )
    kernel, panels = compiled(monkeypatch, summed, signature, target, FORM=form, S=S)
    assert (len(panels), sum(panel.in_place for panel in panels)) == FORMS[form]
    random = np.random.default_rng(7)
    writes = form in ("writes the next rows", "writes the last rows", "atomic")
    for iterations in (0, 1, 2, ITERATIONS):
        for pitch in (S * (ITERATIONS + 1), 0, 3, -24) if not writes else (S * (ITERATIONS + 1),):
            a = random.integers(-2, 3, 4 * AWAY).astype(np.float64)
            b = random.integers(-2, 3, S * S * ITERATIONS).astype(np.float64)
            d = random.integers(-2, 3, S * S).astype(np.float64)
            given = {
                "start": AWAY,
                "iterations": iterations,
                "pitch": pitch if form != "another array" else S,
                "period": 5,
            }
            found = kernel(A=a, B=b, C=np.full(S * S, 9.0), D=d, **given)
            wanted = expected(form, a, b, d, AWAY, given["pitch"], iterations, 5)
            for name, values in wanted.items():
                np.testing.assert_array_equal(found[name], values, err_msg=f"{name} {given}")


@triton.jit
def nested(A, B, C, outer, inner, A_BY: tl.constexpr, APART: tl.constexpr, S: tl.constexpr):
    i, j = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    total = tl.zeros((S, S), tl.float64)
    a_at, b_at = A + i * (S * outer * inner) + j, B + i * S + j
    for x in range(0, outer * S, S):
        if A_BY == "inner":
            a_at = A + i * (S * outer * inner) + j
        sums = total
        if APART:
            sums = tl.zeros((S, S), tl.float64)
        for y in range(0, inner * S, S):
            if A_BY == "outer index":
                a = tl.load(a_at + x)
            elif A_BY == "inner index":
                a = tl.load(a_at + y)
            else:
                a = tl.load(a_at)
            b = tl.load(b_at)
            sums = tl.dot(a, b, sums, input_precision="ieee", out_dtype=tl.float64)
            if A_BY == "inner" or A_BY == "both":
                a_at += S
            b_at += S * S
        if APART:
            sums = total + 2 * sums
        total = sums
        if A_BY == "outer":
            a_at += S
    tl.store(C + i * S + j, total)


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("apart", [False, True], ids=["one sum", "a sum for each"])
@pytest.mark.parametrize(
    ("by", "in_place"), [("outer", 0), ("inner", 1), ("both", 1), ("outer index", 0), ("inner index", 1)]
)
def test_rows_that_another_loop_moves(
    monkeypatch: pytest.MonkeyPatch, by: str, in_place: int, apart: bool, target: str
) -> None:
    """Rows of A that only the outer loop moves are the same in all iterations of the inner one."""
    signature = dict.fromkeys("ABC", "*fp64") | {"outer": "i32", "inner": "i32"}
    kernel, panels = compiled(monkeypatch, nested, signature, target, A_BY=by, APART=apart, S=S)
    assert (len(panels), sum(panel.in_place for panel in panels)) == (1, in_place)
    random = np.random.default_rng(5)
    for outer, inner in ((0, 3), (1, 1), (1, 4), (3, 1), (2, 3), (3, 5), (4, 0)):
        columns = outer * inner
        a = random.integers(-2, 3, (S, max(columns, 1) * S)).astype(np.float64)
        b = random.integers(-2, 3, (max(columns, 1), S, S)).astype(np.float64)
        total = np.zeros((S, S))
        for step in range(columns):
            at = {"outer": step // inner, "inner": step % inner, "both": step}[by.split()[0]]
            total += (2 if apart else 1) * a[:, at * S : at * S + S] @ b[step]
        found = kernel(A=a.ravel(), B=b.ravel(), C=np.full(S * S, 9.0), outer=outer, inner=inner)["C"]
        np.testing.assert_array_equal(found.reshape(S, S), total, err_msg=f"{outer} x {inner}")


@triton.jit
def indexed(A, B, C, k, parts, FORM: tl.constexpr, S: tl.constexpr):
    i, j = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    total = tl.zeros((S, S), tl.float64)
    if FORM == "index":
        for start in range(0, k, S):
            a, b = tl.load(A + i * k + start + j), tl.load(B + (start + i) * S + j)
            total = tl.dot(a, b, total, input_precision="ieee", out_dtype=tl.float64)
    elif FORM == "descriptor":
        at = tl.make_tensor_descriptor(A, [S, k], [k, 1], [S, S])
        bt = tl.make_tensor_descriptor(B, [k, S], [S, 1], [S, S])
        for start in range(0, k, S):
            a, b = at.load([0, start]), bt.load([start, 0])
            total = tl.dot(a, b, total, input_precision="ieee", out_dtype=tl.float64)
    else:
        count = parts
        if FORM != "tiles of an argument":
            count = tl.cdiv(k, S if FORM == "tiles" else S // 2) // (1 if FORM == "tiles" else 2)
        for tile in range(count):
            start = tile * S
            a, b = tl.load(A + i * k + start + j), tl.load(B + (start + i) * S + j)
            total = tl.dot(a, b, total, input_precision="ieee", out_dtype=tl.float64)
    tl.store(C + i * S + j, total)


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize(
    ("form", "in_place"),
    [("index", 1), ("descriptor", 1), ("tiles", 1), ("tiles of an argument", 0), ("halves of tiles", 0)],
)
def test_rows_at_the_index_of_a_loop(
    monkeypatch: pytest.MonkeyPatch, form: str, in_place: int, target: str
) -> None:
    """They are read in place unless the product of index and tile could wrap around in 32 bits."""
    signature = dict.fromkeys("ABC", "*fp64") | {"k": "i32", "parts": "i32"}
    kernel, panels = compiled(monkeypatch, indexed, signature, target, FORM=form, S=S)
    assert (len(panels), sum(panel.in_place for panel in panels)) == (1, in_place)
    random = np.random.default_rng(5)
    for tiles in (0, 1, 2, 7):
        k = tiles * S
        a = random.integers(-2, 3, (S, max(k, 1))).astype(np.float64)
        b = random.integers(-2, 3, (max(k, 1), S)).astype(np.float64)
        found = kernel(A=a.ravel(), B=b.ravel(), C=np.full(S * S, 9.0), k=k, parts=tiles)["C"]
        np.testing.assert_array_equal(found.reshape(S, S), a[:, :k] @ b[:k], err_msg=str(k))


@triton.jit
def rounded(A, B, C, iterations, S: tl.constexpr):
    i, j = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    total = tl.full((S, S), 2048.0, tl.float16)
    a_at, b_at = A + i * (S * iterations) + j, B + i * S + j
    for _ in range(iterations):
        total = tl.dot(tl.load(a_at), tl.load(b_at), total, out_dtype=tl.float16)
        a_at += S
        b_at += S * S
    tl.store(C + i * S + j, total)


@pytest.mark.parametrize("target", targets())
def test_narrow_sums_are_rounded_every_iteration(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """Behind 2048 the next number of half precision is 2050: one more makes no difference, however often."""
    signature = dict.fromkeys("ABC", "*fp16") | {"iterations": "i32"}
    kernel, panels = compiled(monkeypatch, rounded, signature, target, S=S)
    a = np.tile(np.eye(S, dtype=np.float16), ITERATIONS)
    b = np.ones((S * ITERATIONS, S), np.float16)
    found = kernel(
        A=a.view(np.int16), B=b.view(np.int16), C=np.zeros(S * S, np.int16), iterations=ITERATIONS
    )["C"]
    np.testing.assert_array_equal(found.view(np.float16), np.full(S * S, 2048.0, np.float16))
    assert panels == []


@triton.jit
def widened(A, B, C, k, pitch, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A product whose last iterations are masked: A has `k` columns."""
    program = tl.program_id(0)
    i, j, step = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    a_at, b_at = A + (program * M + i) * pitch + step[None, :], B + step[:, None] * N + j
    for start in range(0, k, K):
        a = tl.load(a_at, mask=step[None, :] < k - start, other=0.0)
        b = tl.load(b_at, mask=step[:, None] < k - start, other=0.0)
        total = tl.dot(a, b, total)
        a_at += K
        b_at += K * N
    tl.store(C + (program * M + i) * N + j, total)


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("n", [16, 128, 256])
@pytest.mark.parametrize("element", ["fp16", "bf16"])
def test_halves_are_widened_where_they_lie(
    monkeypatch: pytest.MonkeyPatch, element: str, n: int, target: str
) -> None:
    """Where there are few strips of B. Numbers are whole, so what is stored over A before it is read shows."""
    monkeypatch.setattr(k_blocking, "product_for", lambda target, left, right, shape, work: Elements(work))
    signature = dict.fromkeys("AB", f"*{element}") | {"C": "*fp32", "k": "i32", "pitch": "i32"}
    m, step, programs = 32, 32, 2
    kernel, panels = compiled(monkeypatch, widened, signature, target, M=m, N=n, K=step)
    (panel,) = panels
    chosen = targets()[target]
    few = n // panel.block.strip <= k_blocking.MOST_STRIPS
    whole = {"fp16": "f16", "bf16": "bf16"}[element]
    assert panel.in_place == bool(panel.raw)
    assert panel.raw == (whole if few and (element == "bf16" or chosen.converts_f16) else "")
    random = np.random.default_rng(11)
    for k in (0, 5, step, 7 * step, 7 * step + 3, 20 * step - 1):
        pitch = k + 3
        a = random.integers(-2, 3, (programs * m, pitch)).astype(np.float32)
        b = random.integers(-2, 3, (max(k, 1), n)).astype(np.float32)
        held = [
            x.astype(np.float16).view(np.uint16)
            if element == "fp16"
            else (x.view(np.uint32) >> 16).astype(np.uint16)
            for x in (a, b)
        ]
        c = np.full(programs * m * n, 9.0, np.float32)
        found = kernel(programs, A=held[0].ravel(), B=held[1].ravel(), C=c, k=k, pitch=pitch)["C"]
        np.testing.assert_array_equal(found.reshape(-1, n), a[:, :k] @ b[:k], err_msg=str(k))
