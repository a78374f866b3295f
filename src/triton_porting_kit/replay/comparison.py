"""Comparing memory with the recording: the first element that differs, its type, and the distance in ulp."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from triton_porting_kit.abi.elements import ELEMENTS, PARAMETERS
from triton_porting_kit.driver.dtypes import ALL, DType, decode
from triton_porting_kit.replay.manifest import Manifest, Slot

_NAMES = {name: element.array for name, element in (*PARAMETERS.items(), *ELEMENTS.items())}
"""The types of `triton_porting_kit.driver.dtypes`, by Triton's names of element types."""

_BYTE = ALL["uint8"]


def element_type(pointer: str) -> DType:
    """The element type of Triton's pointer type `pointer`; bytes if it has none."""
    return ALL[_NAMES.get(pointer.removeprefix("*"), "uint8")]


@dataclass(frozen=True)
class Difference:
    """How a buffer differs from the recording. Values are text and include their bits."""

    buffer: int
    name: str
    """The parameter that points there, with its type."""
    elements: int
    """The number of elements that differ."""
    total: int
    index: int
    """The index of the first one, relative to the parameter's pointer; negative before it."""
    byte: int
    """The offset of the first one in the buffer."""
    actual: str
    expected: str
    ulp: int | None
    """The distance of the two in floating-point numbers; None for integers and NaN."""

    def __str__(self) -> str:
        distance = "" if self.ulp is None else f", {self.ulp:,} ulp apart"
        return (
            f"buffer {self.buffer} ({self.name}): {self.elements:,} of {self.total:,} elements differ; the first at "
            f"[{self.index}] (byte {self.byte:,} of the buffer): {self.actual}, recorded {self.expected}{distance}"
        )


def difference(manifest: Manifest, number: int, actual: bytes, expected: bytes) -> Difference | None:
    """Compare buffer `number` with the recording, bit by bit; None if they are identical."""
    if actual == expected:
        return None
    size = min(len(actual), len(expected))
    wrong = np.flatnonzero(np.frombuffer(actual, np.uint8, size) != np.frombuffer(expected, np.uint8, size))
    first = int(wrong[0])
    slot = _slot_for(manifest.slots, number, first)
    offset = slot.buffer_offset or 0
    dtype = element_type(slot.type)
    item = dtype.itemsize
    phase = offset % item  # There are elements before the parameter's pointer, too.
    indices = (wrong - phase) // item
    index = int(indices[0])
    at = index * item + phase
    if at < 0 or at + item > size:  # These bytes are not a whole element.
        dtype, item, at, indices, index, offset, phase = _BYTE, 1, first, wrong, first, offset, 0
    total = (size - phase) // item
    found, wanted = actual[at : at + item], expected[at : at + item]
    return Difference(
        buffer=number,
        name=f"{slot.name}: {slot.type}",
        elements=len(np.unique(indices)),
        total=total,
        index=(at - offset) // item,
        byte=at,
        actual=_text(found, dtype),
        expected=_text(wanted, dtype),
        ulp=_distance(found, wanted, dtype),
    )


def _slot_for(slots: Iterable[Slot], number: int, byte: int) -> Slot:
    """The parameter that points to `byte`: the last one at or before it, otherwise the first."""
    found: Sequence[Slot] = sorted(
        (slot for slot in slots if slot.buffer == number), key=lambda slot: slot.buffer_offset or 0
    )
    before = [slot for slot in found if (slot.buffer_offset or 0) <= byte]
    return before[-1] if before else found[0]


def _value(element: bytes, dtype: DType) -> Any:
    array = np.frombuffer(element, dtype.numpy)
    return (decode(array, dtype) if dtype.minifloat else array)[0]


def _text(element: bytes, dtype: DType) -> str:
    with np.errstate(all="ignore"):
        return f"{_value(element, dtype)} (0x{element[::-1].hex()})"


def _distance(one: bytes, other: bytes, dtype: DType) -> int | None:
    if not dtype.is_floating_point:
        return None
    with np.errstate(all="ignore"):
        if np.isnan(_value(one, dtype)) or np.isnan(_value(other, dtype)):
            return None
    return abs(_rank(one) - _rank(other))


def _rank(element: bytes) -> int:
    """The rank of a floating-point number among all numbers of its type; 0 for both zeros."""
    bits = int.from_bytes(element, "little")
    sign = 1 << (8 * len(element) - 1)
    return -(bits - sign) if bits & sign else bits
