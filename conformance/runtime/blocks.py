"""Raw device memory for checks of the device hooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.memory import Bytes

ALIGNMENT = 64

_PERIOD = 65_537  # a prime: data shifted by a power of two or by whole pages differs
_BYTES: Bytes = (
    np.arange(1, _PERIOD + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(56)
).astype(np.uint8)


@contextmanager
def allocated(device: Any, *sizes: int, alignment: int = ALIGNMENT) -> Iterator[list[int]]:
    """Allocate blocks of these sizes, and free them afterwards."""
    addresses: list[int] = []
    try:
        for size in sizes:
            addresses.append(device.memalloc(size, alignment))
        yield addresses
    finally:
        for address in addresses:
            device.memfree(address)


def pieces(device: Any, total: int) -> list[int]:
    """Split `total` into sizes that do not exceed the largest allocation."""
    largest = device.properties().largest_allocation
    return [min(largest, total - start) for start in range(0, total, largest)]


@contextmanager
def stream_of(device: Any) -> Iterator[int]:
    """Create a stream, and destroy it afterwards."""
    stream = device.create_stream()
    try:
        yield stream
    finally:
        device.destroy_stream(stream)


@contextmanager
def events_of(device: Any, count: int) -> Iterator[list[int]]:
    """Create events, and destroy them afterwards."""
    events = [device.create_event() for _ in range(count)]
    try:
        yield events
    finally:
        for event in events:
            device.destroy_event(event)


def elapsed(context: Context, start: int, end: int) -> float:
    """The milliseconds between two events, with which checks compute: `elapsed_time` has to return a float."""
    found = context.device.elapsed_time(start, end)
    context.expect(isinstance(found, float), "elapsed_time returns a float", f"it returned {found!r}")
    return float(found)


def upload(device: Any, address: int, content: Bytes) -> None:
    """Copy to the device and wait."""
    device.memcpy_htod(address, np.ascontiguousarray(content))
    device.synchronize()


def download(device: Any, address: int, size: int) -> Bytes:
    """Copy from the device after all work in flight, and wait for the copy."""
    device.synchronize()
    content: Bytes = np.empty(size, np.uint8)
    device.memcpy_dtoh(content, address)
    device.synchronize()
    return content


def pattern(size: int, salt: int = 0) -> Bytes:
    """Pseudo-random bytes; patterns with different `salt` differ at the same position."""
    return np.resize(np.roll(_BYTES, -7919 * salt), size)


def same_bytes(context: Context, what: str, actual: Bytes, expected: Bytes) -> None:
    """Compare bytes. If none are expected, record an expectation instead of a comparison."""
    if expected.size == 0:
        context.expect(actual.size == 0, f"{what}: no bytes", f"{actual.size} bytes")
    else:
        context.compare(what, identical(actual, expected))
