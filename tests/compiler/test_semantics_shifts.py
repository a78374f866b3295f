"""Shifts by any amount end to end: from the width of the type on, nothing but a sign is left."""

from __future__ import annotations

import numpy as np
import pytest
from running import INTEGERS, Array, Kind, assert_same, empty, get, make_kernel, put, samples, wrap

TILE = """def shifts(A, S, L, R, N: tl.constexpr):
    i = tl.arange(0, N)
    a, s = tl.load(A + i), tl.load(S + i)
    tl.store(L + i, a << s)
    tl.store(R + i, a >> s)
"""
SCALAR = """def scalar_shifts(A, S, L, R, N):
    for i in range(N):
        a, s = tl.load(A + i), tl.load(S + i)
        tl.store(L + i, a << s)
        tl.store(R + i, a >> s)
"""


def operands(kind: Kind) -> tuple[Array, Array]:
    """Values, and amounts below, at and above the width."""
    most = min(127, kind.highest)
    amounts = [0, 1, kind.bits - 1, kind.bits, kind.bits + 1, min(2 * kind.bits, most), most, 3]
    return samples(kind, 32), np.array(amounts * 4).astype(kind.host)


@pytest.mark.parametrize("form", ["tile", "scalar"])
@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_shift_by_any_amount(kind: Kind, form: str) -> None:
    values, amounts = operands(kind)
    left, right = empty(32, kind), empty(32, kind)
    make_kernel(TILE if form == "tile" else SCALAR)[(1,)](
        put(values, kind), put(amounts, kind), left, right, N=32
    )
    pairs = [(int(a), int(s)) for a, s in zip(values, amounts, strict=True)]
    assert_same(get(left), np.array([wrap(a << s, kind) for a, s in pairs], kind.host))
    assert_same(get(right), np.array([a >> s for a, s in pairs], kind.host))
