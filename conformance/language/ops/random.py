"""Random numbers, bit for bit equal to Philox 4x32 and 4x64 (Salmon et al., SC 2011)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.expression import Inputs, defaulted, expression
from triton_porting_kit.conformance.language.shapes import ODD, Shape, tile
from triton_porting_kit.conformance.language.table import EXACT, Op, Tolerance
from triton_porting_kit.conformance.types import Array, Kind

SECTION = "Random numbers"
SEEDS = tuple(Shape(f"tile_64_seed{seed}", (64,), {"seed": seed}) for seed in (0, 1, 12345678901))
SHAPES = (
    *SEEDS,
    Shape("tile_17x4", ODD.extents, {"seed": 5}),
    Shape("scalar", (20,), {"seed": 7}, scalar=True),
)
ROUND = {32: (0xD2511F53, 0xCD9E8D57), 64: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}
KEY = {32: (0x9E3779B9, 0xBB67AE85), 64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}


def philox(
    seed: int, counter: tuple[int, int, int, int], bits: int = 32, rounds: int = 10
) -> tuple[int, int, int, int]:
    """The four output words for a counter."""
    mask, (c0, c1, c2, c3) = (1 << bits) - 1, counter
    key = [seed & mask, seed >> 32 & mask if bits == 32 else 0]
    for _ in range(rounds):
        a, b = ROUND[bits][0] * c0, ROUND[bits][1] * c2
        c0, c1, c2, c3 = (b >> bits) ^ c1 ^ key[0], b & mask, (a >> bits) ^ c3 ^ key[1], a & mask
        key = [(k + step) & mask for k, step in zip(key, KEY[bits], strict=True)]
    return c0, c1, c2, c3


def _words(x: Array, seed: int) -> list[Array]:
    drawn = [philox(seed, (int(v) & 0xFFFFFFFF, int(v) >> 32 & 0xFFFFFFFF, 0, 0)) for v in x.ravel()]
    return [np.array([words[k] for words in drawn], object).reshape(x.shape) for k in range(4)]


def _uniform(words: Array) -> Array:
    signed = np.where(words >= 1 << 31, words - (1 << 32), words)
    folded = np.where(signed < 0, -signed - 1, signed).astype(np.float64)
    return (folded.astype(np.float32) * np.float32(4.6566127342e-10)).astype(np.float64)


def _normal(u1: Array, u2: Array) -> tuple[Array, Array]:
    radius = np.sqrt(-2.0 * np.log(np.maximum(np.float64(np.float32(1e-7)), u1)))
    angle = (np.float32(6.283185307179586) * u2.astype(np.float32)).astype(np.float64)
    return radius * np.cos(angle), radius * np.sin(angle)


def _counters(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    (kind,) = kinds
    start = 1 << 33 if kind.bits == 64 else 0
    return ((np.arange(shape.count) * 3 + start).reshape(shape.extents).astype(kind.host),)


def _numbers(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    return (np.random.default_rng(1).integers(0, 1 << kinds[0].bits, shape.extents, dtype=kinds[0].host),)


def _random(name: str, code: str, oracle: Callable[..., Any], results: tuple[str, ...], types: tuple[str, ...] = ("i32", "i64"),
    tolerance: Tolerance = EXACT, inputs: Inputs = _counters, **more: Any) -> Op:  # fmt: skip
    return expression(name, SECTION, code, oracle, types, results=results, inputs=inputs, refused=(), tolerance=tolerance,
        **defaulted(more, {"shapes": SHAPES}))  # fmt: skip


FOUR = "r0, r1, r2, r3 = "
NORMAL = Tolerance(
    {"i32": 16, "i64": 16},
    "two functions (1 unit each), a root and a product (1/2 each); more near zeros of the sine, from its argument",
)


def _wide(x: Array, seed: int) -> tuple[Array, ...]:
    drawn = [philox(seed, (int(v), 0, 0, 0), 64) for v in x.ravel()]
    return tuple(np.array([words[k] for words in drawn], object) for k in range(4))


OPS: tuple[Op, ...] = (
    _random("randint", "tl.randint({seed}, x)", lambda x, seed: _words(x, seed)[0], ("u32",)),
    _random("randint4x", FOUR + "tl.randint4x({seed}, x)", lambda x, seed: tuple(_words(x, seed)), ("u32",) * 4),
    _random("rand", "tl.rand({seed}, x)", lambda x, seed: _uniform(_words(x, seed)[0]), ("fp32",)),
    _random("rand4x", FOUR + "tl.rand4x({seed}, x)", lambda x, seed: tuple(_uniform(w) for w in _words(x, seed)), ("fp32",) * 4),
    _random("randn", "tl.randn({seed}, x)", lambda x, seed: _normal(*(_uniform(w) for w in _words(x, seed)[:2]))[0], ("fp32",),
        tolerance=NORMAL),
    _random("philox", FOUR + "tl.philox({seed}, x, x * 0, x * 0, x * 0)", _wide, ("u64",) * 4, ("u64",), shapes=SEEDS,
        inputs=lambda kinds, shape: (np.arange(64, dtype=np.uint64) << np.uint64(20),), note="With 64-bit counters."),
    _random("uint_to_uniform_float", "tl.uint_to_uniform_float(x)", _uniform, ("fp32",), ("u32",), inputs=_numbers,
        shapes=(tile(64), ODD)),
)  # fmt: skip
