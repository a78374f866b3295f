"""Access to device memory: through the kit's `Device`, through torch, or as host memory if kernels do not run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triton_porting_kit.driver import DEFAULT_STREAM, DeviceArray

Bytes = NDArray[np.uint8]


class Block(ABC):
    """Bytes of device memory, freed with this object."""

    address: int
    size: int

    @abstractmethod
    def write(self, content: Bytes) -> None:
        """Fill the whole block."""

    @abstractmethod
    def read(self) -> Bytes:
        """Read the whole block after all work in flight."""

    @abstractmethod
    def copy_from(self, other: Block) -> None:
        """Copy another block of the same size on the device. The copy may still be in flight on return."""


class MemoryAccess(ABC):
    """Allocates memory for the arguments of kernels."""

    kit_device: Any = None
    """The kit's `Device`, if the backend uses one."""
    runs: bool = True
    """Whether kernels are executed."""

    @abstractmethod
    def allocate(self, size: int) -> Block:
        """Allocate a block of `size` bytes, aligned to at least 64 bytes, with undefined content."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for all work in flight, and raise its errors."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Properties of the device, for the report."""

    def reset(self) -> None:
        """Reset the device to its initial state. If that is not possible, wait for work in flight."""
        self.synchronize()


# --- the kit's devices -------------------------------------------------------------------------------


class _KitBlock(Block):
    def __init__(self, device: Any, size: int) -> None:
        self._array = DeviceArray.empty(max(size, 1), "uint8", device)
        self.address, self.size = self._array.data_ptr(), size

    def write(self, content: Bytes) -> None:
        self._array.device.memcpy_htod(self.address, np.ascontiguousarray(content))
        self._array.device.synchronize(DEFAULT_STREAM)  # without waiting for other streams

    def read(self) -> Bytes:
        content: Bytes = np.empty(self.size, np.uint8)
        self._array.device.synchronize()
        self._array.device.memcpy_dtoh(content, self.address)
        self._array.device.synchronize()
        return content

    def copy_from(self, other: Block) -> None:
        self._array.device.memcpy_dtod(self.address, other.address, self.size)
        self._array.device.synchronize(DEFAULT_STREAM)


class KitMemory(MemoryAccess):
    """Memory of a `triton_porting_kit.driver.Device`."""

    def __init__(self, device: Any) -> None:
        self.kit_device = device

    def allocate(self, size: int) -> Block:
        return _KitBlock(self.kit_device, size)

    def synchronize(self) -> None:
        self.kit_device.synchronize()

    def describe(self) -> dict[str, Any]:
        properties = self.kit_device.properties()
        names = (
            "name", "arch", "memory_bytes", "max_allocation_bytes", "core_count", "max_scratch_bytes",
            "max_dram_scratch_bytes", "warp_size", "modules_are_source",
        )  # fmt: skip
        return {"memory": "kit", **{name: getattr(properties, name) for name in names}}

    def reset(self) -> None:
        self.kit_device.reset()


# --- torch -------------------------------------------------------------------------------------------


class _TorchBlock(Block):
    def __init__(self, torch: Any, device: str, size: int) -> None:
        self._torch = torch
        self._tensor = torch.empty(size, dtype=torch.uint8, device=device)
        self.address, self.size = self._tensor.data_ptr(), size

    def write(self, content: Bytes) -> None:
        self._tensor.copy_(self._torch.from_numpy(np.ascontiguousarray(content)))

    def read(self) -> Bytes:
        return np.asarray(self._tensor.cpu().numpy())

    def copy_from(self, other: Block) -> None:
        assert isinstance(other, _TorchBlock)
        self._tensor.copy_(other._tensor)


class TorchMemory(MemoryAccess):
    """Memory of a torch device such as ``cuda``, for backends that use torch's memory."""

    def __init__(self, device: str) -> None:
        import torch

        self._torch, self.device = torch, device

    def allocate(self, size: int) -> Block:
        return _TorchBlock(self._torch, self.device, size)

    def synchronize(self) -> None:
        if self.device != "cpu":
            self._torch.accelerator.synchronize()

    def describe(self) -> dict[str, Any]:
        found: dict[str, Any] = {"memory": f"torch:{self.device}", "torch": self._torch.__version__}
        if self.device.startswith("cuda"):
            properties = self._torch.cuda.get_device_properties(self.device)
            found |= {
                "name": properties.name,
                "memory_bytes": properties.total_memory,
                "core_count": properties.multi_processor_count,
            }
        return found


# --- compile-only ------------------------------------------------------------------------------------


class _HostBlock(Block):
    def __init__(self, size: int) -> None:
        self._content: Bytes = np.zeros(size + 64, np.uint8)
        start = -self._content.ctypes.data % 64
        self._view = self._content[start : start + size]
        self.address, self.size = self._view.ctypes.data, size

    def write(self, content: Bytes) -> None:
        self._view[:] = content

    def read(self) -> Bytes:
        return self._view.copy()

    def copy_from(self, other: Block) -> None:
        assert isinstance(other, _HostBlock)
        self._view[:] = other._view


class HostMemory(MemoryAccess):
    """Host memory for kernels that are compiled but not run."""

    runs = False

    def allocate(self, size: int) -> Block:
        return _HostBlock(size)

    def synchronize(self) -> None:
        pass

    def describe(self) -> dict[str, Any]:
        return {"memory": "none: kernels are compiled only"}
