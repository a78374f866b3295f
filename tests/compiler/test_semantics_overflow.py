"""Integers that overflow wrap around, in indices, masks and bounds too: against NumPy's integers of the same width."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from running import assert_same, empty, get, make_kernel, put

BLOCK, LENGTH = 64, 256
MIN, MAX = -(2**31), 2**31 - 1
#: A multiple of 16, which Triton tells the compiler, and others; such as wrap around within a tile, and such as do not.
SCALARS = (MIN, MIN + 3, MIN + 63, -1, 0, 5, 2**30, MAX - 70, MAX - 60, MAX)
X = np.arange(LENGTH, dtype=np.int32) + 1000


def _inside(a: Any) -> Any:
    return (a >= 0) & (a < LENGTH)


def _u32(a: Any) -> Any:
    return np.asarray(a, np.int32).view(np.uint32)


def _i64(a: Any) -> Any:
    return np.asarray(a, np.int32).astype(np.int64)


INSIDE = "m = (a >= 0) & (a < 256)"

#: Name: lines that compute a, an index, and m, from lin = tl.arange(0, 64), s, t and p = tl.program_id(0); the same of
#: NumPy's int32; and the values of t.
CASES: dict[str, tuple[str, Any, tuple[int, ...]]] = {
    "difference": ("m = (s - lin) > 1; a = lin", lambda i, s, t, p: (i, s - i > 1), (0,)),
    "block": ("m = (s - (p * 64 + lin)) > t; a = lin", lambda i, s, t, p: (i, s - (p * 64 + i) > t), (MIN, 0, MAX)),
    "sum": ("m = (s + lin) < t; a = lin", lambda i, s, t, p: (i, s + i < t), (200, MAX)),
    "at_least": ("m = (p * 64 + lin + s) >= t; a = lin", lambda i, s, t, p: (i, p * 64 + i + s >= t), (MIN, 0, MAX)),
    "address": (f"a = s + lin; {INSIDE}", lambda i, s, t, p: (s + i, _inside(s + i)), (0,)),
    "stride": (f"a = lin * s; {INSIDE}", lambda i, s, t, p: (i * s, _inside(i * s)), (0,)),
    "both_sides": ("a = lin; m = (lin * 3 + s) < (lin + t)", lambda i, s, t, p: (i, i * 3 + s < i + t), (MIN, 0, MAX)),
    "equal": ("a = lin; m = (lin + s) == t", lambda i, s, t, p: (i, i + s == t), (MIN, MIN + 3, 5)),
    "shift": (f"a = (lin << 26) + s; {INSIDE}", lambda i, s, t, p: ((i << 26) + s, _inside((i << 26) + s)), (0,)),
    "carried": (
        f"""a = lin
    for _ in range(4):
        a = a + s
    {INSIDE}""",
        lambda i, s, t, p: (i + s + s + s + s, _inside(i + s + s + s + s)), (0,),
    ),
    "remainder": ("a = (lin + s) % 64; m = a >= 0", lambda i, s, t, p: (r := np.fmod(i + s, 64), r >= 0), (0,)),
    "quotient": (f"a = (lin + s) // 16; {INSIDE}", lambda i, s, t, p: (a := (np.trunc(_i64(i + s) / 16)).astype(np.int32), _inside(a)), (0,)),
    "unsigned_remainder": (
        "a = ((lin.to(tl.uint32) + s.to(tl.uint32)) % 200).to(tl.int32); m = a >= 0",
        lambda i, s, t, p: ((_u32(i + s) % np.uint32(200)).astype(np.int32), i >= 0), (0,),
    ),
    "unsigned": (
        "a = lin; m = (lin + s).to(tl.uint32) < t.to(tl.uint32)", lambda i, s, t, p: (i, _u32(i + s) < _u32(t)),
        (MIN, -1, 3, MAX),
    ),
    "sign_extended": (
        f"a = (lin + s).to(tl.int64) - s; {INSIDE}", lambda i, s, t, p: (a := _i64(i + s) - int(s), _inside(a)), (0,)
    ),
    "zero_extended": (
        f"a = (lin + s).to(tl.uint32).to(tl.int64) - s; {INSIDE}",
        lambda i, s, t, p: (a := _u32(i + s).astype(np.int64) - int(s), _inside(a)), (0,),
    ),
    "truncated": (
        f"a = (lin.to(tl.int64) * s * 4).to(tl.int32); {INSIDE}", lambda i, s, t, p: (i * s * 4, _inside(i * s * 4)), (0,)
    ),
    "halves": (
        f"a = (lin.to(tl.int16) + s.to(tl.int16)).to(tl.int32); {INSIDE}",
        lambda i, s, t, p: (a := (i.astype(np.int16) + np.int64(s).astype(np.int16)).astype(np.int32), _inside(a)), (0,),
    ),
    "bytes": (
        f"a = (lin.to(tl.uint8) * 5 + s.to(tl.uint8)).to(tl.uint8).to(tl.int32); {INSIDE}",
        lambda i, s, t, p: (a := ((i * 5 + s) & 255).astype(np.int32), _inside(a)), (0,),
    ),
}  # fmt: skip


def _kernel(lines: str) -> Any:
    body = "\n    ".join(lines.split("; "))
    return make_kernel(
        "def overflow(X, R, M, s, t):\n"
        "    p = tl.program_id(0)\n"
        f"    lin = tl.arange(0, {BLOCK})\n"
        f"    {body}\n"
        f"    tl.store(R + p * {BLOCK} + lin, tl.load(X + a, mask=m, other=-1))\n"
        f"    tl.store(M + p * {BLOCK} + lin, m.to(tl.int8))\n"
    )


def _run(kernel: Any, s: int, t: int) -> tuple[Any, Any]:
    loaded, masks = empty(BLOCK * 2, "i32"), empty(BLOCK * 2, "i8")
    kernel[(2,)](put(X, "i32"), loaded, masks, s, t)
    return get(loaded), get(masks)


@pytest.mark.parametrize("name", CASES)
def test_indices_and_masks_wrap_around(name: str) -> None:
    lines, oracle, others = CASES[name]
    lanes, kernel = np.arange(BLOCK, dtype=np.int32), _kernel(lines)
    for s in SCALARS:
        for t in others:
            loaded, masks = _run(kernel, s, t)
            with np.errstate(over="ignore"):
                expected = [oracle(lanes, np.int32(s), np.int32(t), np.int32(p)) for p in range(2)]
            for p, (a, m) in enumerate(expected):
                at = slice(p * BLOCK, (p + 1) * BLOCK)
                assert_same(masks[at], m.astype(np.int8), f"s = {s}, t = {t}: mask")
                assert_same(loaded[at], np.where(m, X[np.where(m, a, 0)], -1), f"s = {s}, t = {t}: loaded")


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


#: The same of int64, by Python's integers: whether m is set for an element i of lin, s, and the program.
WIDE: dict[str, tuple[str, Any]] = {
    "below": ("m = (p.to(tl.int64) * 64 + lin) < s", lambda i, s, p: p * 64 + i < s),
    "at_least": ("m = (p.to(tl.int64) * 64 + lin) >= s", lambda i, s, p: p * 64 + i >= s),
    "difference": ("m = (s - lin) > 1", lambda i, s, p: _wrapped(s - i) > 1),
    "sum": ("m = (lin + s) < 100", lambda i, s, p: _wrapped(s + i) < 100),
    "product": ("m = (lin * s) < 100", lambda i, s, p: _wrapped(s * i) < 100),
    "large_step": ("m = (lin.to(tl.int64) * 2**60) < s", lambda i, s, p: _wrapped(2**60 * i) < s),
    "unsigned": ("m = (lin + p).to(tl.uint64) <= s.to(tl.uint64)", lambda i, s, p: i + p <= s % 2**64),
}


@pytest.mark.parametrize("name", WIDE)
def test_masks_of_64_bits_wrap_around(name: str) -> None:
    lines, oracle = WIDE[name]
    kernel = _kernel(f"{lines}; a = lin")
    for s in (-(2**63), -(2**63) + 2**40, -(2**40), 2**32 + 7, 2**63 - 60, 2**63 - 1):
        _, masks = _run(kernel, s, 0)
        assert_same(
            masks, np.array([oracle(i, s, p) for p in range(2) for i in range(BLOCK)], np.int8), f"s = {s}"
        )


def test_masked_offsets_may_leave_32_bits() -> None:
    loaded, _ = _run(_kernel("a = lin * s; m = lin < t"), 2**30, 1)
    assert_same(loaded[:BLOCK], np.where(np.arange(BLOCK) < 1, X[0], -1))


def test_constants_of_pointers_wrap_around() -> None:
    """The lowest number of 64 bits has no negative, which sums of constants are computed with."""
    first = -(2**63)
    kernel = make_kernel(
        "def far(X, O, s):\n"
        f"    X = X + tl.full((), {first}, tl.int64)\n"
        f"    at = tl.full(({BLOCK},), 0, tl.int64) + tl.arange(0, {BLOCK}) + s\n"
        f"    tl.store(O + tl.arange(0, {BLOCK}), tl.load(X + at))\n"
    )
    out = empty(BLOCK, "i32")
    kernel[(1,)](put(X, "i32"), out, first)
    assert_same(get(out), X[:BLOCK])


@pytest.mark.parametrize("step", [7, 2**30, MAX])
def test_loops_end_where_the_last_step_would_overflow(step: int) -> None:
    kernel = make_kernel(
        "def loops(O, first, end, step):\n"
        "    count = 0\n"
        "    for i in range(first, end, step):\n"
        "        count += 1\n"
        "    tl.store(O, count)\n"
    )
    for first, end in ((MAX - 4, MAX), (MIN, MIN + 3)):
        out = empty(1, "i32")
        kernel[(1,)](out, first, end, step)
        assert get(out)[0] == len(range(first, end, step))


#: Lines that move a pointer to X, whose offsets may leave 32 bits and come back, as do s * 16 * i for s = 2**28 + 1; and
#: the offset of element i of program p, where f is s * 16 modulo 2**32.
BACK: dict[str, tuple[str, Any]] = {
    "rows": ("P = X + lin * s * 16", lambda i, p, f: f * i),
    "under_a_bound": ("P = X + (p * 64 + lin) * s * 16; m = (p * 64 + lin) < t", lambda i, p, f: f * (i + 64 * p)),
    "tile": (
        "P = X + lin[:, None] * s * 16 + tl.arange(0, 2)[None, :]; m = (lin < t)[:, None]",
        lambda i, p, f: f * i[:, None] + np.arange(2),
    ),
    "under_a_mask": ("P = X + lin * s * 16; m = tl.load(X + lin) > 1010", lambda i, p, f: f * i),
    "carried": (
        "P = X + lin * s * 16\n    for _ in range(3):\n        P += 2",
        lambda i, p, f: f * i + 6,
    ),
    "carried_index": (
        "a = lin * 0\n    for _ in range(16):\n        a += lin * s\n    P = X + a",
        lambda i, p, f: f * i,
    ),
    "chosen": (
        "P = X + lin * s * 16\n    if t > 0:\n        P = X + lin * s * 16 + p",
        lambda i, p, f: f * i + p,
    ),
    "counted": (
        "P = X + lin\n    for k in range(s, s + 1):\n        P = X + lin * k * 16",
        lambda i, p, f: f * i,
    ),
    "from_memory": ("P = X + lin * tl.load(S) * 16", lambda i, p, f: f * i),
    "from_memory_and_carried": (
        "P = X + lin * tl.load(S) * 16\n    for _ in range(3):\n        P += 2",
        lambda i, p, f: f * i + 6,
    ),
    "remainder": ("P = X + (lin * s * 16 + t) % 1000", lambda i, p, f: (f * i + 40) % 1000),
    "extended": ("P = X + (lin * s * 16).to(tl.int64)", lambda i, p, f: f * i),
    "unsigned": ("P = X + (lin * s * 16).to(tl.uint32)", lambda i, p, f: f * i),
}  # fmt: skip


@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize("name", BACK)
def test_offsets_of_pointers_wrap_around(name: str, masked: bool) -> None:
    """The same kernel then runs with a scalar by which nothing wraps, and the other way round."""
    lines, oracle = BACK[name]
    if not masked:
        lines = lines.split("; m = ")[0]
    elif "; m = " not in lines:
        lines += "; m = lin < t"
    columns, t = (2 if name == "tile" else 1), 40
    body = lines.replace("; ", "\n    ")
    kernel = make_kernel(
        "def back(X, R, S, s, t):\n"
        "    p = tl.program_id(0)\n"
        f"    lin = tl.arange(0, {BLOCK})\n"
        f"    {body}\n"
        f"    at = {'lin[:, None] * 2 + tl.arange(0, 2)[None, :]' if columns == 2 else 'lin'}\n"
        f"    v = tl.load(P{', mask=m, other=-1' if masked else ''})\n"
        f"    tl.store(R + p * {BLOCK * columns} + at, v)\n"
    )
    x = np.arange(1 << 15, dtype=np.int32) + 1000
    lanes = np.arange(BLOCK)
    for s in (2**28 + 1, 2, 2**28 + 1):
        out = empty(BLOCK * columns * 2, "i32")
        kernel[(2,)](put(x, "i32"), out, put(np.array([s], np.int32), "i32"), s, t)
        expected = []
        for p in range(2):
            values = x[oracle(lanes, p, s * 16 % 2**32)].reshape(BLOCK, columns)
            if masked:
                kept = {"under_a_bound": p * 64 + lanes < t, "under_a_mask": x[lanes] > 1010}.get(
                    name, lanes < t
                )
                values = np.where(kept[:, None], values, -1)
            expected.append(values.reshape(-1))
        assert_same(get(out), np.concatenate(expected), f"s = {s}")
