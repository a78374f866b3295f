"""Ranks for the tests of groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from triton_porting_kit.conformance.distributed.workers import Workers


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of kernels that all workers share."""
    return tmp_path_factory.mktemp("distributed-cache")


@pytest.fixture(scope="session")
def workers(cache: Path) -> Iterator[Workers]:
    """Four processes, for groups of up to four ranks. Tests that lose one start their own."""
    found = Workers(4, cache, programs=Path(__file__).parent)
    yield found
    found.close()
