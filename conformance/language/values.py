"""Test values."""

from __future__ import annotations

import numpy as np

from triton_porting_kit.conformance.rounding import from_float64
from triton_porting_kit.conformance.types import Array, Kind, every_value


def samples(kind: Kind, count: int = 16, seed: int = 0) -> Array:
    """`count` values of a type: its edge values, then random ones."""
    random = np.random.default_rng(seed)
    if kind.bits == 1:
        return random.integers(0, 2, count).astype(bool)
    if kind.is_integer:
        whole = [0, 1, 2, 7, kind.highest, kind.highest - 1, kind.lowest, kind.lowest + 1]
        whole += [-1, -2] if kind.is_signed else [3, 100]
        half = 1 << kind.bits // 2
        whole += [half, half + 1, half - 1]
        rest = random.integers(kind.lowest, kind.highest, count, dtype=kind.host, endpoint=True)
        return np.concatenate([np.array(whole, kind.host), rest])[:count]
    if kind.is_minifloat:
        special = every_value(kind)[[0, 0x80, 0x7F, 0xFF, 0x7C, 1, 0x81, 0x7E, 0xFB, 8, 4, 0x38, 0x3C, 0xBC]]
        ends = np.array([kind.largest, -kind.largest], kind.host)
        return np.concatenate([special[:1], ends, special[1:], random.choice(every_value(kind), count)])[
            :count
        ]
    tiny = 2.0 ** (2 - kind.exponent - kind.precision)
    edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        np.inf,
        -np.inf,
        np.nan,
        tiny,
        -tiny,
        kind.largest,
        -kind.largest,
        2.5,
        -7.0,
    ]
    rest = random.standard_normal(max(count, len(edges))) * 4.0
    return from_float64(np.concatenate([edges, rest])[:count], kind)


def pairs(values: Array) -> tuple[Array, Array]:
    """Each value paired with each."""
    left, right = np.meshgrid(values, values, indexing="ij")
    return left.ravel(), right.ravel()


def small(shape: tuple[int, ...], kind: Kind, seed: int = 0) -> Array:
    """Small numbers with duplicates. Every type represents their sums and products exactly."""
    random = np.random.default_rng(seed)
    low, high = (-2, 3) if kind.is_float or kind.is_signed else (0, 3)
    if kind.is_float and kind.largest < 2:
        low, high = -1, 2
    return random.integers(low, 2 if kind.bits == 1 else high, shape).astype(kind.host)
