"""A driver without a device: kernels are compiled for a target and not launched."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import driver as runtime_driver

from triton_porting_kit.conformance.code_objects.architectures import find
from triton_porting_kit.errors import PortingKitError

_UNLIMITED = 1 << 30


class TargetError(PortingKitError):
    """A target is not ``BACKEND:ARCH:WARP``."""


def parse_target(text: str) -> GPUTarget:
    """Parse a target such as ``hip:gfx942:64``. An architecture of digits becomes a number, as for CUDA."""
    parts = text.split(":")
    if len(parts) != 3 or not all(parts) or not parts[2].isdigit():
        raise TargetError(
            f"target {text!r} is not BACKEND:ARCH:WARP, for example hip:gfx942:64 or cuda:90:32"
        )
    name, arch, warp = parts
    return GPUTarget(name, int(arch) if arch.isdigit() else arch, int(warp))


@dataclass(frozen=True)
class Binary:
    """The compiled binary of a kernel."""

    name: str
    content: bytes


@dataclass(frozen=True)
class Launch:
    """A recorded launch. `source` and `metadata` are the objects that Triton passes to a launcher."""

    binary: Binary
    source: Any
    metadata: Any


class _Utils:
    """The driver's module loader for Triton, without a device. The handle of a function is that of its module."""

    def __init__(self, target: GPUTarget) -> None:
        self.binaries: dict[int, Binary] = {}
        self._handles = itertools.count(1)
        architecture = find(target.arch)
        self._shared = architecture.lds if architecture else _UNLIMITED

    def load_binary(
        self, name: str, kernel: bytes, shared: int, device: int
    ) -> tuple[int, int, int, int, int]:
        handle = next(self._handles)
        self.binaries[handle] = Binary(name, kernel)
        return handle, handle, 0, 0, 1 << 20

    def unload_module(self, module: int) -> None:
        self.binaries.pop(module, None)

    def get_device_properties(self, device: int) -> dict[str, Any]:
        return {
            "max_shared_mem": self._shared,
            "multiprocessor_count": 1,
            "warpSize": 32,
            "max_num_regs": 1 << 16,
        }


class CompileOnlyDriver(DriverBase):  # type: ignore[misc]
    """Replaces the driver of a target. `launched` holds the launches since it was last cleared.

    If the target's architecture is known, Triton refuses kernels that need more on-chip memory than it has, as on the
    device.
    """

    def __init__(self, target: GPUTarget) -> None:
        self._target = target
        self.utils = _Utils(target)
        self.launched: list[Launch] = []

    @classmethod
    def install(cls, target: GPUTarget) -> CompileOnlyDriver:
        """Create an instance and make it the active driver of this process."""
        made = cls(target)
        runtime_driver.set_active(made)
        return made

    @classmethod
    def is_active(cls) -> bool:
        return False  # must not be found by registration

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        """A launcher that only records launches."""

        def launch(gx: int, gy: int, gz: int, stream: int, function: int, *args: Any) -> None:
            self.launched.append(Launch(self.utils.binaries[function], source, metadata))

        return launch

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        raise NotImplementedError("kernels are compiled only")

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_benchmarker(self) -> Any:
        return lambda call, **options: (call(), 0.0)[1]
