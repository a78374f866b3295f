"""Streams of the kit's device: work on one stream runs in order, and does not wait for work on another."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.runtime.blocks import (
    allocated,
    download,
    elapsed,
    events_of,
    pattern,
    same_bytes,
    stream_of,
    upload,
)
from triton_porting_kit.conformance.runtime.spinning import SLOW, at_two_paces, spin, turns_for
from triton_porting_kit.conformance.runtime.threads import in_threads
from triton_porting_kit.errors import DeviceError, InvalidArgument, LaunchError

CHECKS = Checks("runtime/streams", kit_device=True, needs=("feature:streams",))

ATTEMPTS = 4
"""How often a check of timing is tried, each time with four times the duration, because a busy machine may be late."""

MARK = 77


def _word(value: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.array([value], np.int64).view(np.uint8)


@CHECKS.check("handles", "Streams have distinct handles, different from that of the default stream.")
def _handles(context: Context) -> None:
    device = context.device
    streams = [device.create_stream() for _ in range(20)]
    for stream in streams:
        device.destroy_stream(stream)
    context.expect(len({*streams}) == 20 and 0 not in streams, "20 handles differ, none is 0", str(streams))


@CHECKS.check("kernel-then-copy", "A copy starts after the preceding kernel on its stream.")
@at_two_paces
def _kernel_then_copy(context: Context, pace: float) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    with stream_of(device) as stream:
        found = np.zeros((1, 1), np.int64)
        with context.driver.stream(stream):
            spin(out, turns_for(context, pace), MARK)
        device.memcpy_dtoh(found, out.data_ptr(), stream)
        device.synchronize(stream)
        same_bytes(context, "what was copied", found.reshape(-1).view(np.uint8), _word(MARK))


@at_two_paces
def _copy_after_kernel(context: Context, pace: float, operation: str) -> None:
    """The copy writes to the word that the kernel stores last: one that runs early is overwritten."""
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    content = np.array([[4 * MARK]], np.int64)
    with stream_of(device) as stream, allocated(device, 8) as (source,):
        upload(device, source, _word(4 * MARK))
        with context.driver.stream(stream):
            spin(out, turns_for(context, pace), MARK)
        if operation == "htod":
            device.memcpy_htod(out.data_ptr(), content, stream)
        else:
            device.memcpy_dtod(out.data_ptr(), source, 8, stream)
        device.synchronize(stream)
        same_bytes(context, "memory", download(device, out.data_ptr(), 8), _word(4 * MARK))


for _operation, _where in {"htod": "to the device", "dtod": "on the device"}.items():
    CHECKS.add(
        f"{_operation}-after-kernel",
        f"A copy {_where} starts after the preceding kernel on its stream.",
        partial(_copy_after_kernel, operation=_operation),
    )


@CHECKS.check("copy-then-kernel", "A kernel starts after the preceding copies on its stream.")
def _copy_then_kernel(context: Context) -> None:
    device, size = context.device, 4 << 20
    out = context.array(np.zeros(2, np.int64), "i64")
    with stream_of(device) as stream, allocated(device, size, size) as (a, b):
        upload(device, a, pattern(size))
        device.memcpy_dtod(b, a, size, stream)
        device.memset(out.data_ptr(), 0x11, 16, stream)
        with context.driver.stream(stream):
            spin(out, 16, MARK)
        device.synchronize(stream)
        same_bytes(context, "what the kernel wrote", download(device, out.data_ptr(), 8), _word(MARK))


@CHECKS.check("memset-after-kernel", "A memset starts after the preceding kernel on its stream.")
@at_two_paces
def _memset_after_kernel(context: Context, pace: float) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    with stream_of(device) as stream:
        with context.driver.stream(stream):
            spin(out, turns_for(context, pace), MARK)
        device.memset(out.data_ptr(), 0x22, 8, stream)
        device.synchronize(stream)
        same_bytes(context, "memory", download(device, out.data_ptr(), 8), np.full(8, 0x22, np.uint8))


@CHECKS.check("kernels-in-order", "Kernels on one stream run one after another.")
@at_two_paces
def _kernels_in_order(context: Context, pace: float) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    turns = turns_for(context, pace)
    with stream_of(device) as stream:
        with context.driver.stream(stream):
            for k in range(8):  # each is shorter than the last: out of order, the first would write last
                spin(out, turns >> k, 2 * k + 3)
        device.synchronize(stream)
        same_bytes(context, "memory", download(device, out.data_ptr(), 8), _word(17))


@CHECKS.check("long-queue", "1,000 operations on one stream all run, in order.")
def _long_queue(context: Context) -> None:
    device = context.device
    with stream_of(device) as stream, allocated(device, 1001) as (address,):
        upload(device, address, np.zeros(1001, np.uint8))
        for k in range(1000):
            device.memset(address + k, k % 251, 1001 - k, stream)
        device.synchronize(stream)
        expected = np.minimum(np.arange(1001), 999) % 251
        same_bytes(context, "memory", download(device, address, 1001), expected.astype(np.uint8))


@CHECKS.check("many", "64 streams work independently at the same time.")
def _many(context: Context) -> None:
    device, size = context.device, 5003
    streams = [device.create_stream() for _ in range(64)]
    try:
        with allocated(device, *[size] * 64) as addresses:
            for k, (stream, address) in enumerate(zip(streams, addresses, strict=True)):
                device.memset(address, 200, size, stream)
                device.memset(address, k, size, stream)
            device.synchronize()
            found = np.concatenate([download(device, address, size) for address in addresses])
            same_bytes(context, "memory", found, np.repeat(np.arange(64, dtype=np.uint8), size))
    finally:
        for stream in streams:
            device.destroy_stream(stream)


# --- independence ----------------------------------------------------------------------------------------


def _not_reached(context: Context, start: int, end: int) -> bool:
    """Whether an event is not reached yet, so that `elapsed_time` to it is refused."""
    try:
        context.device.elapsed_time(start, end)
    except InvalidArgument:
        return True
    return False


def _independent(context: Context, other: bool) -> None:
    """Check that short work overlaps a long kernel. `other`: the work is on a created stream, not the default one."""
    device, busy = context.device, context.array(np.zeros(2, np.int64), "i64")
    milliseconds = SLOW
    with stream_of(device) as slow, stream_of(device) as created, events_of(device, 3) as (start, done, end):
        quick = created if other else 0
        with allocated(device, 64) as (address,):
            for _ in range(ATTEMPTS):
                milliseconds *= 4
                device.record_event(start, slow)
                with context.driver.stream(slow):
                    spin(busy, turns_for(context, milliseconds), MARK)
                device.record_event(end, slow)
                device.memset(address, 9, 64, quick)
                device.record_event(done, quick)
                device.synchronize(quick)
                overlapped = _not_reached(context, start, end)
                device.synchronize(slow)
                # If the kernel ran first, its end event can only be slightly late, on a busy machine.
                overlapped &= elapsed(context, done, end) > elapsed(context, start, end) / 4
                if overlapped:
                    break
            context.expect(
                overlapped,
                "a memset ended before a long kernel on another stream",
                "it waited for the kernel",
            )


@CHECKS.check(
    "overlap",
    "Work on one created stream does not wait for work on another.",
    needs=("feature:streams", "feature:events"),
)
def _overlap(context: Context) -> None:
    _independent(context, True)


@CHECKS.check(
    "overlap-default",
    "Work on the default stream does not wait for work on a created one.",
    needs=("feature:streams", "feature:events"),
)
def _overlap_default(context: Context) -> None:
    _independent(context, False)


@CHECKS.check("asynchronous", "A launch on a created stream returns before the kernel has run.")
def _asynchronous(context: Context) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    milliseconds, launch, whole = SLOW, 1.0, 1.0
    with stream_of(device) as stream:
        for _ in range(ATTEMPTS):
            milliseconds *= 4
            turns = turns_for(context, milliseconds)
            start = time.perf_counter()
            with context.driver.stream(stream):
                spin(out, turns, MARK)
            launch = time.perf_counter() - start
            device.synchronize(stream)
            whole = time.perf_counter() - start
            if launch < whole / 2:
                break
    context.expect(launch < whole / 2, "the launch took less than half of the time", f"{launch} of {whole} s")


# --- synchronize -----------------------------------------------------------------------------------------


@CHECKS.check(
    "synchronize-device-threads",
    "After synchronize(), all work on a stream that another thread created and used has ended.",
)
@at_two_paces
def _synchronised_threads(context: Context, pace: float) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    turns = turns_for(context, pace)

    def work(_: int) -> int:
        stream = int(device.create_stream())
        with context.driver.stream(stream):
            spin(out, turns, MARK)
        device.memcpy_dtod(address, out.data_ptr(), 8, stream)
        return stream

    with stream_of(device) as second, allocated(device, 8) as (address,):
        upload(device, address, _word(0))
        (stream,) = in_threads(context, "work on a stream", work, 1)
        try:
            device.synchronize()
            found = np.zeros(8, np.uint8)
            device.memcpy_dtoh(found, address, second)
            device.synchronize(second)
        finally:
            device.destroy_stream(stream)
        same_bytes(context, "what the kernel wrote", found, _word(MARK))


@at_two_paces
def _synchronised(context: Context, pace: float, whole: bool) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    with stream_of(device) as stream, stream_of(device) as second, allocated(device, 8) as (address,):
        with context.driver.stream(stream):
            spin(out, turns_for(context, pace), MARK)
        device.memcpy_dtod(address, out.data_ptr(), 8, stream)
        device.synchronize(None if whole else stream)
        # This copy is on another stream: only the synchronisation orders it after the kernel.
        found = np.zeros(8, np.uint8)
        device.memcpy_dtoh(found, address, second)
        device.synchronize(second)
        same_bytes(context, "what the kernel wrote", found, _word(MARK))


CHECKS.add(
    "synchronize-stream",
    "After synchronize(stream), all work that was on the stream has ended.",
    partial(_synchronised, whole=False),
)
CHECKS.add(
    "synchronize-device",
    "After synchronize(), all work on all streams has ended.",
    partial(_synchronised, whole=True),
)


@CHECKS.check("synchronize-idle", "Waiting for an idle stream, and waiting twice for a stream, returns.")
def _idle(context: Context) -> None:
    device = context.device
    with stream_of(device) as stream:
        device.synchronize(stream)
        device.synchronize(stream)
        device.synchronize(0)
        device.synchronize()
        context.expect(True, "all of them returned")


@CHECKS.check("destroy-finishes", "Destroying a stream lets its work finish first.")
@at_two_paces
def _destroy_finishes(context: Context, pace: float) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    stream = device.create_stream()
    with context.driver.stream(stream):
        spin(out, turns_for(context, pace), MARK)
    device.destroy_stream(stream)
    same_bytes(context, "memory", download(device, out.data_ptr(), 8), _word(MARK))


@CHECKS.check(
    "free-waits",
    "Freeing memory lets work in flight that uses it finish first.",
    needs=("feature:streams", "feature:events"),
)
@at_two_paces
def _free_waits(context: Context, pace: float) -> None:
    device = context.device
    with stream_of(device) as stream, events_of(device, 2) as (start, end):
        address, size = device.memalloc(8 << 20), 8 << 20
        out = context.array(np.zeros(2, np.int64), "i64")
        device.record_event(start, stream)
        with context.driver.stream(stream):
            spin(out, turns_for(context, pace), MARK)
        device.memset(address, 1, size, stream)
        device.record_event(end, stream)
        device.memfree(address)
        with allocated(device, size) as (fresh,):  # perhaps in the same place
            upload(device, fresh, pattern(size))
            device.synchronize(stream)
            same_bytes(context, "memory allocated afterwards", download(device, fresh, size), pattern(size))


# --- invalid handles -------------------------------------------------------------------------------

_UNKNOWN = (1 << 40) + 7


def _refused(context: Context, kind: str) -> None:
    device = context.device
    stream = _UNKNOWN
    if kind == "destroyed":
        stream = device.create_stream()
        device.destroy_stream(stream)
    host = np.zeros(8, np.uint8)
    with allocated(device, 8, 8) as (a, b), events_of(device, 1) as (event,):
        for name, call in {
            "synchronize": lambda: device.synchronize(stream),
            "destroy_stream": lambda: device.destroy_stream(stream),
            "memcpy_htod": lambda: device.memcpy_htod(a, host, stream),
            "memcpy_dtoh": lambda: device.memcpy_dtoh(host, a, stream),
            "memcpy_dtod": lambda: device.memcpy_dtod(a, b, 8, stream),
            "memset": lambda: device.memset(a, 0, 8, stream),
            "record_event": lambda: device.record_event(event, stream),
            "wait_event": lambda: device.wait_event(stream, event),
        }.items():
            context.refuses(name, call, InvalidArgument)


for _kind in ("destroyed", "unknown"):
    CHECKS.add(
        f"{_kind}-refused",
        f"Every call refuses the handle of a stream that is {_kind}, with InvalidArgument.",
        partial(_refused, kind=_kind),
    )


@CHECKS.check(
    "launch-on-destroyed-refused", "A launch on a stream that was destroyed is refused with LaunchError."
)
def _launch_on_destroyed(context: Context) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    spin(out, 16, MARK)
    stream = device.create_stream()
    device.destroy_stream(stream)

    def launch() -> None:
        with context.driver.stream(stream):
            spin(out, 16, MARK)

    context.refuses("the launch", launch, (LaunchError, InvalidArgument))


@CHECKS.check("destroy-default-refused", "The default stream cannot be destroyed.")
def _destroy_default(context: Context) -> None:
    context.refuses("destroy_stream(0)", lambda: context.device.destroy_stream(0), DeviceError)
    context.device.synchronize(0)


@CHECKS.check("churn", "5,000 streams can be created and destroyed, one after another.")
def _churn(context: Context) -> None:
    device = context.device
    with allocated(device, 8) as (address,):
        for k in range(5000):
            stream = device.create_stream()
            if k % 100 == 0:
                device.memset(address, k // 100, 8, stream)
            device.destroy_stream(stream)
        same_bytes(context, "the last memset", download(device, address, 8), np.full(8, 49, np.uint8))
