"""The AMD driver."""

from __future__ import annotations

from typing import Any

from triton.backends.compiler import GPUTarget

from triton_porting_kit.driver import Device
from triton_porting_kit.driver.adapter import TritonDriver


class AMDDriver(TritonDriver):
    """Runs kernels on AMD's GPUs through HIP."""

    backend_name = "amdgpu"

    @classmethod
    def is_available(cls) -> bool:
        return False

    def make_device(self) -> Device:
        raise NotImplementedError

    def make_target(self, device: Device) -> GPUTarget:
        raise NotImplementedError

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        raise NotImplementedError
