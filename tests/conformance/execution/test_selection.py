"""Choosing checks by expressions."""

from __future__ import annotations

import pytest

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.execution.selection import SelectionError, select

NAMES = ("language/a/add-fp32", "language/a/add-fp32-long", "language/b/mul-fp64", "runtime/memory/Add")
CHECKS = [Check(name, "It works.", lambda context: None) for name in NAMES]


def chosen(*expressions: str) -> list[int]:
    return [NAMES.index(check.name) for check in select(CHECKS, expressions)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("language/*", [0, 1, 2]),
        ("*/add-*", [0, 1]),
        ("language/a/add-fp32", [0]),  # a name, not a part of one
        ("fp32", [0, 1]),
        ("add", [0, 1, 3]),
        ("not language/*", [3]),
        ("add and not fp32", [3]),
        ("fp64 or fp32 and long", [1, 2]),
        ("(fp64 or fp32) and long", [1]),
        ("not (fp64 or fp32)", [3]),
        ("not not fp64", [2]),
        ("language/?/mul*", [2]),
        ("*fp[36]?", [0, 2]),
        ("nothing", []),
    ],
)
def test_expressions(expression: str, expected: list[int]) -> None:
    assert chosen(expression) == expected


def test_several_expressions_add_up() -> None:
    assert chosen("fp64", "runtime/*") == [2, 3]


@pytest.mark.parametrize("expression", ["", "and", "fp32 fp64", "(fp32", "fp32)", "not", "fp32 or", "()"])
def test_what_is_no_expression(expression: str) -> None:
    with pytest.raises(SelectionError, match="is not a valid selection"):
        chosen(expression)
