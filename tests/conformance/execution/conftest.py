"""Shared by the tests of running checks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session", autouse=True)
def fake_catalogue(cpu_backend: None) -> Iterator[None]:
    """Let workers import the catalogue of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(HERE), prepend=":")
        patch.setattr(sys, "path", [*sys.path, str(HERE)])
        yield
