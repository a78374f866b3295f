"""The OpenCL backend on the first device of this machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
import specializations

from triton_porting_kit.driver.opencl import OpenCLDevice, has_platforms


@pytest.fixture(scope="module")
def opencl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenCLDevice]:
    """Choose the backend, with a cache that starts empty.

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
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("opencl-cache")))
        specializations.forget()
        driver.set_active(OpenCLDriver())
        yield driver.active.device
        specializations.forget()
        driver.set_active(previous)
        # PoCL has a handler, and later tests want processes to die.
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
