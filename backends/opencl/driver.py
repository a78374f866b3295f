"""The OpenCL driver: devices of installed platforms behind Triton's driver interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triton.backends.compiler import GPUTarget

from triton_porting_kit.driver import Device
from triton_porting_kit.driver.adapter import TritonDriver
from triton_porting_kit.launcher import PackedLauncher, PythonLauncher


class OpenCLDriver(TritonDriver):
    """Runs kernels on OpenCL devices. ``TPK_OPENCL_DEVICE`` chooses among them."""

    backend_name = "opencl"
    fallback = True  # many machines have OpenCL beside the chip that is meant

    @classmethod
    def is_available(cls) -> bool:
        from triton_porting_kit.driver.opencl import has_platforms

        return has_platforms()

    def make_device(self) -> Device:
        return self.make_devices()[0]

    def make_devices(self) -> Sequence[Device]:
        from triton_porting_kit.driver.opencl import open_devices

        return open_devices()

    def make_target(self, device: Device) -> GPUTarget:
        properties = device.properties()
        return GPUTarget(self.backend_name, properties.arch, properties.extra["warp_size"])

    def launcher_cls(self, source: Any, metadata: Any) -> PackedLauncher | PythonLauncher:
        """The callable that launches a compiled kernel; without a native launch routine, in Python."""
        entry = self.device.launch_entry()
        if entry is None:
            return PythonLauncher.of(source, metadata, self.device)
        return PackedLauncher(source, metadata, entry)
