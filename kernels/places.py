"""Places for arrays: a device of the kit, or torch tensors. Transfers values in both directions.

Values on the host are float64 (or bool) arrays; `round_to` makes them representable in a narrower type, so
that kernel and reference start from the same numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .arrays import Array, dtype_name


class Operand(NamedTuple):
    """Values for one array: float64 or bool, exactly representable in the type named `dtype`."""

    values: NDArray[Any]
    dtype: str


class Place(Protocol):
    """A place that can hold arrays."""

    def put(self, operand: Operand) -> Array:
        """Create an array with these values."""

    def get(self, array: Array) -> NDArray[np.float64]:
        """Read an array back, exactly."""

    def synchronize(self) -> None:
        """Wait until all kernels launched here have finished."""


def bfloat16_bits(values: NDArray[Any]) -> NDArray[np.uint16]:
    """Bit patterns of the nearest bfloat16 values, ties to even. NaNs stay NaNs."""
    # Rounding through float32 may differ from a single rounding by one unit in the last place, which is
    # acceptable here.
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


def from_bfloat16_bits(bits: NDArray[np.uint16]) -> NDArray[np.float64]:
    """Values of bfloat16 bit patterns."""
    with np.errstate(invalid="ignore"):  # raised for signalling NaNs
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def round_to(values: NDArray[Any], dtype: str) -> Operand:
    """Round float64 values to a type, given by its plain name; bool is unchanged."""
    if dtype == "bfloat16":
        return Operand(from_bfloat16_bits(bfloat16_bits(values)), dtype)
    rounded = np.asarray(values).astype(dtype)
    return Operand(rounded if dtype == "bool" else rounded.astype(np.float64), dtype)


class TorchPlace:
    """torch tensors in host memory."""

    def put(self, operand: Operand) -> Array:
        """Create a CPU tensor with these values."""
        import torch

        tensor: Array = torch.tensor(operand.values).to(getattr(torch, operand.dtype))
        return tensor

    def get(self, array: Any) -> NDArray[np.float64]:
        """Read a tensor back."""
        import torch

        values: NDArray[np.float64] = array.to(torch.float64).numpy()
        return values

    def synchronize(self) -> None:
        """Do nothing: CPU tensors have no stream."""


class DevicePlace:
    """`DeviceArray`s on a device of the kit."""

    def __init__(self, device: Any) -> None:
        self.device = device

    def put(self, operand: Operand) -> Array:
        """Upload the values."""
        from triton_porting_kit.driver import DeviceArray

        values, dtype = operand
        if dtype == "bfloat16":
            result: Array = DeviceArray.from_numpy(bfloat16_bits(values), device=self.device, dtype=dtype)
        else:
            result = DeviceArray.from_numpy(values.astype(dtype), device=self.device)
        return result

    def get(self, array: Any) -> NDArray[np.float64]:
        """Download the values after all earlier launches have finished."""
        self.synchronize()
        values = array.numpy()
        if dtype_name(array) == "bfloat16" and values.dtype == np.uint16:
            return from_bfloat16_bits(values)
        result: NDArray[np.float64] = values.astype(np.float64)
        return result

    def synchronize(self) -> None:
        """Wait for the whole device."""
        self.device.synchronize()
