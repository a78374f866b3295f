"""A fresh environment with the kit's wheel, and repositories made there."""

from __future__ import annotations

from pathlib import Path

import pytest
from generated import Maker, Repository
from installing import environment, pip


@pytest.fixture(scope="session")
def maker() -> Maker:
    return Maker()


@pytest.fixture(scope="session")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment in which the kit's wheel is installed, and nothing of this source tree is seen."""
    folder = tmp_path_factory.mktemp("fresh") / "env"
    python = environment(folder)
    pip("install", "--no-deps", "--ignore-installed", wheel, python=python)
    return folder / "bin"


@pytest.fixture(
    scope="session", params=["short npu", "normal cores", "long npu", "long cores", "normal mlir"]
)
def repository(
    request: pytest.FixtureRequest, maker: Maker, fresh: Path, tmp_path_factory: pytest.TempPathFactory
) -> Repository:
    """A repository with names of this length, for a chip of this shape."""
    length, shape = request.param.split()
    return maker.make(fresh / "tpk", length, tmp_path_factory.mktemp("generated"), shape)
