"""Copies and events between two devices of a process, or within the only one; or that a device refuses them."""

from __future__ import annotations

from typing import Any

import numpy as np

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.runtime.blocks import (
    allocated,
    download,
    events_of,
    pattern,
    same_bytes,
    stream_of,
    upload,
)
from triton_porting_kit.conformance.runtime.spinning import at_two_paces, spin, turns_for
from triton_porting_kit.conformance.runtime.streams import MARK
from triton_porting_kit.errors import InvalidPointer, MissingHook

CHECKS = Checks("runtime/peers", kit_device=True)

SIZES = (1, 100, 4099, (1 << 20) + 3)


def _peer(context: Context) -> Any:
    """The last device; None if devices do not reach each other, and refuse every call of this kind."""
    device, peer = context.device, context.session.driver.devices[-1]
    if device.can_access_peer(peer):
        return peer
    context.refuses("memcpy_peer", lambda: device.memcpy_peer(64, peer, 64, 1), MissingHook)
    context.refuses("wait_peer_event", lambda: device.wait_peer_event(0, peer, 1), MissingHook)
    return None


@CHECKS.check("copies", "Bytes are copied between devices, in both directions, after the work on the stream.")
def _copies(context: Context) -> None:
    if (peer := _peer(context)) is None:
        return
    context.expect(peer.can_access_peer(context.device), "the other device reaches this one, too")
    for to, source in ((context.device, peer), (peer, context.device)):
        for size in SIZES:
            with allocated(source, size) as (there,), allocated(to, size) as (here,), stream_of(to) as stream:
                upload(source, there, pattern(size, 1))
                to.memset(here, 7, size, stream)
                to.memcpy_peer(here, source, there, size, stream)
                to.synchronize(stream)
                same_bytes(context, f"{size} bytes", download(to, here, size), pattern(size, 1))


@CHECKS.check("copies-refused", "Copies to or from addresses outside of an allocation are refused.")
def _refused(context: Context) -> None:
    if (peer := _peer(context)) is None:
        return
    device = context.device
    with allocated(peer, 64) as (there,), allocated(device, 64) as (here,):
        context.refuses("from NULL", lambda: device.memcpy_peer(here, peer, 0, 8), InvalidPointer)
        context.refuses("to NULL", lambda: device.memcpy_peer(0, peer, there, 8), InvalidPointer)
        context.refuses("beyond", lambda: device.memcpy_peer(here, peer, there, 1 << 40), InvalidPointer)


@CHECKS.check("event", "A stream that waits for another device's event continues after the work before it.")
@at_two_paces
def _event(context: Context, pace: float) -> None:
    if (peer := _peer(context)) is None:
        return
    device, out = context.device, context.array(np.zeros(2, np.int64), "i64")
    expected = np.array([MARK], np.int64).view(np.uint8)
    with (
        stream_of(device) as working,
        stream_of(peer) as waiting,
        events_of(device, 1) as (event,),
        allocated(peer, 8) as (copy,),
    ):
        with context.driver.stream(working):
            spin(out, turns_for(context, pace), MARK)
        device.record_event(event, working)
        peer.wait_peer_event(waiting, device, event)
        peer.memcpy_peer(copy, device, out.data_ptr(), 8, waiting)
        found = np.zeros(8, np.uint8)
        peer.memcpy_dtoh(found, copy, waiting)
        peer.synchronize(waiting)
        same_bytes(context, "what was copied after the event", found, expected)


@CHECKS.check("event-unrecorded", "An event of another device that was never recorded is not waited for.")
def _unrecorded(context: Context) -> None:
    if (peer := _peer(context)) is None:
        return
    with events_of(context.device, 1) as (event,), stream_of(peer) as stream:
        peer.wait_peer_event(stream, context.device, event)
        peer.synchronize(stream)
        context.expect(True, "the stream ends")
