"""Ranks for the tests of groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from triton.compiler.compiler import CompiledKernel

from triton_porting_kit.conformance.distributed.workers import Workers
from triton_porting_kit.distributed.model import running
from triton_porting_kit.toolchain import compat


@pytest.fixture(scope="module", autouse=True)
def launchers_of_other_tests() -> Iterator[None]:
    """The model wraps the launchers of its process for good, and tests of other folders look at theirs."""
    by_triton = CompiledKernel._init_handles
    yield
    if CompiledKernel._init_handles is not by_triton:
        CompiledKernel._init_handles = by_triton
        running._wrap_launchers.cache_clear()
        compat.forget_loaded_kernels()


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
