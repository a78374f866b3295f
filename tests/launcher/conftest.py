"""Fixtures of the launcher's tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from launcher_helpers import RecordingDevice, Strategy

from triton_porting_kit.toolchain import compat


@pytest.fixture(params=["packed", "generated", "python"])
def strategy(request: pytest.FixtureRequest) -> Strategy:
    return Strategy(request.param)


@pytest.fixture(params=[("padding",), ("padding", "round_f32_to_tf32")], ids=len)
def descriptor_flags(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The flags that a tensor descriptor has in one release of Triton or another."""
    flags: tuple[str, ...] = request.param
    monkeypatch.setattr(compat, "descriptor_flags", lambda: flags)
    return flags


@pytest.fixture
def device() -> RecordingDevice:
    return RecordingDevice()


@pytest.fixture(scope="session", autouse=True)
def launcher_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All tests build into a cache of their own, and share what they build."""
    folder = tmp_path_factory.mktemp("launcher-cache")
    before = os.environ.get("TPK_CACHE_DIR")
    os.environ["TPK_CACHE_DIR"] = str(folder)
    yield folder
    if before is None:
        del os.environ["TPK_CACHE_DIR"]
    else:
        os.environ["TPK_CACHE_DIR"] = before
