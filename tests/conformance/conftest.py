"""Shared by the tests of the table of operations."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _on_the_cpu(cpu_backend: None) -> None:
    """Every test here runs on the CPU backend."""
