"""Shared by the tests of the command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EXECUTION = Path(__file__).parents[1] / "execution"


@pytest.fixture(scope="session", autouse=True)
def fake_catalogue(cpu_backend: None) -> Iterator[None]:
    """Let processes import the catalogue of the tests of running checks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(EXECUTION), prepend=":")
        patch.setattr(sys, "path", [*sys.path, str(EXECUTION)])
        yield
