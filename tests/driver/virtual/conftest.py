from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chips import Chip, is_running

SOURCE = Path(__file__).with_name("kernels.c")


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., bytes]:
    """Makes a shared object of C text with the system's compiler."""

    def compiled(text: str, *options: str, kind: str = "-shared") -> bytes:
        folder = tmp_path_factory.mktemp("kernels")
        (folder / "kernels.c").write_text(text)
        command = ["cc", "-O1", kind, "-fPIC", *options, "-o", folder / "kernels.so", folder / "kernels.c"]
        subprocess.run(command, check=True, capture_output=True)
        return (folder / "kernels.so").read_bytes()

    return compiled


@pytest.fixture(scope="session")
def kernels(build: Callable[..., bytes]) -> bytes:
    """The shared object of kernels.c."""
    return build(SOURCE.read_text())


@pytest.fixture
def chip() -> Iterator[Chip]:
    """A chip of 2 cores that leaves nothing behind."""
    with Chip(cores=2, memory_bytes=2 << 30, watchdog_ms=20000) as opened:
        yield opened
        try:
            process = opened.process()
        except Exception:
            process = 0
    assert not process or not is_running(process)
