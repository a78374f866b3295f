from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hip_kernels import CodeObjects
from standin_library import Standin, build, leaks

from triton_porting_kit.driver.hip import HipDevice


@pytest.fixture(scope="session")
def standin_path(request: pytest.FixtureRequest) -> Path:
    """The stand-in for libamdhip64.so, built where it is not yet."""
    return build(Path(request.config.cache.mkdir("hip-standin")))


@pytest.fixture(scope="session")
def standin_library(standin_path: Path) -> Standin:
    return Standin(standin_path)


@pytest.fixture(scope="session")
def code_objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodeObjects]:
    """Kernels that Triton's own AMD backend compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton-cache")))
        yield CodeObjects()


@pytest.fixture
def standin(standin_library: Standin, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    """The stand-in with one gfx942; what a test leaves live there or gets wrong is an error."""
    monkeypatch.setenv("TPK_HIP_LIBRARY", str(standin_library.path))
    standin_library.configure("gfx942")
    yield standin_library
    standin_library.disarm()
    left = {kind: count for kind, count in standin_library.live().items() if count}
    undefined = standin_library.undefined()
    standin_library.configure("gfx942")
    assert not left
    assert not undefined


@pytest.fixture
def open_device(standin: Standin) -> Iterator[Callable[..., HipDevice]]:
    """Opens devices, which must not leave anything behind, and give back what they keep when they are closed."""
    opened: list[HipDevice] = []

    def open_one(index: int = 0) -> HipDevice:
        opened.append(HipDevice(index))
        return opened[-1]

    yield open_one
    standin.disarm()
    for device in opened:
        device.synchronize()
    left = leaks(standin)
    for device in opened:
        device._native.close()
    assert not left
    assert not any(standin.live().values())


@pytest.fixture
def device(open_device: Callable[..., HipDevice]) -> HipDevice:
    return open_device()
