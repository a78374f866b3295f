"""The OpenCL backend on the first device of this machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import specializations

from triton_porting_kit.driver.opencl import OpenCLDevice, has_platforms, platforms


def _opened(folder: Path, sharing: str) -> Iterator[OpenCLDevice]:
    """The backend as the active one, with a cache that starts empty.

    CI installs PoCL. Elsewhere its absence skips what needs a device; in CI it fails.
    """
    if not has_platforms():
        assert not os.environ.get("CI"), "CI has no OpenCL: install ocl-icd-libopencl1 and pocl-opencl-icd"
        pytest.skip("no OpenCL driver is installed on this machine")
    from triton.runtime import driver

    from triton_porting_kit.backends.opencl.driver import OpenCLDriver

    previous = driver.active  # chosen before the variable below names this backend
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_DEFAULT_BACKEND", "opencl")
        patch.setenv("TRITON_CACHE_DIR", str(folder))
        patch.setenv("TPK_OPENCL_SVM", sharing)
        platforms._all.cache_clear()  # the variable is read once
        specializations.forget()
        driver.set_active(type(f"Sharing{sharing}", (OpenCLDriver,), {})())  # a class has one object
        yield driver.active.device
        specializations.forget()
        driver.set_active(previous)
        platforms._all.cache_clear()
        # PoCL has a handler, and later tests want processes to die.
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)


@pytest.fixture(scope="module")
def opencl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenCLDevice]:
    """The first device, with shared virtual memory."""
    yield from _opened(tmp_path_factory.mktemp("opencl-cache"), "1")


@pytest.fixture(scope="module")
def buffers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenCLDevice]:
    """The same device as one without shared virtual memory."""
    yield from _opened(tmp_path_factory.mktemp("buffers-cache"), "0")
