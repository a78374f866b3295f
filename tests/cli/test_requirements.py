"""Ranges of releases."""

from __future__ import annotations

import pytest

from triton_porting_kit.cli.requirements import tried_range, within


@pytest.mark.parametrize(
    ("version", "specifier", "fits"),
    [
        ("3.9.0", ">=3.9.0,<3.10", True),
        ("3.9.1+git123", ">=3.9.0,<3.10", True),
        ("3.9", ">=3.9.0", True),
        ("3.10.0", ">=3.9.0,<3.10", False),
        ("3.8.1", ">=3.9.0,<3.10", False),
        ("4", "<=4.0,>3", True),
        ("1.0", "", True),
    ],
)
def test_within(version: str, specifier: str, fits: bool) -> None:
    assert within(version, specifier) == fits


def test_range_of_a_dependency() -> None:
    assert within("3.9.0", tried_range("triton"))
    assert not within("2.0", tried_range("Triton"))
    assert tried_range("nothing-like-it") == ""
