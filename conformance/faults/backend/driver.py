"""The host device, its driver and a launcher in Python, with a fault in one of them."""

from __future__ import annotations

import platform
from typing import Any

from triton.backends.compiler import GPUTarget

from triton_porting_kit.backends.cpu import driver as cpu
from triton_porting_kit.conformance.faults.backend import FAULT, NAME, SEAMS
from triton_porting_kit.driver import Device, NativeLaunchEntry
from triton_porting_kit.driver.adapter import DriverUtils
from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.launcher import PythonLauncher


class FaultyDevice(HostDevice):
    """The host device. Kernels are launched by the hook in Python, so that faults can be planted."""

    def launch_entry(self) -> NativeLaunchEntry | None:  # type: ignore[override]
        return None


class FaultyLauncher(PythonLauncher):
    """Fills the argument block and launches in Python. Faults replace its last three steps."""

    def __init__(self, source: Any, metadata: Any, launch: Any) -> None:
        super().__init__(source, metadata, self._send)
        self._device_launch = launch

    def _send(self, function: int, grid: tuple[int, int, int], stream: int, block: bytes) -> Any:
        return self._device_launch(function, self.grid(grid), self.stream(stream), self.block(block))

    def grid(self, grid: tuple[int, int, int]) -> tuple[int, int, int]:
        """The grid that the device receives."""
        return grid

    def stream(self, stream: int) -> int:
        """The stream that the launch goes to."""
        return stream

    def block(self, block: bytes) -> bytes:
        """The argument block that the device receives."""
        return block


class FaultyUtils(DriverUtils):
    """The driver's functions that Triton's compiled kernels call."""


class FaultyDriver(cpu.CPUDriver):
    """The driver of the test backend, which is only selected by name."""

    backend_name = NAME
    fallback = True

    def __init__(self) -> None:
        super().__init__()
        self.utils = FaultyUtils(self)

    def make_device(self) -> Device:
        return FaultyDevice()

    def make_target(self, device: Device) -> GPUTarget:
        # The fault is part of the target, so that caches keep the kernels of different faults apart.
        return GPUTarget(NAME, f"{platform.machine()}-{FAULT.name}", 1)

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        return FaultyLauncher(source, metadata, self.device.launch)


SEAMS.patch("device", FaultyDevice)
SEAMS.patch("launcher", FaultyLauncher)
SEAMS.patch("utils", FaultyUtils)
SEAMS.patch("driver", FaultyDriver)
