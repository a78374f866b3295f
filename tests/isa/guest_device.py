"""A device whose kernels run in a `Guest`, behind the CPU backend: Triton programs on any level of instructions."""

from __future__ import annotations

import ctypes
import math
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

from guest import Guest, GuestDied, Service
from guest_program import BASE, FLOATS, SIZE
from triton.backends import Backend, backends
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from triton_porting_kit.backends.cpu.compiler import CPUBackend
from triton_porting_kit.backends.cpu.driver import CPUDriver
from triton_porting_kit.compiler import CpuTarget, IsaLevel
from triton_porting_kit.driver import Device, DeviceProperties
from triton_porting_kit.driver.host import _host
from triton_porting_kit.errors import AssertionFailed, DeviceLost, InvalidModule, LaunchError
from triton_porting_kit.launcher import PythonLauncher


class GuestDevice(Device):
    """Synchronous, with the default stream only. A kernel that crashes raises `DeviceLost`; memory stays.

    `runs`: kernels do. Else they are compiled only, and launches leave memory as it is.
    """

    def __init__(self, level: IsaLevel, runs: bool) -> None:
        self._level, self._runs = level, runs
        self.guest = Guest(level.target() if runs else CpuTarget.host(), _services())
        self._free: dict[int, list[int]] = {}
        self._sizes: dict[int, int] = {}
        self._kernels: dict[int, tuple[str, dict[str, int]]] = {}

    def properties(self) -> DeviceProperties:
        name = f"a guest of level {self._level.name}"
        return DeviceProperties(name, self._level.arch, SIZE, 1, 1 << 30, max_threads_per_program=1 << 20)

    def memalloc(self, size: int, alignment: int = 64) -> int:
        rounded = max(1 << (max(size, 1) - 1).bit_length(), alignment, 256)
        free = self._free.setdefault(rounded, [])
        address = free.pop() if free else self.guest.allocate(rounded, min(rounded, 4096))
        self._sizes[address] = rounded
        return address

    def memfree(self, addr: int) -> None:
        self._free[self._sizes.pop(addr)].append(addr)

    def memcpy_htod(self, dst: int, src: Any, stream: int = 0) -> None:
        content = memoryview(src).cast("B")
        self.guest.view(dst, len(content))[:] = content

    def memcpy_dtoh(self, dst: Any, src: int, stream: int = 0) -> None:
        content = memoryview(dst).cast("B")
        content[:] = self.guest.view(src, len(content))

    def memcpy_dtod(self, dst: int, src: int, size: int, stream: int = 0) -> None:
        self.guest.view(dst, size)[:] = bytes(self.guest.view(src, size))

    def memset(self, dst: int, value: int, size: int, stream: int = 0) -> None:
        self.guest.view(dst, size)[:] = bytes([value]) * size

    def synchronize(self, stream: int | None = None) -> None:
        """Launches and copies have ended when their calls return."""

    def load_module(self, binary: bytes, name: str) -> int:
        if not self._runs:
            return 1
        try:
            symbols = self.guest.load(binary)
        except LookupError as error:
            raise InvalidModule(f"kernel '{name}': {error}") from error
        self._kernels[symbols[name]] = name, symbols
        return symbols[name]

    def unload_module(self, module: int) -> None:
        self._kernels.pop(module, None)

    def get_function(self, module: int, name: str) -> int:
        return module

    def launch(self, function: int, grid: Sequence[int], stream: int, args: bytes) -> None:
        if not self._runs:
            return
        name, symbols = self._kernels[function]
        x, y, z = (*grid, 1, 1)[:3]
        sizes = memoryview(self.guest.view(symbols[f"{name}__scratch_bytes"], 16)).cast("q")
        scratch, block = self.memalloc(sizes[0]), self.memalloc(len(args))
        self.memset(scratch, 0, sizes[1])
        self.memcpy_htod(block, args)
        try:
            code = self.guest.call(function, block, scratch, (0, math.prod((x, y, z))), (x, y, z))
        except GuestDied as error:
            raise DeviceLost(f"kernel '{name}': {error}") from error
        finally:
            self.memfree(block)
            self.memfree(scratch)
        if code:
            raise LaunchError(f"kernel '{name}' returned {code}")


def _services() -> dict[str, Service]:
    """The host's routines: those of this process, called with pointers that it can follow."""
    native: Mapping[str, int] = {**_host.functions, "tpk_host_print": _host.services["tpk_host_print"]}
    return {
        **{name: _called(address) for name, address in native.items()},
        **{name: _float("d", name) for name in FLOATS},
        **{f"{name}f": _float("f", f"{name}f") for name in FLOATS},
        "tpk_host_fail": _fail,
        "tpk_host_nanoseconds": lambda guest, arguments: time.monotonic_ns(),
    }


def _called(address: int) -> Service:
    routine = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 8)(address)

    def call(guest: Guest, arguments: tuple[int, ...]) -> int:
        # More than a routine takes does no harm; what is no pointer is a count.
        routine(*(guest.host_pointer(a) if BASE <= a < BASE + SIZE else a for a in arguments))
        return 0

    return call


def _float(format: str, name: str) -> Service:
    """A function of floats of this process's C library."""
    type = {"f": ctypes.c_float, "d": ctypes.c_double}[format]
    count = FLOATS[name.removesuffix("f")]
    routine = ctypes.CFUNCTYPE(type, *[type] * count)((name, ctypes.CDLL("libm.so.6")))

    def call(guest: Guest, arguments: tuple[int, ...]) -> int:
        values = [struct.unpack_from(format, struct.pack("<q", a))[0] for a in arguments[:count]]
        return int.from_bytes(struct.pack(format, routine(*values)), "little", signed=True)

    return call


def _fail(guest: Guest, arguments: tuple[int, ...]) -> int:
    raise AssertionFailed(ctypes.string_at(guest.host_pointer(arguments[0])).decode())


def use(level: IsaLevel, *, runs: bool) -> GuestDevice:
    """Make Triton compile for a level in this process, and launch in a guest: the device."""
    device = GuestDevice(level, runs)

    class LevelBackend(CPUBackend):
        def default_options(self) -> Mapping[str, Any]:
            return {**super().default_options(), **level.options()}

    class LevelDriver(CPUDriver):
        def make_device(self) -> Device:
            return device

        def make_target(self, device: Device) -> GPUTarget:
            return GPUTarget("cpu", level.arch, 1)

        def launcher_cls(self, source: Any, metadata: Any) -> Any:
            return PythonLauncher(source, metadata, device.launch)

    backends["cpu"] = Backend(compiler=LevelBackend, driver=LevelDriver)
    driver.set_active(LevelDriver())
    return device
