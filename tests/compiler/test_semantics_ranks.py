"""Every rank and dimension end to end: operations that move, pick, order and combine elements along one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from running import KINDS, Array, assert_same, empty, get, make_kernel, put

SHAPES = [(16,), (1,), (4, 8), (8, 1), (2, 4, 8), (2, 1, 4, 8), (2, 4, 1, 2, 4)]


def text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def tile(shape: tuple[int, ...]) -> str:
    """Row-major offsets."""
    if len(shape) == 1:
        return f"tl.arange(0, {shape[0]})"
    terms = []
    for d, size in enumerate(shape):
        keep = ", ".join(":" if i == d else "None" for i in range(len(shape)))
        terms.append(f"tl.arange(0, {size})[{keep}] * {math.prod(shape[d + 1 :])}")
    return " + ".join(terms)


def run(line: str, x: Array, expected: Array, kind: str = "i32", result: str = "") -> None:
    result = result or kind
    expected = np.asarray(expected)
    where = tile(expected.shape) if expected.shape else "0"
    source = f"""def ranks(X, O):
    i = {tile(x.shape)}
    x = tl.load(X + i)
    {line}
    tl.store(O + {where}, r)
"""
    out = empty(expected.shape or (1,), result)
    make_kernel(source)[(1,)](put(x, kind), out)
    assert_same(get(out).reshape(expected.shape), expected.astype(KINDS[result].host))


def numbers(shape: tuple[int, ...], low: int = -50) -> Array:
    return np.random.default_rng(math.prod(shape)).integers(low, 50, shape).astype(np.int32)


def permutations() -> Iterator[Any]:
    for shape in SHAPES:
        every = list(itertools.permutations(range(len(shape))))
        # Of many, some: every first dimension, and all orders of three.
        for order in every[:: max(1, len(every) // 6)]:
            yield pytest.param(shape, order, id=f"{text(shape)}-{''.join(map(str, order))}")


@pytest.mark.parametrize(("shape", "order"), list(permutations()))
def test_permutation(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    x = numbers(shape)
    run(f"r = tl.permute(x, {order})", x, x.transpose(order))


AXES = [
    pytest.param(shape, axis, id=f"{text(shape)}-{axis}") for shape in SHAPES for axis in range(len(shape))
]


@pytest.mark.parametrize(("shape", "axis"), AXES)
def test_gather(shape: tuple[int, ...], axis: int) -> None:
    x = numbers(shape)
    fewer = (*shape[:axis], 2, *shape[axis + 1 :])
    index = (np.arange(math.prod(fewer)).reshape(fewer) * 7 + 3) % shape[axis]
    line = f"r = tl.gather(x, (({tile(fewer)}) * 7 + 3) % {shape[axis]}, {axis})"
    run(line, x, np.take_along_axis(x, index, axis))


@pytest.mark.parametrize("index", ["int8", "uint8", "int16", "uint16", "uint32", "int64"])
def test_gather_by_every_type_of_index(index: str) -> None:
    x = numbers((256,))
    last = 127 if index == "int8" else 255
    run(f"r = tl.gather(x, (({last} - i) % 256).to(tl.{index}), 0)", x, x[(last - np.arange(256)) % 256])


@pytest.mark.parametrize("kind", ["i32", "fp16"])
@pytest.mark.parametrize(
    ("shape", "axis"), [case for case in AXES if case.values != ((1,), 0)]
)  # Triton's own front end refuses the last
def test_flip(shape: tuple[int, ...], axis: int, kind: str) -> None:
    x = numbers(shape)
    run(f"r = tl.flip(x, {axis})", x, np.flip(x, axis), kind)


@pytest.mark.parametrize("kind", ["i32", "u8", "i64", "fp16", "bf16", "fp32", "fp64"])
@pytest.mark.parametrize("shape", SHAPES, ids=text)
def test_sort_and_topk(shape: tuple[int, ...], kind: str) -> None:
    x = numbers(shape, 0 if kind == "u8" else -50)
    run("r = tl.sort(x)", x, np.sort(x, -1), kind)
    descending = np.flip(np.sort(x, -1), -1)
    run("r = tl.sort(x, descending=True)", x, descending, kind)
    if shape[-1] >= 4:
        run("r = tl.topk(x, 4)", x, descending[..., :4], kind)


@pytest.mark.parametrize("keep", [False, True], ids=["dropped", "kept"])
@pytest.mark.parametrize(
    ("shape", "axis"), [*AXES, *(pytest.param(s, None, id=f"{text(s)}-all") for s in SHAPES)]
)
def test_reductions(shape: tuple[int, ...], axis: int | None, keep: bool) -> None:
    x = numbers(shape)
    arguments = f"x, {axis}, keep_dims={keep}"
    run(f"r = tl.sum({arguments})", x, np.sum(x, axis, keepdims=keep))
    run(f"r = tl.max({arguments})", x, np.max(x, axis, keepdims=keep))
    if axis is not None:
        few = x % 3
        run(f"r = tl.argmax({arguments})", few, np.argmax(few, axis, keepdims=keep))
        run(f"r = tl.argmin({arguments})", few, np.argmin(few, axis, keepdims=keep))


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize(("shape", "axis"), AXES)
def test_scan(shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    x = numbers(shape)
    turned = np.flip(x, axis) if reverse else x
    sums = np.cumsum(turned, axis)
    line = f"r = tl.cumsum(x, {axis}, reverse={reverse})"
    run(line, x, np.flip(sums, axis) if reverse else sums)


@pytest.mark.parametrize("shape", SHAPES, ids=text)
def test_join_split_and_reshape(shape: tuple[int, ...]) -> None:
    x = numbers(shape)
    run("r = tl.join(x, x * 2)", x, np.stack([x, x * 2], -1)) if len(shape) < 5 else None
    run("a, b = tl.split(tl.join(x, x * 2))\n    r = a * 3 + b", x, x * 5)
    count = math.prod(shape)
    run(f"r = tl.reshape(x, ({count},))", x, x.reshape(count))
    run("r = tl.ravel(x)", x, x.ravel())
    if len(shape) < 5:
        run("r = tl.expand_dims(x, 0)", x, x[None])
        run(
            f"r = tl.broadcast_to(tl.expand_dims(x, 0), (2, {', '.join(map(str, shape))}))",
            x,
            np.stack([x, x]),
        )


def test_scratch_is_used_again_within_a_large_tile() -> None:
    x = np.random.default_rng(8).integers(-(2**31), 2**31, 1 << 15).astype(np.int32)
    run("r = tl.sort(tl.flip(x, 0)) + tl.sort(x, descending=True)", x, np.sort(x) + np.sort(x)[::-1])
