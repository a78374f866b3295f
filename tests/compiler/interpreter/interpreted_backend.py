"""A backend whose kernels are interpreted: the host's memory, and the structured form in the place of a binary."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from triton.backends import Backend, backends
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from triton_porting_kit.backends.cpu.compiler import CPUBackend
from triton_porting_kit.backends.cpu.driver import CPUDriver
from triton_porting_kit.compiler import Pipeline, Stage, artefacts
from triton_porting_kit.compiler.dialect.interpreter import Kernel, Launch, Memory, read_kernel
from triton_porting_kit.compiler.dialect.interpreter.formats import dtype_of
from triton_porting_kit.driver import Device
from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.launcher import PythonLauncher

NAME = "interpreted"


def describe(source: Any, metadata: Any) -> bytes:
    """The last stage: the text, and what Triton and the launcher read of every kernel."""
    text = str(source)
    kernel = read_kernel(artefacts.parse_structured(text))
    metadata.update(name=kernel.name, scratch_bytes=0, shared=0)
    if kernel.promises:
        metadata["promises"] = list(kernel.promises)
    return text.encode()


class InterpretedCompiler(CPUBackend):
    """Compiles as far as the structured form."""

    name = NAME

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == NAME)

    def pipeline(self, options: Any) -> Pipeline:
        stages = super().pipeline(options).until("structured").stages
        return Pipeline((*stages, Stage("interpreted", describe)))


class InterpretedDevice(HostDevice):
    """The host's memory. A launch is interpreted; its arrays are the live allocations that its pointers lie in."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: dict[int, Kernel] = {}
        self.allocations: dict[int, int] = {}

    def launch_entry(self) -> None:  # type: ignore[override]
        return None

    def memalloc(self, size: int, alignment: int = 64) -> int:
        address = super().memalloc(size, alignment)
        self.allocations[address] = size
        return address

    def memfree(self, addr: int) -> None:
        super().memfree(addr)
        self.allocations.pop(addr, None)

    def load_module(self, binary: bytes, name: str) -> int:
        handle = 1 + len(self.kernels)
        self.kernels[handle] = read_kernel(artefacts.parse_structured(binary.decode()))
        return handle

    def unload_module(self, module: int) -> None:
        pass  # handles are not used again

    def get_function(self, module: int, name: str) -> int:
        return module

    def launch(self, function: int, grid: Sequence[int], stream: int, args: bytes) -> None:
        kernel = self.kernels[function]
        memory = Memory()
        for address, size in self.allocations.items():
            if size:
                content = np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.uint8)
                memory.add(content, f"memory at {address:#x}", address)
        x, y, z = (*grid, 1, 1)[:3]
        Launch(kernel, (x, y, z), memory).run(unpacked(kernel, args))


def unpacked(kernel: Kernel, block: bytes) -> list[Any]:
    """The values of a kernel's parameters, each of which lies at the next multiple of its size."""
    values, offset = [], 0
    for parameter in kernel.parameters:
        dtype = dtype_of(parameter.type)
        offset = -(-offset // dtype.itemsize) * dtype.itemsize
        values.append(np.frombuffer(block, dtype, 1, offset)[0])
        offset += dtype.itemsize
    return values


class InterpretedDriver(CPUDriver):
    """Never chosen but by name."""

    backend_name = NAME

    def make_device(self) -> Device:
        return InterpretedDevice()

    def make_target(self, device: Device) -> GPUTarget:
        return GPUTarget(NAME, platform.machine(), 1)

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        return PythonLauncher(source, metadata, self.device.launch)


@contextmanager
def interpreting(compiler: type[InterpretedCompiler] = InterpretedCompiler) -> Iterator[InterpretedDevice]:
    """While it is open, Triton's kernels are interpreted."""
    before = driver.active
    backends[NAME] = Backend(compiler=compiler, driver=InterpretedDriver)
    found = InterpretedDriver()
    try:
        driver.set_active(found)
        yield found.device  # type: ignore[misc]
    finally:
        driver.set_active(before)
        del backends[NAME]
