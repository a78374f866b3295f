"""`make test` runs these tests in a process of their own: torch wants its device before autograd or Inductor is used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # a process has one device, here that of `host_backend`
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # other processes lack the backend of these tests
torch = pytest.importorskip("torch")


@pytest.fixture(scope="session")
def inductor_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of Inductor's that no other process writes."""
    folder = tmp_path_factory.mktemp("inductor")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="session")
def chip(inductor_cache: Path) -> Any:
    """The module of a torch device whose memory is the host's."""
    from host_backend import register

    return register()


@pytest.fixture(autouse=True)
def reset(chip: Any) -> Iterator[None]:
    """Each test counts the operators that run on the CPU anew."""
    chip.reset_fallbacks()
    chip.set_fallback("silent")
    yield
    torch._dynamo.reset()
