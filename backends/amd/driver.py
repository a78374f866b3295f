"""The AMD driver: HIP devices behind Triton's driver interface, shared with torch for ROCm if that is loaded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from triton.backends.compiler import GPUTarget

from triton_porting_kit.driver import Device
from triton_porting_kit.driver.adapter import DriverUtils, TritonDriver

if TYPE_CHECKING:
    from triton_porting_kit.backends.amd.launcher import AMDLauncher


class AMDDriver(TritonDriver):
    """Runs kernels on AMD GPUs through HIP.

    If torch for ROCm is loaded, the current device and stream of a thread are torch's: kernels run where torch's
    operations run. torch is never imported for this.
    """

    backend_name = "amdgpu"
    torch_device = "cuda"  # torch's name for AMD GPUs, too
    benchmark_cache_bytes = 256 << 20

    def __init__(self) -> None:
        super().__init__()
        self.utils = AMDUtils(self)

    @classmethod
    def is_available(cls) -> bool:
        from triton_porting_kit.driver.hip import device_count

        return device_count() > 0

    def make_device(self) -> Device:
        return self.make_devices()[0]

    def make_devices(self) -> Sequence[Device]:
        """All devices that HIP sees, in the order of its numbers, which are also torch's."""
        from triton_porting_kit.driver.hip import open_devices

        return open_devices()

    def make_target(self, device: Device) -> GPUTarget:
        properties = device.properties()
        return GPUTarget("amdgpu", properties.arch, properties.warp_size)

    def launcher_cls(self, source: Any, metadata: Any) -> AMDLauncher:
        """The callable that launches a compiled kernel."""
        from triton_porting_kit.backends.amd.launcher import AMDLauncher  # not while Triton is imported

        return AMDLauncher(source, metadata, self.device)

    # --- with torch --------------------------------------------------------------------------------------

    def get_current_device(self) -> int:
        torch = rocm_torch()
        return super().get_current_device() if torch is None else int(torch.cuda.current_device())

    def set_current_device(self, device: int) -> None:
        self._check_device(device)
        torch = rocm_torch()
        if torch is None:
            super().set_current_device(device)
        else:
            torch.cuda.set_device(device)

    def get_current_stream(self, device: int | None = None) -> int:
        torch = rocm_torch()
        if torch is None:
            return super().get_current_stream(device)
        # As in Triton's own drivers: torch's public API creates an object at each launch.
        return int(
            torch._C._cuda_getCurrentRawStream(self.get_current_device() if device is None else device)
        )

    def set_current_stream(self, stream: int, device: int | None = None) -> None:
        torch = rocm_torch()
        if torch is None:
            super().set_current_stream(stream, device)
            return
        # This also sets the current device, which must stay.
        with torch.cuda.device(self.get_current_device()):
            if stream:
                torch.cuda.set_stream(torch.cuda.ExternalStream(stream, device=device))
            else:
                torch.cuda.set_stream(torch.cuda.default_stream(device))

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device(self.torch_device, self.get_current_device())

    def get_device_interface(self) -> Any:
        """``torch.cuda`` if it is shared, because kernels and torch then use the same events and streams; else the
        kit's.
        """
        torch = rocm_torch()
        return super().get_device_interface() if torch is None else torch.cuda


class AMDUtils(DriverUtils):
    """Tells Triton the registers of kernels, and devices the local memory of binaries that do not record it."""

    def find_function(self, device: Any, module: int, name: str, shared: int) -> tuple[int, int, int, int]:
        function = device.get_function(module, name, dynamic_lds=shared)
        found = device.resources(function)
        return function, found.registers, found.spills, device.properties().max_threads_per_program


def rocm_torch() -> Any:
    """torch, if it is loaded, is torch for ROCm and has a GPU; else None."""
    torch = sys.modules.get("torch")
    if torch is None or not getattr(getattr(torch, "version", None), "hip", None):
        return None
    # `cuda` is missing while torch is being imported.
    return torch if hasattr(torch, "cuda") and _has_gpu(torch) else None


@cache
def _has_gpu(torch: Any) -> bool:
    return bool(torch.cuda.is_available())
