"""How exact results have to be: known arithmetic in NumPy passes or fails as its rounding says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from triton_porting_kit.conformance.judge.errors import TaskError
from triton_porting_kit.conformance.judge.oracle import LIKE, check_depends, expected, expected_like
from triton_porting_kit.conformance.judge.task import Call, Task
from triton_porting_kit.conformance.judge.values import Leaf, flatten, rounded
from triton_porting_kit.conformance.types import KINDS, Array

FP32 = KINDS["fp32"]


def task_of(function: Callable[..., Array], make: Callable[[np.random.Generator], tuple[Leaf, ...]]) -> Task:
    def call(random: np.random.Generator, case: Any) -> Call:
        leaves: list[Leaf] = []
        tree = flatten(make(random), leaves)
        value = function(*(leaf.wide for leaf in leaves))
        kind = leaves[0].kind if value.dtype.kind == "f" else KINDS["i64"]
        return Call(leaves, tree, [(kind, value.shape)])

    def reference(leaves: Sequence[Array]) -> Sequence[Array]:
        return [function(*leaves)]

    return Task("t", "plain", "kernel", lambda random: [{}], {}, call, lambda call: reference)


def matrices(random: np.random.Generator) -> tuple[Leaf, ...]:
    return tuple(Leaf(random.standard_normal((64, 64)).astype(np.float32), FP32) for _ in range(2))


def product(a: Array, b: Array) -> Array:
    return a @ b


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(3)


def test_a_product_in_its_own_type_is_right(random: np.random.Generator) -> None:
    task = task_of(product, matrices)
    call = task.make(random, {})
    (wanted,) = expected(task, call, random)
    actual = call.leaves[0].values @ call.leaves[1].values
    found = wanted.compare(actual)
    assert found["differ"] == 0
    assert found["worst"] < 0.5
    assert all(abs(like) < LIKE for like in found["lowered"].values())


@pytest.mark.parametrize("narrow", ["fp16", "bf16"])
def test_a_product_of_rounded_operands_is_found(narrow: str, random: np.random.Generator) -> None:
    task = task_of(product, matrices)
    call = task.make(random, {})
    (wanted,) = expected(task, call, random)
    a, b = (rounded(leaf.values, narrow).values.astype(np.float32) for leaf in call.leaves)
    found = wanted.compare(a @ b)
    assert found["differ"] or found["lowered"][narrow] > LIKE
    assert found["lowered"][narrow] > LIKE


def test_one_wrong_element_is_found(random: np.random.Generator) -> None:
    task = task_of(product, matrices)
    call = task.make(random, {})
    (wanted,) = expected(task, call, random)
    actual = call.leaves[0].values @ call.leaves[1].values
    actual[3, 5] += 1e-3
    found = wanted.compare(actual)
    assert (found["differ"], found["index"]) == (1, [3, 5])
    assert wanted.compare(np.full_like(actual, np.nan))["differ"] == actual.size
    assert wanted.compare(actual[:2])["differ"] == actual.size


def test_another_call_is_as_exact(random: np.random.Generator) -> None:
    task = task_of(product, matrices)
    before = expected(task, task.make(random, {}), random)
    call = task.make(random, {})
    (wanted,) = expected_like(task, call, before)
    actual = call.leaves[0].values @ call.leaves[1].values
    assert wanted.compare(actual)["differ"] == 0
    assert wanted.compare(actual + 0.01)["differ"] > 0


@pytest.mark.parametrize(("terms", "cols"), [(1, 1), (16, 16), (1000, 1000)])
def test_terms_are_counted(terms: int, cols: int, random: np.random.Generator) -> None:
    task = task_of(
        lambda x: x.sum(axis=1), lambda r: (Leaf(r.standard_normal((512, cols)).astype(np.float32), FP32),)
    )
    (wanted,) = expected(task, task.make(random, {}), random)
    said = float(wanted.rule.rpartition("(")[2].split()[0])
    assert terms / 2 <= said <= 2 * terms


def test_what_cancels_may_be_off_by_the_usual_scale(random: np.random.Generator) -> None:
    """1 + tanh in fp32 is off by half a unit of 1 where the result is far smaller."""

    def make(r: np.random.Generator) -> tuple[Leaf, ...]:
        return (Leaf((r.standard_normal(4000) * 3).astype(np.float32), FP32),)

    task = task_of(lambda x: x * (1 + np.tanh(x)), make)
    call = task.make(random, {})
    (wanted,) = expected(task, call, random)
    x = call.leaves[0].values
    assert wanted.compare(x * (np.float32(1) + np.tanh(x)))["differ"] == 0


def test_integers_are_identical(random: np.random.Generator) -> None:
    task = task_of(
        lambda x: np.argsort(x, axis=1), lambda r: (Leaf(r.standard_normal((4, 9)).astype(np.float32), FP32),)
    )
    call = task.make(random, {})
    (wanted,) = expected(task, call, random)
    right = np.argsort(call.leaves[0].values, axis=1)
    assert wanted.compare(right)["differ"] == 0
    assert wanted.compare(right[::-1])["differ"] > 0


def test_a_constant_task_is_refused(random: np.random.Generator) -> None:
    task = task_of(lambda a, b: np.maximum((a - a) @ b, 0.0), matrices)
    with pytest.raises(TaskError, match="do not depend on its inputs"):
        check_depends(task, random)
    check_depends(task_of(product, matrices), random)
