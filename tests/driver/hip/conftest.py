from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hip_kernels import CodeObjects
from standin_library import Standin, build


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
def standin(standin_library: Standin) -> Iterator[Standin]:
    """The stand-in with one gfx942; what a test leaves live there or gets wrong is an error."""
    standin_library.configure("gfx942")
    yield standin_library
    standin_library.disarm()
    left = {kind: count for kind, count in standin_library.live().items() if count}
    undefined = standin_library.undefined()
    standin_library.configure("gfx942")
    assert not left
    assert not undefined
