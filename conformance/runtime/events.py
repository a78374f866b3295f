"""Events of the kit's device: order between streams, and elapsed times."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.runtime.blocks import (
    allocated,
    download,
    elapsed,
    events_of,
    same_bytes,
    stream_of,
)
from triton_porting_kit.conformance.runtime.clocks import check_clock
from triton_porting_kit.conformance.runtime.spinning import SLOW, at_two_paces, spin, turns_for
from triton_porting_kit.conformance.runtime.streams import ATTEMPTS, MARK
from triton_porting_kit.errors import InvalidArgument

CHECKS = Checks("runtime/events", kit_device=True, needs=("feature:streams", "feature:events"))


@CHECKS.check("handles", "Every event has a handle of its own.")
def _handles(context: Context) -> None:
    with events_of(context.device, 50) as events:
        context.expect(len({*events}) == 50, "50 handles differ", str(events))


@at_two_paces
def _ordered(context: Context, pace: float, *, on_default: bool) -> None:
    """A copy on one stream waits for a slow kernel on another."""
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    with stream_of(device) as first, stream_of(device) as created, events_of(device, 1) as (event,):
        second = 0 if on_default else created
        with context.driver.stream(first):
            spin(out, turns_for(context, pace), MARK)
        device.record_event(event, first)
        device.wait_event(second, event)
        found = np.zeros(8, np.uint8)
        device.memcpy_dtoh(found, out.data_ptr(), second)
        device.synchronize(second)
        same_bytes(context, "what was copied", found, np.array([MARK], np.int64).view(np.uint8))


CHECKS.add(
    "wait",
    "A stream that waits for an event continues after the work that the event recorded.",
    partial(_ordered, on_default=False),
)
CHECKS.add(
    "wait-default",
    "The default stream, when it waits for an event, continues after the work that the event recorded.",
    partial(_ordered, on_default=True),
)


@CHECKS.check("wait-chain", "Work that is ordered across streams by events runs in order.")
@at_two_paces
def _chain(context: Context, pace: float) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    turns = turns_for(context, pace)
    streams = [device.create_stream() for _ in range(6)]
    try:
        with events_of(device, 6) as events:
            for k, (stream, event) in enumerate(zip(streams, events, strict=True)):
                if k:
                    device.wait_event(stream, events[k - 1])
                with context.driver.stream(stream):
                    spin(out, turns >> (2 * k), 2 * k + 3)
                device.record_event(event, stream)
            device.synchronize_event(events[-1])
            found = download(device, out.data_ptr(), 8)
            same_bytes(context, "the last to write", found, np.array([13], np.int64).view(np.uint8))
    finally:
        for stream in streams:
            device.destroy_stream(stream)


@CHECKS.check("fan-in", "A stream can wait for events of several others.")
@at_two_paces
def _fan_in(context: Context, pace: float) -> None:
    device = context.device
    outs = [context.array(np.zeros(2, np.int64), "i64") for _ in range(4)]
    streams = [device.create_stream() for _ in range(5)]
    try:
        with events_of(device, 4) as events, allocated(device, 32) as (address,):
            for k, (stream, event, out) in enumerate(zip(streams, events, outs, strict=False)):
                with context.driver.stream(stream):
                    spin(out, turns_for(context, pace) >> k, 2 * k + 3)
                device.record_event(event, stream)
                device.wait_event(streams[-1], event)
            for k, out in enumerate(outs):
                device.memcpy_dtod(address + 8 * k, out.data_ptr(), 8, streams[-1])
            device.synchronize(streams[-1])
            expected = np.array([3, 5, 7, 9], np.int64).view(np.uint8)
            same_bytes(context, "what was copied", download(device, address, 32), expected)
    finally:
        for stream in streams:
            device.destroy_stream(stream)


@CHECKS.check("synchronize", "After synchronize_event, the work recorded by the event has ended.")
@at_two_paces
def _synchronize(context: Context, pace: float) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    with stream_of(device) as stream, stream_of(device) as second, events_of(device, 1) as (event,):
        with context.driver.stream(stream):
            spin(out, turns_for(context, pace), MARK)
        device.record_event(event, stream)
        device.synchronize_event(event)
        found = np.zeros(8, np.uint8)
        device.memcpy_dtoh(found, out.data_ptr(), second)
        device.synchronize(second)
        same_bytes(context, "what was copied", found, np.array([MARK], np.int64).view(np.uint8))


@CHECKS.check(
    "record-again", "An event that is recorded again refers to the work on its stream at that time."
)
@at_two_paces
def _record_again(context: Context, pace: float) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    with stream_of(device) as stream, events_of(device, 1) as (event,):
        device.record_event(event, stream)
        device.synchronize_event(event)
        with context.driver.stream(stream):
            spin(out, turns_for(context, pace), MARK)
        device.record_event(event, stream)
        device.synchronize_event(event)
        found = np.zeros(8, np.uint8)
        with stream_of(device) as second:
            device.memcpy_dtoh(found, out.data_ptr(), second)
        same_bytes(context, "what was copied", found, np.array([MARK], np.int64).view(np.uint8))


@CHECKS.check(
    "wait-keeps-its-point",
    "A stream waits for the work that an event referred to when wait_event was called, not for later work.",
)
def _keeps_its_point(context: Context) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    milliseconds, early = SLOW, False
    with (
        stream_of(device) as slow,
        stream_of(device) as waiting,
        events_of(device, 3) as (event, start, end),
        allocated(device, 8) as (address,),
    ):
        for _ in range(ATTEMPTS):
            milliseconds *= 4
            device.record_event(event, slow)
            device.wait_event(waiting, event)
            device.record_event(start, slow)
            with context.driver.stream(slow):
                spin(out, turns_for(context, milliseconds), MARK)
            device.record_event(event, slow)
            device.record_event(end, slow)
            device.memset(address, 1, 8, waiting)
            device.synchronize(waiting)
            try:
                device.elapsed_time(start, end)
            except InvalidArgument:
                early = True
            device.synchronize(slow)
            if early:
                break
    context.expect(early, "the stream went on before what was recorded later", "it waited for that too")


@CHECKS.check(
    "destroyed-while-waited-for",
    "A stream keeps waiting for the work of an event that is destroyed meanwhile.",
)
@at_two_paces
def _destroyed_while_waited_for(context: Context, pace: float) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    with stream_of(device) as first, stream_of(device) as second:
        event = device.create_event()
        with context.driver.stream(first):
            spin(out, turns_for(context, pace), MARK)
        device.record_event(event, first)
        device.wait_event(second, event)
        device.destroy_event(event)
        found = np.zeros(8, np.uint8)
        device.memcpy_dtoh(found, out.data_ptr(), second)
        device.synchronize(second)
        same_bytes(context, "what was copied", found, np.array([MARK], np.int64).view(np.uint8))


# --- events that were not recorded -------------------------------------------------------------------------


@CHECKS.check(
    "unrecorded-synchronize", "Waiting on the host for an event that was never recorded returns at once."
)
def _unrecorded_synchronize(context: Context) -> None:
    with events_of(context.device, 1) as (event,):
        context.device.synchronize_event(event)
        context.expect(True, "synchronize_event returned")


@CHECKS.check(
    "unrecorded-wait", "A stream that waits for an event that was never recorded continues at once."
)
def _unrecorded_wait(context: Context) -> None:
    device = context.device
    with stream_of(device) as stream, events_of(device, 1) as (event,), allocated(device, 64) as (address,):
        device.wait_event(stream, event)
        device.memset(address, 5, 64, stream)
        device.synchronize(stream)
        same_bytes(context, "memory", download(device, address, 64), np.full(64, 5, np.uint8))


@CHECKS.check(
    "unrecorded-elapsed-refused", "elapsed_time is refused if one of the events was never recorded."
)
def _unrecorded_elapsed(context: Context) -> None:
    device = context.device
    with events_of(device, 2) as (recorded, other), stream_of(device) as stream:
        device.record_event(recorded, stream)
        device.synchronize_event(recorded)
        for name, pair in {
            "end": (recorded, other),
            "start": (other, recorded),
            "both": (other, other),
        }.items():
            context.refuses(
                f"elapsed_time ({name} not recorded)", partial(device.elapsed_time, *pair), InvalidArgument
            )


# --- time ------------------------------------------------------------------------------------------------


@CHECKS.check(
    "elapsed-plausible",
    "The time between events around a kernel is above zero, and at most the time that the host measures; or, of a "
    "simulated chip, in proportion to the kernel's work, and possible for a chip.",
)
def _plausible(context: Context) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    with stream_of(device) as stream, events_of(device, 2) as (start, end):

        def measured(turns: int) -> float:
            device.record_event(start, stream)
            with context.driver.stream(stream):
                spin(out, turns, MARK)
            device.record_event(end, stream)
            device.synchronize_event(end)
            return elapsed(context, start, end)

        check_clock(context, measured)


@CHECKS.check("elapsed-grows", "Events measure a longer time for a kernel with sixteen times the work.")
def _grows(context: Context) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    milliseconds, times = SLOW / 4, (0.0, 0.0)
    with stream_of(device) as stream, events_of(device, 3) as (first, second, third):
        for _ in range(ATTEMPTS):
            milliseconds *= 4
            turns = turns_for(context, milliseconds)
            device.record_event(first, stream)
            with context.driver.stream(stream):
                spin(out, turns >> 4, MARK)
            device.record_event(second, stream)
            with context.driver.stream(stream):
                spin(out, turns, MARK)
            device.record_event(third, stream)
            device.synchronize_event(third)
            times = elapsed(context, first, second), elapsed(context, second, third)
            if times[1] > 2 * times[0]:
                break
    context.expect(times[1] > 2 * times[0], "it takes more than twice as long", f"{times} ms")


@CHECKS.check("elapsed-monotonic", "Times between events on one stream add up, and are never negative.")
def _monotonic(context: Context) -> None:
    device = context.device
    with (
        stream_of(device) as stream,
        events_of(device, 20) as events,
        allocated(device, 1 << 16) as (address,),
    ):
        for event in events:
            device.memset(address, 1, 1 << 16, stream)
            device.record_event(event, stream)
        device.synchronize(stream)
        steps = [elapsed(context, a, b) for a, b in itertools.pairwise(events)]
        whole = elapsed(context, events[0], events[-1])
        context.expect(min(steps) >= 0, "no step is negative", f"{min(steps)} ms")
        context.expect(
            abs(sum(steps) - whole) <= 1e-3 * max(whole, 1.0) * len(steps),
            "the steps add up",
            f"{sum(steps)}, not {whole} ms",
        )
        context.expect(elapsed(context, events[3], events[3]) == 0.0, "from an event to itself it is nothing")


@CHECKS.check("elapsed-early-refused", "elapsed_time to an event that is not reached yet is refused.")
def _early(context: Context) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    milliseconds, refused = SLOW, False
    with stream_of(device) as stream, events_of(device, 2) as (start, end):
        for _ in range(ATTEMPTS):
            milliseconds *= 4
            device.record_event(start, stream)
            with context.driver.stream(stream):
                spin(out, turns_for(context, milliseconds), MARK)
            device.record_event(end, stream)
            try:
                device.elapsed_time(start, end)
            except InvalidArgument:
                refused = True
            device.synchronize(stream)
            if refused:
                break
    context.expect(
        refused, "elapsed_time before the kernel has ended raises InvalidArgument", "it gave a time"
    )


@CHECKS.check("elapsed-across-streams", "The time between events of two streams can be measured.")
def _across(context: Context) -> None:
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    with (
        stream_of(device) as first,
        stream_of(device) as second,
        events_of(device, 3) as (start, middle, end),
    ):
        device.record_event(start, first)
        device.synchronize(first)
        device.record_event(middle, second)
        with context.driver.stream(second):
            spin(out, turns_for(context, SLOW), MARK)
        device.record_event(end, second)
        device.synchronize(second)
        found, kernel = elapsed(context, start, end), elapsed(context, middle, end)
        context.expect(
            found >= kernel > 0, "it is no less than what the kernel took", f"{found} and {kernel} ms"
        )


# --- invalid handles ---------------------------------------------------------------------------------


def _refused(context: Context, kind: str) -> None:
    device, event = context.device, (1 << 40) + 7
    if kind == "destroyed":
        event = device.create_event()
        device.record_event(event)
        device.destroy_event(event)
    with events_of(device, 1) as (other,), stream_of(device) as stream:
        device.record_event(other, stream)
        device.synchronize_event(other)
        for name, call in {
            "record_event": lambda: device.record_event(event, stream),
            "wait_event": lambda: device.wait_event(stream, event),
            "synchronize_event": lambda: device.synchronize_event(event),
            "elapsed_time to it": lambda: device.elapsed_time(other, event),
            "elapsed_time from it": lambda: device.elapsed_time(event, other),
            "destroy_event": lambda: device.destroy_event(event),
        }.items():
            context.refuses(name, call, InvalidArgument)


for _kind in ("destroyed", "unknown"):
    CHECKS.add(
        f"{_kind}-refused",
        f"Every call refuses the handle of an event that is {_kind}, with InvalidArgument.",
        partial(_refused, kind=_kind),
    )


@CHECKS.check("churn", "10,000 events can be created, recorded and destroyed, one after another.")
def _churn(context: Context) -> None:
    device = context.device
    with stream_of(device) as stream:
        for _ in range(10_000):
            event = device.create_event()
            device.record_event(event, stream)
            device.destroy_event(event)
        device.synchronize(stream)
        context.expect(True, "10,000 were")
