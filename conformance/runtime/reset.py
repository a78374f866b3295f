"""Reset of the device: old handles and memory are invalid afterwards, and the device works again."""

from __future__ import annotations

import numpy as np

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.runtime.blocks import (
    allocated,
    download,
    pattern,
    pieces,
    same_bytes,
    stream_of,
    upload,
)
from triton_porting_kit.conformance.runtime.device import ASSERT, fail
from triton_porting_kit.conformance.runtime.modules import EMPTY, NO_ARGUMENTS, compiled
from triton_porting_kit.errors import InvalidArgument, InvalidModule, InvalidPointer, LaunchError
from triton_porting_kit.toolchain import compat

CHECKS = Checks("runtime/device", kit_device=True)


def _reset(context: Context) -> None:
    """Reset the device, and make Triton load its kernels again at the next launch."""
    context.device.reset()
    compat.forget_loaded_kernels()


@CHECKS.check("reset-generation", "Each reset starts the device's next generation.")
def _generation(context: Context) -> None:
    before = context.device.generation
    _reset(context)
    _reset(context)
    context.expect(
        context.device.generation == before + 2,
        "two resets, two generations",
        f"{context.device.generation - before}",
    )


@CHECKS.check("reset-memory", "After a reset, memory from before is refused wherever it is used.")
def _reset_memory(context: Context) -> None:
    device = context.device
    address = device.memalloc(1000)
    _reset(context)
    context.refuses("memfree", lambda: device.memfree(address), InvalidPointer)
    context.refuses("memset", lambda: device.memset(address, 0, 8), InvalidPointer)


@CHECKS.check("reset-frees", "After a reset, all of the device's memory can be allocated again.")
def _reset_frees(context: Context) -> None:
    device = context.device
    sizes = pieces(device, device.properties().memory_bytes // 4)
    for _ in range(8):
        for size in sizes:
            device.memalloc(size)
        _reset(context)
    context.expect(True, "twice the device's memory was allocated, with resets between")


@CHECKS.check(
    "reset-handles",
    "After a reset, streams, events, modules and functions from before are refused.",
    needs=("feature:streams", "feature:events"),
)
def _reset_handles(context: Context) -> None:
    device = context.device
    binary, name = compiled(context, EMPTY)
    stream, event = device.create_stream(), device.create_event()
    module = device.load_module(binary, name)
    function = device.get_function(module, name)
    _reset(context)
    context.refuses("synchronize", lambda: device.synchronize(stream), InvalidArgument)
    context.refuses("record_event", lambda: device.record_event(event), InvalidArgument)
    context.refuses("get_function", lambda: device.get_function(module, name), InvalidModule)
    context.refuses(
        "launch", lambda: device.launch(function, (1,), 0, NO_ARGUMENTS), (LaunchError, InvalidModule)
    )


@CHECKS.check(
    "reset-usable", "After a reset, the device works: memory, copies, streams, events, modules, launches."
)
def _reset_usable(context: Context) -> None:
    _reset(context)
    device = context.device
    with allocated(device, 4097) as (address,), stream_of(device) as stream:
        device.memcpy_htod(address, pattern(4097), stream)
        device.synchronize(stream)
        same_bytes(context, "memory", download(device, address, 4097), pattern(4097))
    out = context.array(np.zeros(3, np.int64), "i64")
    make_kernel(ASSERT)[(3,)](out, 3, debug=True)
    same_bytes(
        context,
        "what a launch stored",
        download(device, out.data_ptr(), 24),
        np.array([1, 2, 3], np.int64).view(np.uint8),
    )


class _Words:
    """Four 64-bit integers that the check does not read afterwards, because a reset frees them."""

    dtype = "int64"

    def __init__(self, context: Context) -> None:
        self._address = context.device.memalloc(32)

    def data_ptr(self) -> int:
        return int(self._address)


@CHECKS.check(
    "reset-ends-work",
    "A reset ends work in flight, and discards earlier failures.",
    needs=("feature:streams", "feature:assert"),
)
def _reset_ends_work(context: Context) -> None:
    device, out = context.device, _Words(context)
    stream = device.create_stream()
    fail(context, out, stream)
    _reset(context)
    device.synchronize()
    with allocated(device, 64) as (address,):
        upload(device, address, pattern(64))
        same_bytes(context, "memory afterwards", download(device, address, 64), pattern(64))
