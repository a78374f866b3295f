"""A device on a library that can fail, and what it leaves after many launches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from failing_library import FailingLibrary

from triton_porting_kit.driver.opencl import OpenCLDevice, device, open_library, programs


@triton.jit
def add_one(X, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(X + i, tl.load(X + i, mask=i < n) + 1, mask=i < n)


class Failing:
    """A device on a library that can fail, with a kernel that adds 1 to 100 floats."""

    def __init__(self, opencl: OpenCLDevice, library: FailingLibrary, binary: bytes) -> None:
        self.library, self.info, self.binary = library, opencl.info, binary
        self.device = OpenCLDevice(opencl.info)
        self.load()

    def load(self) -> None:
        self.function = self.device.get_function(self.device.load_module(self.binary, "add_one"), "add_one")
        self.address = self.device.memalloc(400)
        self.device.memset(self.address, 0, 400)
        self.device.synchronize()

    def launch(self) -> None:
        block = np.uint64(self.address).tobytes() + np.int32(100).tobytes() + bytes(4)
        self.device.launch(self.function, (2,), 0, block)

    def values(self) -> Any:
        found = np.empty(100, np.float32)
        self.device.memcpy_dtoh(found, self.address)
        self.device.synchronize()
        return found


class Pointer:
    dtype = "float32"

    def __init__(self, address: int) -> None:
        self.address = address

    def data_ptr(self) -> int:
        return self.address


def failing_on(opencl: OpenCLDevice, patch: pytest.MonkeyPatch) -> Iterator[Failing]:
    """A second device for the same one of OpenCL's, with a context of its own."""
    library = FailingLibrary(open_library().path)
    for module in (device, programs):
        patch.setattr(module, "open_library", lambda: library)
    patch.setattr(programs, "_CONTEXTS", {})
    x = triton.runtime.driver.active.device.memalloc(400)
    compiled: Any = add_one.warmup(Pointer(x), 100, B=64, grid=(2,))
    yield Failing(opencl, library, compiled.asm["clbin"])
    library.failures.clear()


def check_that_launches_leave_nothing(failing: Failing) -> None:
    """Of 10,000: no object of OpenCL's, and no memory of this process."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    def launches(count: int) -> None:
        for number in range(count):
            failing.launch()
            if number % 100 == 0:
                failing.device.synchronize()
        failing.device.synchronize()

    launches(1000)
    live, before = failing.library.live.copy(), resident()
    launches(10_000)
    assert failing.library.live == live
    assert resident() - before < 4 << 20
    assert (failing.values() == 11_000).all()
