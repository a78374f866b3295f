"""The arrays that a candidate receives: `DeviceArray`s of the kit, or torch tensors. Part of the harness."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from triton_porting_kit.conformance.judge.errors import JudgeError
from triton_porting_kit.conformance.judge.values import Place
from triton_porting_kit.conformance.types import KINDS

POISON = 0xFF
"""The value of every byte of a result before a call: NaN in floating-point types that have one, -1 in integers."""
_M_PERTURB = -6


class Arrays(ABC):
    """Creates, fills and reads arrays. Binds all functions before a candidate is imported, which could replace them."""

    name: str

    @abstractmethod
    def empty(self, place: Place) -> Any:
        """Allocate a contiguous array."""

    @abstractmethod
    def write(self, array: Any, raw: memoryview) -> None:
        """Fill an array without incrementing its version counter."""

    @abstractmethod
    def read(self, array: Any) -> tuple[str, tuple[int, ...], bytes]:
        """Read type, shape and bytes in row-major order, ordered after the work of the current stream."""

    @abstractmethod
    def wait(self, everything: bool) -> None:
        """Wait for the whole device if `everything`, otherwise for the current stream."""

    @abstractmethod
    def poison_allocations(self, on: bool) -> None:
        """Fill allocated and freed memory with a pattern while `on`, where the allocator supports it."""

    def poison(self, array: Any, size: int) -> None:
        self.write(array, memoryview(bytes([POISON]) * size))

    @abstractmethod
    def clock(self) -> tuple[Any, Any]:
        """Create two events of the device; (None, None) if it has no events."""

    @abstractmethod
    def mark(self, event: Any) -> None:
        """Record an event on the current stream."""

    @abstractmethod
    def elapsed(self, start: Any, end: Any) -> float:
        """Seconds between two events."""


class KitArrays(Arrays):
    """`DeviceArray`s, for drivers made with the kit."""

    name = "device"

    def __init__(self, driver: Any) -> None:
        from triton_porting_kit.driver import DeviceArray

        self._driver, self._device, self._make = driver, driver.device, DeviceArray.empty
        self._fetch = DeviceArray.numpy
        self._copy, self._synchronize = self._device.memcpy_htod, self._device.synchronize
        self._record, self._elapsed = self._device.record_event, self._device.elapsed_time
        self._stream = driver.get_current_stream
        self._allocate = self._device.memalloc
        self._memset = self._device.memset

    def empty(self, place: Place) -> Any:
        return self._make(place.shape, KINDS[place.kind].device, self._device)

    def write(self, array: Any, raw: memoryview) -> None:
        if len(raw):
            self._copy(array.data_ptr(), np.frombuffer(raw, np.uint8))
            self._synchronize(0)

    def read(self, array: Any) -> tuple[str, tuple[int, ...], bytes]:
        return str(array.dtype), tuple(array.shape), self._fetch(array, stream=self._stream()).tobytes()

    def wait(self, everything: bool) -> None:
        self._synchronize(None if everything else self._stream())

    def poison_allocations(self, on: bool) -> None:
        def allocate(size: int, alignment: int = 64) -> int:
            address: int = self._allocate(size, alignment)
            if size:
                self._memset(address, POISON, size)
                self._synchronize(0)
            return address

        self._device.memalloc = allocate if on else self._allocate

    def clock(self) -> tuple[Any, Any]:
        return self._device.create_event(), self._device.create_event()

    def mark(self, event: Any) -> None:
        self._record(event, self._stream())

    def elapsed(self, start: Any, end: Any) -> float:
        return float(self._elapsed(start, end)) * 1e-3


class TorchArrays(Arrays):
    """Tensors on a torch device."""

    name = "torch"

    def __init__(self, device: str) -> None:
        import torch

        self._torch, self._device = torch, torch.device(device)
        self._host = self._device.type == "cpu"
        self._from, self._empty, self._copy = torch.frombuffer, torch.empty, torch.Tensor.copy_
        self._pointer, self._bytes = torch.Tensor.data_ptr, torch.uint8
        self._view, self._cpu = torch.Tensor.view, torch.Tensor.cpu
        self._contiguous, self._detach = torch.Tensor.contiguous, torch.Tensor.detach
        self._move, self._string, self._no_grad = ctypes.memmove, ctypes.string_at, torch.no_grad
        self._wait = None if self._host else torch.accelerator.synchronize
        self._wait_stream = None if self._host else torch.accelerator.current_stream
        try:
            self._mallopt = ctypes.CDLL(None).mallopt if self._host else None
        except AttributeError:
            self._mallopt = None

    def empty(self, place: Place) -> Any:
        dtype = getattr(self._torch, KINDS[place.kind].device, None)
        if dtype is None:
            raise JudgeError(f"torch has no type {KINDS[place.kind].device}")
        return self._empty(place.shape, dtype=dtype, device=self._device)

    def write(self, array: Any, raw: memoryview) -> None:
        if not len(raw):
            return
        source = np.frombuffer(raw, np.uint8)
        if self._host:
            self._move(self._pointer(array), source.ctypes.data, len(raw))
            return
        # Write bytes through a detached alias, which does not increment the tensor's version counter.
        alias = self._view(self._detach(array).data.reshape(-1), self._bytes)
        self._copy(alias, self._torch.from_numpy(source.copy()))

    def read(self, array: Any) -> tuple[str, tuple[int, ...], bytes]:
        with self._no_grad():
            plain = self._contiguous(self._cpu(self._detach(array)))
        size = plain.numel() * plain.element_size()
        raw = self._string(self._pointer(plain), size) if size else b""
        return str(plain.dtype).rpartition(".")[2], tuple(int(s) for s in plain.shape), raw

    def wait(self, everything: bool) -> None:
        if self._wait is not None and self._wait_stream is not None:
            self._wait() if everything else self._wait_stream(self._device).synchronize()

    def poison_allocations(self, on: bool) -> None:
        if self._mallopt is not None:
            self._mallopt(_M_PERTURB, 0x5A if on else 0)

    def clock(self) -> tuple[Any, Any]:
        if self._host:
            return None, None
        event = getattr(self._torch, self._device.type).Event
        return event(enable_timing=True), event(enable_timing=True)

    def mark(self, event: Any) -> None:
        event.record()

    def elapsed(self, start: Any, end: Any) -> float:
        return float(start.elapsed_time(end)) * 1e-3


def make(driver: Any, wanted: str, torch_needed: bool) -> Arrays:
    """The arrays for candidates of a backend. `wanted`: ``torch``, ``device`` or empty for automatic choice.

    Raises `JudgeError` if the backend or the task does not support them.
    """
    device = getattr(driver, "device", None)
    kit = hasattr(device, "memalloc")
    in_torch = device is None or not kit or bool(device.properties().in_process)
    if wanted == "device" and not kit:
        raise JudgeError(
            "the driver of this backend does not use the kit's device interface: use --arrays torch"
        )
    if (wanted == "torch" or torch_needed) and not in_torch:
        raise JudgeError(
            "this task needs torch tensors, but torch cannot access the memory of this backend's device; write the "
            "task as a plain function (docs/judge.md)"
        )
    if wanted == "device" or (not wanted and not torch_needed and kit):
        return KitArrays(driver)
    try:
        return TorchArrays(str(driver.get_active_torch_device()))
    except ImportError as error:
        raise JudgeError(f"torch is not installed: {error}") from error
