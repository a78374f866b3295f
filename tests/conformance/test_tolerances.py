"""What the table of tolerances allows, and that its documentation is the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from triton_porting_kit.conformance import catalogue, tolerances
from triton_porting_kit.conformance.kernels.problem import Problem, expect
from triton_porting_kit.conformance.tolerances import TABLE, Tolerance, lost
from triton_porting_kit.conformance.types import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "conformance-kernels.md"
FP32, FP16, FP64, BF16 = (KINDS[name] for name in ("fp32", "fp16", "fp64", "bf16"))


def test_the_page_holds_the_table() -> None:
    assert tolerances.document() in PAGE.read_text(encoding="utf-8"), (
        "write it again: python -m triton_porting_kit.conformance.tolerances"
    )


@pytest.mark.parametrize("name", TABLE)
def test_every_entry_has_a_reason_and_a_limit(name: str) -> None:
    entry = TABLE[name]
    assert len(entry.reason) > 20
    assert entry.ulp <= 0.5
    assert entry.allowed(np.array([1.0]), FP32, terms=1000)[0] < 2**-6


def test_half_a_unit_of_the_result() -> None:
    once = Tolerance("rounded once")
    np.testing.assert_array_equal(
        once.allowed(np.array([1.0, 1.99, 2.0, 0.0, -3.0]), FP16),
        np.array([2**-11, 2**-11, 2**-10, 2**-25, 2**-10]),
    )
    assert once.allowed(np.array([1.0]), BF16)[0] == 2**-8
    assert once.rule(FP16) == "0.5 ulp of fp16"


def test_beyond_the_type_nothing_more_is_allowed() -> None:
    assert np.isfinite(Tolerance("").allowed(np.array([1e300, np.inf]), FP16)).all()
    assert (
        expect("x", np.array([1e6]), "fp16", "vector_add").compare(np.array([np.inf], np.float16)).differ == 0
    )
    assert (
        expect("x", np.array([1e6]), "fp16", "vector_add").compare(np.array([65504], np.float16)).differ == 1
    )


def test_nan_is_nan_and_nothing_else() -> None:
    wanted = expect("x", np.array([np.nan, 1.0]), "fp32", "matmul")
    assert wanted.compare(np.array([np.nan, 1.0], np.float32)).differ == 0
    assert wanted.compare(np.array([0.0, np.nan], np.float32)).differ == 2


def test_roundings_are_of_the_scale() -> None:
    entry = Tolerance("", ulp=0, roundings=3)
    assert entry.allowed(np.array([1.0]), FP32, 8.0)[0] == 3 * 8 * 2**-24
    assert entry.allowed(np.array([1.0]), FP64, 8.0)[0] == 3 * 8 * 2**-53


def test_only_what_flushes_may_lose_denormals() -> None:
    tiny = np.array([2.0**-140])
    assert Tolerance("").allowed(tiny, FP32)[0] < tiny[0]
    assert Tolerance("", flushes=True).allowed(tiny, FP32)[0] > tiny[0]


def test_sums_lose_what_their_order_may_cost() -> None:
    assert lost(4) == 4
    assert lost(10_000) == 400
    random = np.random.default_rng(0)
    terms = random.standard_normal((2000, 300)).astype(np.float32)
    exact = terms.sum(axis=1, dtype=np.float64)
    wanted = expect("sums", exact, "fp32", "reduction", np.abs(terms).sum(axis=1, dtype=np.float64), 300)
    forward, pairs = np.cumsum(terms, axis=1)[:, -1], terms.sum(axis=1)
    backward = np.cumsum(terms[:, ::-1], axis=1)[:, -1]
    for order in (forward, backward, pairs):
        assert wanted.compare(order).differ == 0
    halves = terms.astype(np.float16).sum(axis=1).astype(np.float32)
    assert wanted.compare(halves).differ > 1500  # a sum in a narrower type is noticed in most places


def test_every_check_names_an_entry_in_its_requirement() -> None:
    reasons = {entry.reason for entry in TABLE.values()}
    for check in catalogue.checks(["kernels"]):
        assert isinstance(check.body, Problem)
        assert any(check.requirement.endswith(reason) for reason in reasons), check.name


def test_every_entry_is_used() -> None:
    sources = "".join(
        path.read_text(encoding="utf-8")
        for path in (Path(tolerances.__file__).parent / "kernels").glob("*.py")
    )
    assert [name for name in TABLE if f'"{name}"' not in sources] == []
