"""The source of all randomness: a seed gives the same numbers on any machine and with any version of Python and
NumPy."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from triton_porting_kit.conformance.types import Array, Kind

T = TypeVar("T")


class Draws:
    """Choices from a seed. They use only `random.Random.random`, whose sequence Python guarantees not to change."""

    def __init__(self, seed: int) -> None:
        self._next = random.Random(seed).random

    def below(self, end: int) -> int:
        """An integer from 0 to `end` - 1."""
        return int(self._next() * end)

    def between(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        return self._next() < probability

    def choose(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def weighted(self, options: Sequence[tuple[T, float]]) -> T:
        """One option out of pairs (option, weight)."""
        point = self._next() * sum(weight for _, weight in options)
        for option, weight in options:
            point -= weight
            if point < 0:
                return option
        return options[-1][0]

    def permutation(self, count: int) -> tuple[int, ...]:
        left = list(range(count))
        return tuple(left.pop(self.below(len(left))) for _ in range(count))


FLAVOURS = ("edges", "full", "small", "whole", "index", "distinct", "ones", "zeros")
"""Kinds of content: edge values, any value, small numbers, whole numbers, indices from 0 to 63, and distinct indices,
each of which occurs once among 64 elements. Shrunk programs also use ones and zeros."""


def content(kind: Kind, size: int, flavour: str, seed: int) -> Array:
    """The first `size` elements of a content; see `content_at`."""
    return content_at(kind, np.arange(size), flavour, seed)


def content_at(kind: Kind, places: Array, flavour: str, seed: int) -> Array:
    """The elements of a content at given places, which may be negative: values of a type, in its host type.

    For floating-point types, ``small`` gives multiples of 1/4 up to 8, and ``whole`` gives whole numbers up to 16. Sums
    and products of both stay exact for many operations. Other contents use all digits of the type. 8-bit types have
    multiples of 1/4 up to 2, and whole numbers up to 8.
    """
    if flavour in ("zeros", "ones"):
        return np.full(places.shape, flavour == "ones", kind.host)
    if flavour == "distinct":
        return np.asarray((places * (2 * seed % 64 + 5) + seed) % 64).astype(kind.host)
    bits = _mixed(places, seed)
    if kind.bits == 1:
        return np.asarray((bits >> np.uint64(40)) & np.uint64(1), bool)
    if kind.is_integer:
        return _integers(kind, bits, flavour)
    signed = (bits >> np.uint64(20)).astype(np.int64)
    if kind.is_minifloat:
        return np.asarray((signed % 17 - 8) / (4.0 if flavour == "small" else 1.0), kind.host)
    if flavour == "small":
        return np.asarray((signed % 65 - 32) / 4.0, kind.host)
    if flavour == "whole":
        return np.asarray(signed % 33 - 16, kind.host)
    digits = min(kind.precision, 50)
    significand = signed % (1 << digits) + (1 << digits)
    power = (bits >> np.uint64(3)).astype(np.int64) % 5 - 2 - digits
    sign = np.where(bits & np.uint64(1), 1.0, -1.0)
    drop = 2 if digits == kind.precision else 0  # no more digits than the type has
    return np.asarray(sign * np.ldexp((significand >> drop << drop).astype(np.float64), power), kind.host)


def _integers(kind: Kind, bits: Array, flavour: str) -> Array:
    if flavour == "index":
        return np.asarray((bits >> np.uint64(20)) % np.uint64(64)).astype(kind.host)
    if flavour in ("small", "whole"):
        low = -9 if kind.is_signed else 0
        return np.asarray((bits >> np.uint64(20)).astype(np.int64) % (10 - low) + low, kind.host)
    wide = (bits >> np.uint64(64 - kind.bits)).astype(f"uint{kind.bits}").view(kind.host)
    if flavour == "full":
        return np.asarray(wide)
    edges = [kind.lowest, kind.highest, 0, 1, 2, kind.highest - 1]
    picked = np.array(edges, kind.host)[(bits & np.uint64(0xFF)).astype(np.int64) % len(edges)]
    return np.where(bits & np.uint64(0x700), wide, picked)


def _mixed(places: Array, seed: int) -> Array:
    """64 well-mixed bits for each place (the finalizer of MurmurHash3, applied twice)."""
    with np.errstate(over="ignore"):
        bits = places.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15) & (2**64 - 1))
        for _ in range(2):
            bits ^= bits >> np.uint64(33)
            bits *= np.uint64(0xFF51AFD7ED558CCD)
            bits ^= bits >> np.uint64(33)
            bits *= np.uint64(0xC4CEB9FE1A85EC53)
            bits ^= bits >> np.uint64(33)
    return bits
