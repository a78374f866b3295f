"""The memory of tensors: a caching allocator over the hooks `memalloc` and `memfree`.

`memfree` waits for work in flight, and the hooks of some chips take long. So the allocator keeps the blocks of freed
tensors and gives them to later tensors of the same stream.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from triton_porting_kit.driver.device import Device
from triton_porting_kit.errors import DeviceError, InvalidArgument, OutOfMemory
from triton_porting_kit.pytorch._storage import Pool

ALIGNMENT = 256
"""Bytes. Inductor assumes 16; wide vector units want 64 and more."""

_PICTURE_WIDTH = 64

DLPACK_TYPES: dict[torch.dtype, tuple[int, int]] = {
    torch.int8: (0, 8),
    torch.int16: (0, 16),
    torch.int32: (0, 32),
    torch.int64: (0, 64),
    torch.uint8: (1, 8),
    torch.uint16: (1, 16),
    torch.uint32: (1, 32),
    torch.uint64: (1, 64),
    torch.float16: (2, 16),
    torch.float32: (2, 32),
    torch.float64: (2, 64),
    torch.bfloat16: (4, 16),
    torch.complex32: (5, 32),
    torch.complex64: (5, 64),
    torch.complex128: (5, 128),
    torch.bool: (6, 8),
    torch.float8_e4m3fn: (10, 8),
    torch.float8_e4m3fnuz: (11, 8),
    torch.float8_e5m2: (12, 8),
    torch.float8_e5m2fnuz: (13, 8),
    torch.float8_e8m0fnu: (14, 8),
}
"""DLPack's code and bits of each type of elements: ``DLDataTypeCode`` in dlpack.h."""


class Allocator:
    """Makes tensors in the memory of one device."""

    def __init__(self, device: Device, after_reset: Callable[[], None]) -> None:
        self._device = device
        self._after_reset = after_reset
        self._pool = Pool()
        self._allocate = self._pool.allocate
        self.generation = device.generation
        self._failures = 0
        self._retries = 0

    def empty(
        self, sizes: tuple[int, ...], strides: tuple[int, ...] | None, dtype: torch.dtype, stream: int
    ) -> torch.Tensor:
        """A tensor with undefined contents, contiguous if `strides` is None.

        Work on `stream` may use it. Raises `torch.OutOfMemoryError`, and TypeError for types that DLPack lacks.
        """
        if self.generation != self._device.generation:
            self.forget()
        try:
            code, bits = DLPACK_TYPES[dtype]
        except KeyError:
            raise TypeError(f"tensors of {dtype} cannot be made on {self._device!r}") from None
        made = self._allocate(sizes, strides, code, bits, stream, 0)
        if type(made) is int:
            self._settle()
            made = self._allocate(sizes, strides, code, bits, stream, 0)
            if type(made) is int:
                made = self._allocate(sizes, strides, code, bits, stream, self._reserve(made))
        return torch._C._from_dlpack(made)

    def use(self, tensor: torch.Tensor, stream: int) -> None:
        """Keep the memory of a tensor until the work that is on `stream` when it is freed has run."""
        self._pool.use(tensor.untyped_storage().data_ptr(), stream)

    def empty_cache(self) -> None:
        """Return all cached blocks to the device."""
        self._settle()
        for address in self._pool.release():
            with contextlib.suppress(DeviceError):  # a lost device has nothing to free
                self._device.memfree(address)

    def forget(self) -> None:
        """Forget all blocks after a reset of the device, which has freed them."""
        self._pool.forget()
        self.generation = self._device.generation
        self._after_reset()

    def _reserve(self, size: int) -> int:
        try:
            return self._device.memalloc(size, ALIGNMENT)
        except OutOfMemory:
            self._retries += 1
        self.empty_cache()
        try:
            return self._device.memalloc(size, ALIGNMENT)
        except OutOfMemory as error:
            self._failures += 1
            raise torch.OutOfMemoryError(f"{error}\n{self.summary(size)}") from error

    def _settle(self) -> None:
        """Make blocks available that other streams have used: their own stream waits for these streams first."""
        for block, others in self._pool.take_pending():
            for other in others:
                event = self._device.create_event()
                try:
                    self._device.record_event(event, other)
                    self._device.wait_event(block[3], event)
                except InvalidArgument:
                    pass  # a stream was destroyed, after its work
                finally:
                    self._device.destroy_event(event)
            self._pool.settle(block)

    # --- statistics --------------------------------------------------------------------------------------

    def statistics(self) -> dict[str, int]:
        """By the names of ``torch.cuda.memory_stats``."""
        found = {"num_alloc_retries": self._retries, "num_ooms": self._failures}
        for name, (current, peak, allocated, freed) in self._pool.statistics().items():
            for key, value in zip(
                ("current", "peak", "allocated", "freed"), (current, peak, allocated, freed), strict=True
            ):
                found[f"{name}.all.{key}"] = value
        return found

    def reset_peaks(self) -> None:
        """Set the peaks of the statistics to the current values."""
        self._pool.reset_peaks()

    def snapshot(self) -> list[dict[str, Any]]:
        """All blocks by address, in the form of ``torch.cuda.memory_snapshot``."""
        return [
            {
                "address": address,
                "total_size": size,
                "allocated_size": size if live else 0,
                "requested_size": requested,
                "stream": stream,
                "blocks": [
                    {
                        "size": size,
                        "requested_size": requested,
                        "state": "active_allocated" if live else "inactive",
                    }
                ],
            }
            for address, size, requested, stream, live in self._pool.snapshot()
        ]

    def summary(self, wanted: int | None = None) -> str:
        """A picture of the memory, for people; `wanted` bytes could not be had."""
        total = self._device.properties().memory_bytes
        found = self._pool.statistics()
        live, reserved = found["allocated_bytes"][0], found["reserved_bytes"][0]
        width = _PICTURE_WIDTH
        used = min(width, round(width * live / total)) if total else 0
        cached = min(width - used, round(width * (reserved - live) / total)) if total else 0
        lines = [
            f"memory of {self._device!r}: {_size(total)}",
            f"[{'#' * used}{'+' * cached}{'.' * (width - used - cached)}]",
            f"# {_size(live)} in {found['allocation'][0]} live tensors' storages (peak "
            f"{_size(found['allocated_bytes'][1])})",
            f"+ {_size(reserved - live)} cached for reuse; `empty_cache()` frees it",
        ]
        if wanted is not None:
            lines.append(f"  {_size(wanted)} wanted, after the cache was emptied")
        largest = sorted((s for s in self._pool.snapshot() if s[4]), key=lambda s: -s[1])[:3]
        if largest:
            lines.append("  largest storages: " + ", ".join(_size(size) for _, size, *_ in largest))
        return "\n".join(lines)


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
