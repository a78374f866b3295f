"""Paths in reports say what is the same everywhere."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import triton

from triton_porting_kit.conformance.paths import without_roots


def test_packages_lose_where_they_are_installed() -> None:
    where = Path(triton.__file__)
    assert without_roots(f'File "{where}", line 3') == 'File "triton/__init__.py", line 3'


def test_nested_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/somewhere", "/somewhere/deeper", "", "/"])
    assert without_roots("/somewhere/deeper/a.py /somewhere/b.py /else/c.py") == "a.py b.py /else/c.py"
