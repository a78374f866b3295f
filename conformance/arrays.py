"""`GuardedArray`: an array argument between guard zones, which kernels must not write to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from triton_porting_kit.conformance.memory import MemoryAccess
from triton_porting_kit.conformance.types import KINDS, Array, Kind, from_bits, to_bits

GUARD = 128
"""Bytes before and after every array; a multiple of the alignment for which Triton specialises kernels."""
FILL = 0xA5
"""The fill byte of uninitialized arrays and of the guard zones of integer arrays."""

KIND_OF = {kind.device: kind for kind in KINDS.values()}
"""Element types by the names that devices and torch use: ``float32``, ``bool``, …"""


def fence(kind: Kind) -> Array:
    """The bytes of a guard zone: NaN for floating-point types, which propagates through sums, otherwise `FILL`."""
    element = np.full(kind.storage.itemsize, FILL, np.uint8)
    if kind.is_float:
        element[-(1 + element.size // 8) :] = (
            0x80 if kind.only_nan else 0xFF
        )  # fp64: the exponent is in two bytes
    return np.tile(element, GUARD // element.size)


class WrongResult(AssertionError):
    """A kernel ran, and memory has wrong contents."""


class OutOfBounds(WrongResult):
    """A kernel wrote outside of its arrays."""


class Home:
    """Allocates arrays in the same memory as another array."""

    def __init__(self, memory: MemoryAccess) -> None:
        self.memory = memory

    def empty(self, kind: Kind, shape: Sequence[int]) -> GuardedArray:
        """Allocate an array without content."""
        return GuardedArray(self.memory, kind, shape, self)


class GuardedArray:
    """A contiguous array in device memory, accepted by Triton and by the kit's own kernels."""

    guard = GUARD
    """Bytes of a guard zone."""

    def __init__(
        self, memory: MemoryAccess, kind: Kind, shape: Sequence[int], home: Home | None = None
    ) -> None:
        """Fill every byte with `FILL` (for ``i1``, with 1). `home` allocates further arrays in the same memory."""
        self.device, self.kind, self.shape = home or Home(memory), kind, tuple(shape)
        self.dtype = kind.device
        self._fence = fence(kind)[: self.guard]
        size = math.prod(self.shape) * kind.storage.itemsize
        self._content = np.full(size, FILL if kind.bits > 1 else 1, np.uint8)
        self._block = memory.allocate(size + 2 * self.guard)
        self._upload()

    @classmethod
    def empty(cls, shape: Sequence[int], dtype: str, device: Home) -> GuardedArray:
        """Allocate an array without content. `dtype`: a plain type name; `device`: the `device` of another array."""
        return device.empty(KIND_OF[dtype], shape)

    @classmethod
    def of(cls, memory: MemoryAccess, kind: Kind, values: Array, home: Home | None = None) -> GuardedArray:
        """Create an array with `values` of the type."""
        array = cls(memory, kind, np.shape(values), home)
        array.write(values)
        return array

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements."""
        return tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    def stride(self, axis: int | None = None) -> Any:
        """The stride of one axis in elements, or all strides."""
        return self.strides if axis is None else self.strides[axis]

    def data_ptr(self) -> int:
        return self._block.address + self.guard

    def write(self, values: Array) -> None:
        """Set all elements."""
        self._content = np.ascontiguousarray(to_bits(values, self.kind)).reshape(-1).view(np.uint8)
        self._upload()

    def is_unchanged(self) -> bool:
        """Whether every byte is as the host wrote it."""
        return np.array_equal(self._inside(self._block.read()), self._content)

    def read(self) -> Array:
        """Read the elements. Raises `OutOfBounds` if a guard zone changed."""
        raw = self._block.read()
        self._check_guards(raw)
        content = self._inside(raw)
        if self.kind.bits == 1 and (content > 1).any():
            raise WrongResult("a stored i1 is neither 0 nor 1")
        return from_bits(content.copy().view(self.kind.storage), self.kind).reshape(self.shape)

    def check_guards(self) -> None:
        """Raise `OutOfBounds` if a guard zone changed."""
        self._check_guards(self._block.read())

    def _check_guards(self, raw: Array) -> None:
        guard = self.guard
        changed = np.concatenate([raw[:guard], raw[raw.size - guard :]]) != np.tile(self._fence, 2)
        if changed.any():
            at = int(np.flatnonzero(changed)[0])
            place = f"{guard - at} bytes before" if at < guard else f"{at - guard} bytes behind the end of"
            raise OutOfBounds(f"something was written {place} an array of {self.kind} {self.shape}")

    def _inside(self, raw: Array) -> Array:
        return raw[self.guard : raw.size - self.guard]

    def _upload(self) -> None:
        self._block.write(np.concatenate([self._fence, self._content, self._fence]))
