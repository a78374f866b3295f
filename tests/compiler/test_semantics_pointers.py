"""Pointers as values end to end: tensors of them moved, chosen, carried, and passed between functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import assert_same, empty, get, make_kernel, put

I = np.arange(16, dtype=np.int32)
SQUARES = I * I % 8
OTHER = I + 50

#: Between `i = tl.arange(0, 16)` and the store of r: pointers into A, which holds I, and B, which holds OTHER.
CASES: dict[str, tuple[str, Any]] = {
    "joined": ("r = tl.load(tl.join(A + i, B + i)).reshape(32)", np.stack([I, OTHER], 1).ravel()),
    "split": ("p, q = tl.split(tl.reshape(A + i, (8, 2)))\n    r = tl.load(p) * 100 + tl.load(q)", I[::2] * 100 + I[1::2]),
    "interleaved": ("r = tl.load(tl.interleave(A + i, B + i))", np.stack([I, OTHER], 1).ravel()),
    "concatenated": ("r = tl.load(tl.cat(A + i, B + i, can_reorder=True))", np.concatenate([I, OTHER])),
    "gathered": ("r = tl.load(tl.gather(A + i, 15 - i, 0))", I[::-1]),
    "transposed": ("r = tl.load(tl.trans(tl.reshape(A + i, (2, 8)))).reshape(16)", I.reshape(2, 8).T.ravel()),
    "sorted_addresses": ("r = tl.load(tl.sort((A + 15 - i).to(tl.int64)).to(tl.pointer_type(tl.int32)))", I),
    "one_element": ("p = (A + tl.arange(0, 1)).item()\n    r = tl.load(p + 3) + i", I + 3),
    "where": ("r = tl.load(tl.where(i % 2 == 0, A + i, B + 15))", np.where(I % 2 == 0, I, 65)),
    "integers": ("r = tl.load((A + i).to(tl.int64).to(tl.pointer_type(tl.int32)))", I),
    "scalar_integer": ("r = tl.load(A.to(tl.int64).to(tl.pointer_type(tl.int32)) + 3) + i", I + 3),
    "other_element_type": ("r = tl.load((A + i).to(tl.pointer_type(tl.int16), bitcast=True)).to(tl.int32)", I),
    "constant_steps_of_a_choice": (
        """p, q = A + i, A
    for j in range(n):
        if j % 2 == 0:
            p, q = B + i, B
        else:
            p, q = p + 1, q + 1
    r = tl.load(p, mask=i < 8, other=0) + tl.load(q)""",
        np.where(I < 8, I + 51, 0) + 51,
    ),
    "gathered_and_moved": (
        """p, r = A + i * i % 8, i * 0
    for _ in range(n):
        r += tl.load(p)
        p += 2
    r = r * 100 + tl.load(p)""",
        (4 * SQUARES + 12) * 100 + SQUARES + 8,
    ),
    "gathered_and_moved_differently": (
        """p, r = A + i * i % 8 + 9, i * 0
    for j in range(n):
        for k in range(j):
            r = r * 2 + tl.load(p)
            p -= k
            p += 1 - n % 3
    r += tl.load(p)""",
        sum((SQUARES + 9 - back) << (5 - step) for step, back in enumerate((0, 0, 0, 1, 1, 2))) + SQUARES + 5,
    ),
    "gathered_and_moved_apart": (
        """p, r = A + i * i % 8, i * 0
    for _ in range(n):
        r += tl.load(p)
        p += i % 2
    r = r * 100 + tl.load(p)""",
        (4 * SQUARES + 6 * (I % 2)) * 100 + SQUARES + 4 * (I % 2),
    ),
    "exchanged": (
        """p, q, r = A + i, B + tl.full((16,), 3, tl.int32), i * 0
    for _ in range(n - 1):
        r = r * 100 + tl.load(p)
        p, q = q, p""",
        I * 10001 + 5300,
    ),
    "tuple": ("p = (A, B)\n    r = tl.load(p[0] + i) + tl.load(p[1] + i)", I + OTHER),
    "scalar_choice": ("p = A if n > 2 else B\n    r = tl.load(p + i)", I),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_pointers(name: str) -> None:
    lines, expected = CASES[name]
    source = (
        f"def pointers(A, B, O, n):\n    i = tl.arange(0, 16)\n    {lines}\n"
        f"    tl.store(O + tl.arange(0, {len(expected)}), r)\n"
    )
    out = empty(len(expected), "i32")
    make_kernel(source)[(1,)](put(I, "i32"), put(OTHER, "i32"), out, 4)
    assert_same(get(out), expected)


@triton.jit
def ahead_or_other(p, q, n):
    if n > 2:
        tl.debug_barrier()
        return p + n
    tl.debug_barrier()
    q = q + 1
    return q


@triton.jit(noinline=True)
def places_apart(A, B, n):
    i = tl.arange(0, 16)
    if n > 2:
        return A + i
    return B + i % 4


#: Tensors of pointers into and out of functions that stay functions, and past early returns.
CALLS: dict[str, str] = {
    "early_return_of_the_callee": "p = early(A + i, B + i, n)",
    "called_in_a_loop": "p = A + i\n    for _ in range(1):\n        p = early(A + i, B + i, n)",
    "not_inlined": "p = apart(A, B, n)",
    "early_return_of_the_kernel": """p = A + i * 0 + n
    if n > 2:
        p = A + i
        if n > 100:
            return
    else:
        if n < -100:
            return""",
}


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("name", CALLS)
def test_tensors_of_pointers_cross_functions(name: str, n: int) -> None:
    source = f"""def callers(A, B, O, n):
    i = tl.arange(0, 16)
    {CALLS[name]}
    tl.store(O + i, tl.load(p, mask=i < 8, other=-5))
"""
    out = empty(16, "i32")
    kernel = make_kernel(source, early=ahead_or_other, apart=places_apart)
    kernel[(1,)](put(I, "i32"), put(OTHER, "i32"), out, n)
    expected = {
        "early_return_of_the_callee": I + n if n > 2 else OTHER + 1,
        "called_in_a_loop": I + n if n > 2 else OTHER + 1,
        "not_inlined": I if n > 2 else OTHER[I % 4],
        "early_return_of_the_kernel": I if n > 2 else I * 0 + n,
    }[name]
    assert_same(get(out), np.where(I < 8, expected, -5))
