"""The CPU driver: the host device behind Triton's driver interface, launched by the packed launcher."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any, cast

from triton.backends.compiler import GPUTarget

from triton_porting_kit.backends.cpu import crashes
from triton_porting_kit.driver import Device
from triton_porting_kit.driver.adapter import TritonDriver
from triton_porting_kit.launcher import CheckedLauncher, PackedLauncher

if TYPE_CHECKING:
    from triton_porting_kit.driver.host import HostDevice


class CPUDriver(TritonDriver):
    """Runs kernels on the CPU's cores. Every machine has them, so any other device takes precedence."""

    backend_name = "cpu"
    fallback = True
    replay_runtime = "host"
    # A program is one thread, and nothing is copied ahead; num_warps only sets how often a kernel prints.
    unused_options = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg"})
    compiles_in_forks = True

    def make_device(self) -> Device:
        # Linking objects needs LLVM, which is not loaded before the device is used.
        from triton_porting_kit.driver.host import HostDevice

        return HostDevice()

    def make_target(self, device: Device) -> GPUTarget:
        return GPUTarget("cpu", platform.machine(), 1)

    def launcher_cls(self, source: Any, metadata: Any) -> PackedLauncher | CheckedLauncher:
        """The callable that launches a compiled kernel."""
        device = cast("HostDevice", self.device)
        crashes.explain(device, metadata)
        entry = device.launch_entry()
        on_host = self.torch_device == "cpu"
        if getattr(metadata, "check", ""):  # compilers that only resemble this one may lack it
            return CheckedLauncher(source, metadata, entry, device.allocation_of, on_host=on_host)
        return PackedLauncher(source, metadata, entry, on_host=on_host)
