"""Shared by the tests that run kernels in this process."""

from __future__ import annotations

import gc
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import triton  # noqa: F401  (Triton loads the kit's backends: it has to come before they are half imported)
from hypothesis import HealthCheck, settings
from installing import build_wheel, copy_sources

# Launch code, and Triton's digest of itself, are made once for the processes of all tests; those of pytest-xdist inherit it.
if "TPK_CACHE_DIR" not in os.environ:
    _made = tempfile.TemporaryDirectory(prefix="tpk-tests-")
    os.environ["TPK_CACHE_DIR"] = _made.name

# What the importer makes is held against the declarations of its operations, as vendors' stages may rely on.
os.environ.setdefault("TPK_VERIFY", "1")

if len(os.sched_getaffinity(0)) == 1:
    # Some kernels' programs wait for each other, so that they need two threads.
    os.environ.setdefault("TPK_NUM_THREADS", "2")


# The same examples at each run, however long one takes. Triton's front end alone is too slow for Hypothesis.
settings.register_profile(
    "tests", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")


def pytest_collection_finish() -> None:
    """Exclude modules and tests from garbage collection, which takes 3 % of the time of tests otherwise."""
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Include them again: at the end of a process, libraries report what is left."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def same_random_numbers() -> None:
    """Tests that draw numbers without a seed draw the same ones, whichever tests ran before them in this process."""
    random.seed(0)
    if (torch := sys.modules.get("torch")) is not None:
        torch.default_generator.manual_seed(0)


@pytest.fixture(scope="session")
def cpu_backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Choose the CPU backend, and a cache that starts empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_DEFAULT_BACKEND", "cpu")
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton-cache")))
        yield


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree, whose build folder all builds share."""
    return copy_sources(tmp_path_factory.mktemp("packaging") / "sources")


@pytest.fixture(scope="session")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kit's wheel; for tests of `installing.GROUP`."""
    return build_wheel(sources, tmp_path_factory.mktemp("wheel"))
