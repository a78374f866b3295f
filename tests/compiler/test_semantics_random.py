"""Philox random numbers end to end: the bits that the paper's algorithm gives (Salmon et al., 2011)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import Array, assert_same, empty, get

SEEDS = [0, 42, 0xDEADBEEF, -5, 2**63 - 1]
MULTIPLIERS = {32: (0xD2511F53, 0xCD9E8D57), 64: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}
STEPS = {32: (0x9E3779B9, 0xBB67AE85), 64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}


def philox(seed: int, counter: list[int], rounds: int = 10, bits: int = 32) -> list[int]:
    """Philox4x32 or Philox4x64 of one counter; the key is the seed's halves."""
    mask = (1 << bits) - 1
    key = [seed & mask, seed >> bits & mask if bits == 32 else 0]
    c = counter
    for _ in range(rounds):
        first, second = MULTIPLIERS[bits][0] * c[0], MULTIPLIERS[bits][1] * c[2]
        c = [second >> bits ^ c[1] ^ key[0], second & mask, first >> bits ^ c[3] ^ key[1], first & mask]
        key = [(k + step) & mask for k, step in zip(key, STEPS[bits], strict=True)]
    return c


def words(seed: int, rounds: int = 10) -> Array:
    """The four words of the counters 0 to 63, a row each."""
    return np.array([philox(seed, [i, 0, 0, 0], rounds) for i in range(64)], np.uint32).T


def uniform(bits: Array) -> Array:
    """Triton's numbers in [0, 1) of 32 random bits."""
    signed = bits.view(np.int32)
    return np.where(signed < 0, ~signed, signed).astype(np.float32) * np.float32(4.6566127342e-10)


@triton.jit
def integers_kernel(O, One, seed, ROUNDS: tl.constexpr):
    i = tl.arange(0, 64)
    a, b, c, d = tl.randint4x(seed, i, ROUNDS)
    tl.store(O + i, a)
    tl.store(O + 64 + i, b)
    tl.store(O + 128 + i, c)
    tl.store(O + 192 + i, d)
    tl.store(One + i, tl.randint(seed, i, ROUNDS))


@pytest.mark.parametrize("rounds", [7, 10])
@pytest.mark.parametrize("seed", SEEDS)
def test_integers(seed: int, rounds: int) -> None:
    four, one = empty((4, 64), "u32"), empty(64, "u32")
    integers_kernel[(1,)](four, one, seed, ROUNDS=rounds)
    assert_same(get(four), words(seed, rounds))
    assert_same(get(one), words(seed, rounds)[0])


@triton.jit
def wide_kernel(O, seed):
    i = tl.arange(0, 64).to(tl.uint64)
    a, b, c, d = tl.philox(seed, i, i * 0, i * 0 + 3, i * 0)
    tl.store(O + i, a)
    tl.store(O + 64 + i, b)
    tl.store(O + 128 + i, c)
    tl.store(O + 192 + i, d)


@pytest.mark.parametrize("seed", [0, 42])
def test_words_of_64_bits(seed: int) -> None:
    out = empty((4, 64), "u64")
    wide_kernel[(1,)](out, seed)
    expected = [philox(seed, [i, 0, 3, 0], bits=64) for i in range(64)]
    assert_same(get(out), np.array(expected, np.uint64).T)


@triton.jit
def uniform_kernel(O, One):
    i = tl.arange(0, 64)
    a, b, c, d = tl.rand4x(77, i)
    tl.store(O + i, a)
    tl.store(O + 64 + i, b)
    tl.store(O + 128 + i, c)
    tl.store(O + 192 + i, d)
    tl.store(One + i, tl.rand(77, i))


def test_uniform_numbers() -> None:
    four, one = empty((4, 64), "fp32"), empty(64, "fp32")
    uniform_kernel[(1,)](four, one)
    assert_same(get(four), uniform(words(77)))
    assert_same(get(one), uniform(words(77)[0]))


@triton.jit
def normal_kernel(O, One):
    i = tl.arange(0, 64)
    a, b, c, d = tl.randn4x(77, i)
    tl.store(O + i, a)
    tl.store(O + 64 + i, b)
    tl.store(O + 128 + i, c)
    tl.store(O + 192 + i, d)
    tl.store(One + i, tl.randn(77, i))


def normal(radius: Array, turn: Array) -> list[Any]:
    """The transformation of Box and Muller, in float64."""
    length = np.sqrt(-2 * np.log(np.maximum(np.float32(1e-7), radius).astype(np.float64)))
    angle = (np.float32(2 * np.pi) * turn).astype(np.float64)
    return [length * np.cos(angle), length * np.sin(angle)]


def test_normal_numbers() -> None:
    four, one = empty((4, 64), "fp32"), empty(64, "fp32")
    normal_kernel[(1,)](four, one)
    u = uniform(words(77))
    expected = np.array(normal(u[0], u[1]) + normal(u[2], u[3]))
    # A few roundings of numbers below 6, of which the one in the sine's argument counts most.
    np.testing.assert_allclose(get(four), expected, rtol=1e-5, atol=4e-6)
    np.testing.assert_allclose(get(one), expected[0], rtol=1e-5, atol=4e-6)
