"""Quotients and remainders of lanes, by lanes and by one divisor for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray

N = 1 << 12


@triton.jit
def by_lanes(A, B, Q, R, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(A + i), tl.load(B + i)
    tl.store(Q + i, a // b)
    tl.store(R + i, a % b)


@triton.jit
def by_one(A, B, Q, R, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(A + i), tl.load(B)
    tl.store(Q + i, a // b)
    tl.store(R + i, a % b)


@triton.jit
def selected(A, B, Q, R, N: tl.constexpr):
    """Divides by zero where the result is not used."""
    i = tl.arange(0, N)
    a, b = tl.load(A + i), tl.load(B + i)
    tl.store(Q + i, tl.where(b == 0, 7, a // b))
    tl.store(R + i, tl.where(b == 0, 8, a % b))


def edges(type: Any, seed: int) -> Any:
    """Values near the ends of the type, near zero, near powers of two and their products, and of all sizes."""
    limits = np.iinfo(type)
    random = np.random.default_rng(seed)
    powers = [1 << k for k in range(limits.bits)]
    near = [p + d for p in powers for d in (-1, 0, 1)] + [limits.max - k for k in range(8)]
    values = [v for v in near + [-v for v in near] if limits.min <= v <= limits.max]
    sizes = random.integers(0, limits.bits, N)
    mixed = random.integers(limits.min, limits.max, N, dtype=type, endpoint=True) >> sizes.astype(type)
    some = random.choice(np.array(values, object), N)
    return np.where(random.random(N) < 0.5, some.astype(type), mixed)


def divided(kernel: Any, a: Any, b: Any) -> tuple[Any, Any]:
    device: Any = triton.runtime.driver.active.device
    name = str(a.dtype)
    given = [DeviceArray.from_numpy(values, device) for values in (a, b)]
    results = [DeviceArray.empty(N, name, device) for _ in range(2)]
    kernel[(1,)](*given, *results, N=N)
    return results[0].numpy(), results[1].numpy()


def expected(a: Any, b: Any) -> tuple[list[int], list[int]]:
    """By Python's integers, rounded towards zero."""
    quotients = [
        abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b, strict=True)
    ]
    return quotients, [int(x) - q * int(y) for x, y, q in zip(a, b, quotients, strict=True)]


@pytest.mark.parametrize("type", [np.int32, np.uint32, np.int64, np.int16])
@pytest.mark.parametrize("seed", range(4))
def test_by_lanes(type: Any, seed: int) -> None:
    a, b = edges(type, seed), edges(type, seed + 100)
    b[b == 0] = 3
    if np.issubdtype(type, np.signedinteger):
        b[(b == -1) & (a == np.iinfo(type).min)] = 3
    # Multiples of the divisors, and their neighbours, are where a rounded quotient would be wrong.
    multiples = a // b * b
    a = np.where(
        np.arange(N) % 3 == 0, multiples, np.where(np.arange(N) % 3 == 1, multiples - (multiples > 0), a)
    )
    quotients, remainders = divided(by_lanes, a.astype(type), b)
    assert (quotients.tolist(), remainders.tolist()) == expected(a, b)


BOTH = [1, 3, 7, 10, 641, 65535, 65536, 2**31 - 1]
DIVISORS = [*((np.int32, d) for d in (*BOTH, -1, -3)), *((np.uint32, d) for d in (*BOTH, 2**31, 2**32 - 1))]


@pytest.mark.parametrize(("type", "divisor"), DIVISORS)
def test_by_one(type: Any, divisor: int) -> None:
    limits = np.iinfo(type)
    a = edges(type, 5)
    if divisor == -1:
        a[a == limits.min] = 0
    multiples = a.astype(np.int64) // abs(divisor) * abs(divisor)
    a = np.where(np.arange(N) % 2 == 0, np.clip(multiples, limits.min, limits.max), a).astype(type)
    b = np.full(N, divisor, type)
    quotients, remainders = divided(by_one, a, b)
    assert (quotients.tolist(), remainders.tolist()) == expected(a, b)


@pytest.mark.parametrize("type", [np.int32, np.uint32])
def test_unused_divisions_by_zero(type: Any) -> None:
    a, b = edges(type, 6), edges(type, 7)
    b[::2] = 0
    b[b.astype(np.int64) == -1] = 1
    quotients, remainders = divided(selected, a, b)
    safe = np.where(b == 0, 1, b)
    right = expected(a, safe)
    assert quotients.tolist() == [7 if y == 0 else q for q, y in zip(right[0], b, strict=True)]
    assert remainders.tolist() == [8 if y == 0 else r for r, y in zip(right[1], b, strict=True)]


@triton.jit
def floats_by_one(A, B, Q, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(Q + i, tl.load(A + i) / tl.load(B))


FLOATS = [
    1.0,
    3.0,
    -7.5,
    1 / 3,
    1e-30,
    -1e-44,
    3e38,
    0.0,
    -0.0,
    float("inf"),
    float("nan"),
    1.0000001,
    16777215.0,
]


@pytest.mark.parametrize("divisor", FLOATS)
def test_floats_by_one(divisor: float) -> None:
    """As IEEE 754 rounds them, also where the quotient is subnormal, infinite or not a number."""
    random = np.random.default_rng(8)
    a = random.integers(0, 1 << 32, N, dtype=np.uint32).view(np.float32)
    a[:64] = [*FLOATS, *FLOATS, *FLOATS, *FLOATS, *FLOATS][:64]
    b = np.full(N, divisor, np.float32)
    with np.errstate(all="ignore"):
        # Products of the divisor, and their neighbours, are where a quotient that is rounded twice would be wrong.
        products = (random.integers(1, 1 << 24, N // 2).astype(np.float32) * b[0]).astype(np.float32)
        a[N // 2 :] = np.nextafter(products, random.choice(np.float32([-np.inf, np.inf]), N // 2))
        exact = a / b
    check_floats(a, b, exact)


@pytest.mark.parametrize("divisor", [6.0, 98.0, 206.0, 246.0, 454.0])
def test_floats_between_two_subnormals(divisor: float) -> None:
    """A quotient in the middle of two floats is rounded to the even one."""
    b = np.full(N, divisor, np.float32)
    odd = 2 * np.random.default_rng(9).integers(0, 1 << 14, N) + 1
    a = (odd * (divisor / 2) * 2.0**-149).astype(np.float32)
    exact = a / b
    assert (a.astype(np.float64) / divisor == odd * 2.0**-150).all()
    check_floats(a, b, exact)


def check_floats(a: Any, b: Any, exact: Any) -> None:
    device: Any = triton.runtime.driver.active.device
    given = [DeviceArray.from_numpy(values, device) for values in (a, b)]
    out = DeviceArray.empty(N, "float32", device)
    floats_by_one[(1,)](*given, out, N=N)
    np.testing.assert_array_equal(
        out.numpy().view(np.uint32)[~np.isnan(exact)], exact.view(np.uint32)[~np.isnan(exact)]
    )
    assert np.isnan(out.numpy()[np.isnan(exact)]).all()
