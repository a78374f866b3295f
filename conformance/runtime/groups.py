"""Groups of ranks, as far as one process shows them: a group of one rank, or the refusal of a device that has none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.runtime.blocks import download, pattern, same_bytes, upload
from triton_porting_kit.errors import (
    DeviceLost,
    GroupError,
    InvalidArgument,
    InvalidPointer,
    MissingHook,
    SymmetricHeapFull,
)

CHECKS = Checks("runtime/groups", kit_device=True)

HEAP_BYTES = 1 << 16
_KERNEL = "def in_group(X):\n    tl.store(X, tl.load(X) + 1)\n"


def _alone(content: bytes) -> list[bytes]:
    return [content]


@contextmanager
def _group(context: Context) -> Iterator[Any]:
    """A device that is in a group of one rank; None if it has no groups, and refuses every call of this kind."""
    device = context.device
    try:
        memory = device.open_group(0, 1, HEAP_BYTES, _alone)
    except MissingHook:
        context.expect(True, "the device says that it has no groups")
        context.refuses("symmetric_alloc", lambda: device.symmetric_alloc(64), MissingHook)
        context.refuses("peer_address", lambda: device.peer_address(0, 64), MissingHook)
        context.refuses("fail_group", lambda: device.fail_group("lost"), MissingHook)
        yield None
        return
    try:
        yield device
    finally:
        device.close_group()
        del memory


@CHECKS.check("one-rank", "In a group of one rank, symmetric memory is zero, its own peer's, and lies apart.")
def _one_rank(context: Context) -> None:
    with _group(context) as device:
        if device is None:
            return
        sizes = (1, 100, 4096, 7)
        addresses = [device.symmetric_alloc(size, 256) for size in sizes]
        context.expect(
            not any(address % 256 for address in addresses), "addresses are multiples of 256", f"{addresses}"
        )
        for size, address in zip(sizes, addresses, strict=True):
            same_bytes(
                context, f"{size} new bytes", download(device, address, size), np.zeros(size, np.uint8)
            )
            upload(device, address, pattern(size))
        for size, address in zip(sizes, addresses, strict=True):
            context.expect(
                device.peer_address(0, address) == address, "rank 0 reaches its own memory as it is"
            )
            same_bytes(context, f"{size} bytes", download(device, address, size), pattern(size))
        inside = addresses[1] + 40
        context.expect(device.peer_address(0, inside) == inside, "an address within an allocation is reached")


@CHECKS.check("refusals", "Wrong sizes, addresses, ranks, and calls outside of a group are refused.")
def _refusals(context: Context) -> None:
    with _group(context) as device:
        if device is None:
            return
        address = device.symmetric_alloc(64)
        context.refuses("a second group", lambda: device.open_group(0, 1, HEAP_BYTES, _alone), GroupError)
        context.refuses("a full heap", lambda: device.symmetric_alloc(2 * HEAP_BYTES), SymmetricHeapFull)
        context.refuses("a negative size", lambda: device.symmetric_alloc(-1), InvalidArgument)
        context.refuses("alignment 3", lambda: device.symmetric_alloc(8, 3), InvalidArgument)
        context.refuses("rank 1 of 1", lambda: device.peer_address(1, address), InvalidArgument)
        context.refuses("an address outside", lambda: device.peer_address(0, 64), InvalidPointer)
    device = context.device
    context.refuses("without a group", lambda: device.symmetric_alloc(64), GroupError)
    context.refuses("rank 1 of 1", lambda: device.open_group(1, 1, HEAP_BYTES, _alone), InvalidArgument)


@CHECKS.check("lost-rank", "After a rank is lost, launches end with DeviceLost until the group is closed.")
def _lost_rank(context: Context) -> None:
    word = context.array(np.zeros(1, np.int64), "i64")
    kernel = make_kernel(_KERNEL)
    kernel[(1,)](word)
    context.memory.synchronize()
    with _group(context) as device:
        if device is None:
            return
        kernel[(1,)](word)
        context.memory.synchronize()
        device.fail_group("rank 1 went away")

        def launch() -> None:
            kernel[(1,)](word)
            context.memory.synchronize()

        error = context.refuses("a launch", launch, DeviceLost)
        context.expect("rank 1 went away" in str(error), "the error gives the reason", str(error))
    kernel[(1,)](word)
    context.compare("three launches", identical(context.read(word), np.array([3], np.int64)))
