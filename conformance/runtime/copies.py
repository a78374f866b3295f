"""Copies in every direction, and memset: exactly the requested bytes change, at any alignment."""

from __future__ import annotations

import array
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.memory import Bytes
from triton_porting_kit.conformance.runtime.blocks import (
    allocated,
    download,
    pattern,
    same_bytes,
    stream_of,
    upload,
)
from triton_porting_kit.errors import DeviceError, InvalidArgument, InvalidPointer

CHECKS = Checks("runtime/copies", kit_device=True)

SIZES = (0, 1, 2, 3, 7, 15, 64, 65, 255, 4096, 4097, (1 << 20) + 3)
OFFSETS = (0, 1, 7, 33)
GUARD = 96
"""The number of bytes before and after the copied range that must not change."""

Copy = Callable[[Context, int, int, int], None]
"""Checks one operation of a size at an offset, on a stream."""


# --- the four operations ---------------------------------------------------------------------------------


def _to_device(context: Context, size: int, offset: int, stream: int) -> None:
    device, whole = context.device, size + offset + 2 * GUARD
    with allocated(device, whole) as (address,):
        expected = pattern(whole, 1)
        upload(device, address, expected)
        host = pattern(whole, 2)
        start = GUARD + offset
        source = host[offset + 3 : offset + 3 + size]
        device.memcpy_htod(address + start, source, stream)
        device.synchronize(stream)
        expected[start : start + size] = source
        same_bytes(context, "device memory", download(device, address, whole), expected)


def _to_host(context: Context, size: int, offset: int, stream: int) -> None:
    device, whole = context.device, size + offset + 2 * GUARD
    with allocated(device, whole) as (address,):
        content = pattern(whole, 1)
        upload(device, address, content)
        found = pattern(whole, 2)
        expected = found.copy()
        start, place = GUARD + offset, offset + 5
        device.memcpy_dtoh(found[place : place + size], address + start, stream)
        device.synchronize(stream)
        expected[place : place + size] = content[start : start + size]
        same_bytes(context, "host memory", found, expected)
        same_bytes(context, "device memory", download(device, address, whole), content)


def _on_device(context: Context, size: int, offset: int, stream: int) -> None:
    device, whole = context.device, size + offset + 2 * GUARD
    with allocated(device, whole, whole) as (source, target):
        content, expected = pattern(whole, 1), pattern(whole, 2)
        upload(device, source, content)
        upload(device, target, expected)
        start, place = GUARD + offset, GUARD + 5 - offset // 8
        device.memcpy_dtod(target + place, source + start, size, stream)
        device.synchronize(stream)
        expected[place : place + size] = content[start : start + size]
        same_bytes(context, "the target", download(device, target, whole), expected)
        same_bytes(context, "the source", download(device, source, whole), content)


def _fill(context: Context, size: int, offset: int, stream: int, value: int = 0xC3) -> None:
    device, whole = context.device, size + offset + 2 * GUARD
    with allocated(device, whole) as (address,):
        expected = pattern(whole, 1)
        upload(device, address, expected)
        start = GUARD + offset
        device.memset(address + start, value, size, stream)
        device.synchronize(stream)
        expected[start : start + size] = value
        same_bytes(context, "device memory", download(device, address, whole), expected)


OPERATIONS: dict[str, tuple[str, Copy]] = {
    "htod": ("A copy to the device of", _to_device),
    "dtoh": ("A copy to the host of", _to_host),
    "dtod": ("A copy on the device of", _on_device),
    "memset": ("A memset of", _fill),
}


def _copy(context: Context, operation: str, size: int, offset: int) -> None:
    OPERATIONS[operation][1](context, size, offset, 0)


for _operation, (_verb, _body) in OPERATIONS.items():
    for _size in SIZES:
        for _offset in OFFSETS:
            CHECKS.add(
                f"{_operation}-{_size}-at-{_offset}",
                f"{_verb} {_size} bytes, {_offset} bytes off alignment, changes these bytes and no others.",
                partial(_copy, operation=_operation, size=_size, offset=_offset),
            )
    CHECKS.add(
        f"{_operation}-large",
        f"{_verb} 8 MiB and 5 bytes changes these bytes and no others.",
        partial(_copy, operation=_operation, size=(8 << 20) + 5, offset=3),
    )


def _on_stream(context: Context, operation: str) -> None:
    with stream_of(context.device) as stream:
        for size in (1, 4097, 100_003):
            OPERATIONS[operation][1](context, size, 1, stream)


for _operation, (_verb, _body) in OPERATIONS.items():
    CHECKS.add(
        f"{_operation}-on-stream",
        f"{_verb} 1 to 100,003 bytes on a created stream is complete once that stream is synchronised.",
        partial(_on_stream, operation=_operation),
        needs=("feature:streams",),
    )

for _value in (0, 1, 0x7F, 0x80, 0xFF):
    CHECKS.add(
        f"memset-value-{_value}",
        f"memset writes the byte {_value}.",
        partial(_fill, size=1003, offset=1, stream=0, value=_value),
    )


def _refused_fill(context: Context, value: int) -> None:
    device = context.device
    with allocated(device, 64) as (address,):
        upload(device, address, pattern(64))
        context.refuses(
            f"memset of {value}",
            lambda: _and_wait(device, device.memset, address, value, 64),
            InvalidArgument,
        )
        same_bytes(context, "the memory", download(device, address, 64), pattern(64))


for _value in (-1, 256):
    CHECKS.add(
        f"memset-value-{_value}-refused",
        f"memset refuses {_value}, which is not a byte, with InvalidArgument.",
        partial(_refused_fill, value=_value),
    )


@CHECKS.check(
    "dtod-within-allocation", "Bytes can be copied between two places of one allocation that do not overlap."
)
def _within(context: Context) -> None:
    device = context.device
    with allocated(device, 3000) as (address,):
        expected = pattern(3000)
        upload(device, address, expected)
        device.memcpy_dtod(address + 1501, address + 3, 1203)
        expected[1501:2704] = expected[3:1206].copy()
        same_bytes(context, "the allocation", download(device, address, 3000), expected)


@CHECKS.check("chain", "Copies that follow one another on the default stream see one another's results.")
def _chain(context: Context) -> None:
    device, size = context.device, 10_007
    with allocated(device, *[size] * 8) as addresses:
        content = pattern(size)
        device.memcpy_htod(addresses[0], content)
        for source, target in pairwise(addresses):
            device.memcpy_dtod(target, source, size)
            device.memset(source, 0, size)
        same_bytes(context, "the last of eight", download(device, addresses[-1], size), content)


# --- buffers of the host -------------------------------------------------------------------------------

_SOURCES: dict[str, Callable[[], Any]] = {
    "bytes": lambda: bytes(range(96)),
    "bytearray": lambda: bytearray(range(96)),
    "memoryview": lambda: memoryview(bytes(range(96))),
    "array": lambda: array.array("i", range(24)),
    "matrix": lambda: np.arange(12, dtype=np.float64).reshape(3, 4),
    "read-only": lambda: np.frombuffer(bytes(range(96)), np.uint16),
    "floats": lambda: np.arange(24, dtype=np.float32) + np.float32(0.1),
    "scalar": lambda: np.array(2.0**0.5),
}

_TARGETS: dict[str, Callable[[], Any]] = {
    "bytearray": lambda: bytearray(96),
    "memoryview": lambda: memoryview(bytearray(96)),
    "array": lambda: array.array("i", bytes(96)),
    "matrix": lambda: np.zeros((3, 4)),
    "floats": lambda: np.zeros(24, np.float32),
    "scalar": lambda: np.zeros(()),
}


def _from_buffer(context: Context, source: str) -> None:
    """All bytes of the buffer are copied, however many elements and dimensions it has."""
    device, buffer = context.device, _SOURCES[source]()
    content = np.frombuffer(bytes(memoryview(buffer)), np.uint8)
    with allocated(device, 96) as (address,):
        expected = pattern(96, 3)
        upload(device, address, expected)
        device.memcpy_htod(address, buffer)
        expected[: content.size] = content
        same_bytes(context, "device memory", download(device, address, 96), expected)


def _into_buffer(context: Context, target: str) -> None:
    device, buffer = context.device, _TARGETS[target]()
    with allocated(device, 96) as (address,):
        content = pattern(96, 4)
        upload(device, address, content)
        device.memcpy_dtoh(buffer, address)
        device.synchronize()
        found = np.frombuffer(bytes(memoryview(buffer)), np.uint8)
        same_bytes(context, "the buffer", found, content[: found.size])


for _source in _SOURCES:
    CHECKS.add(
        f"htod-from-{_source}",
        f"Contiguous buffers of the host can be copied to the device: {_source}.",
        partial(_from_buffer, source=_source),
    )
for _target in _TARGETS:
    CHECKS.add(
        f"dtoh-into-{_target}",
        f"A copy to the host fills all bytes of a contiguous buffer: {_target}.",
        partial(_into_buffer, target=_target),
    )

_BAD_BUFFERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "bytes": ("cannot be written to", lambda: bytes(64)),
    "strided": ("is not contiguous", lambda: np.zeros(128, np.uint8)[::2]),
    "number": ("is not a buffer", lambda: 5),
}


def _into_bad_buffer(context: Context, kind: str) -> None:
    device = context.device
    with allocated(device, 64) as (address,):
        context.refuses(
            "memcpy_dtoh",
            lambda: device.memcpy_dtoh(_BAD_BUFFERS[kind][1](), address),
            (DeviceError, TypeError, ValueError, BufferError),
        )


for _kind, (_why, _buffer) in _BAD_BUFFERS.items():
    CHECKS.add(
        f"dtoh-into-{_kind}-refused",
        f"A copy to the host into an object that {_why} is refused.",
        partial(_into_bad_buffer, kind=_kind),
    )


# --- invalid ranges -----------------------------------------------------------------------

_SIZE = 1000

_RANGES: dict[str, tuple[str, Callable[[int], tuple[int, int]]]] = {
    "past-the-end": ("ends one byte behind its allocation", lambda a: (a + 1, _SIZE)),
    "longer": ("is longer than its allocation", lambda a: (a, 2 * _SIZE)),
    "before": ("starts one byte before its allocation", lambda a: (a - 1, 2)),
    "behind": ("starts behind its allocation", lambda a: (a + _SIZE, 1)),
    "null": ("starts at NULL", lambda a: (0, 16)),
    "near-null": ("starts at address 64", lambda a: (64, 16)),
    "top": ("starts at the end of the address space", lambda a: ((1 << 64) - 16, 16)),
}

_RAW: dict[str, Callable[[Any, int, int, int], None]] = {
    "htod": lambda device, address, size, other: device.memcpy_htod(address, np.full(size, 0xEE, np.uint8)),
    "dtoh": lambda device, address, size, other: device.memcpy_dtoh(np.empty(size, np.uint8), address),
    "dtod-to": lambda device, address, size, other: device.memcpy_dtod(address, other, size),
    "dtod-from": lambda device, address, size, other: device.memcpy_dtod(other, address, size),
    "memset": lambda device, address, size, other: device.memset(address, 0xEE, size),
}


def _and_wait(device: Any, call: Callable[..., None], *args: Any) -> None:
    """Make a call and synchronize: an error may be raised by `synchronize` at the latest."""
    call(*args)
    device.synchronize()


def _out_of_range(context: Context, operation: str, place: str) -> None:
    device = context.device
    with allocated(device, _SIZE, 4 * _SIZE) as (address, other):
        contents: list[Bytes] = [pattern(_SIZE, 1), pattern(4 * _SIZE, 2)]
        upload(device, address, contents[0])
        upload(device, other, contents[1])
        start, size = _RANGES[place][1](address)
        context.refuses(
            f"{operation} of {size} bytes at address {start - address:+}" if start > 64 else operation,
            lambda: _and_wait(device, _RAW[operation], device, start, size, other),
            InvalidPointer,
        )
        same_bytes(context, "its allocation", download(device, address, _SIZE), contents[0])
        same_bytes(context, "the other allocation", download(device, other, 4 * _SIZE), contents[1])


def _freed(context: Context, operation: str) -> None:
    device = context.device
    with allocated(device, 4 * _SIZE) as (other,):
        address = device.memalloc(_SIZE)
        device.memfree(address)
        context.refuses(
            operation, lambda: _and_wait(device, _RAW[operation], device, address, 16, other), InvalidPointer
        )


def _huge(context: Context, operation: str) -> None:
    device = context.device
    with allocated(device, _SIZE, _SIZE) as (address, other):
        for size in ((1 << 63) - 1, (1 << 64) - 8):
            context.refuses(
                f"{operation} of {size} bytes",
                partial(_and_wait, device, _RAW[operation], device, address + 16, size, other),
                (InvalidPointer, InvalidArgument, OverflowError),
            )


for _operation in _RAW:
    for _place, (_what, _range) in _RANGES.items():
        CHECKS.add(
            f"{_operation}-{_place}-refused",
            f"{_operation}: a range that {_what} is refused with InvalidPointer, and nothing is written.",
            partial(_out_of_range, operation=_operation, place=_place),
        )
    CHECKS.add(
        f"{_operation}-freed-refused",
        f"{_operation}: memory that was freed is refused with InvalidPointer.",
        partial(_freed, operation=_operation),
    )
    if _operation.startswith(("dtod", "memset")):
        CHECKS.add(
            f"{_operation}-wrapping-refused",
            f"{_operation}: a size that makes the range wrap around the address space is refused.",
            partial(_huge, operation=_operation),
        )
