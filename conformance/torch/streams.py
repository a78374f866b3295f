"""Checks of the streams and events of a torch device, through the classes that `torch.cuda` has."""

from __future__ import annotations

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.torch import support
from triton_porting_kit.conformance.torch.surface import Surface

CHECKS = Checks("torch/streams", torch=support.ACCELERATOR, needs=["feature:streams", "feature:events"])
_ELEMENTS = 200_000
_ROUNDS = 30


@CHECKS.check(
    "current", "A stream is current inside of torch's context of it, and the one before it afterwards."
)
def current(context: Context) -> None:
    surface = Surface(context)
    before, stream = surface.current_stream(), surface.Stream()
    with surface.stream(stream):
        inside = surface.current_stream()
        context.expect(inside == stream, "the stream is current", f"it is {inside}")
    after = surface.current_stream()
    context.expect(after == before, "the stream before is current again", f"it is {after}")


@CHECKS.check("order", "Work of one stream is done in order.")
def order(context: Context) -> None:
    import torch

    surface = Surface(context)
    stream = surface.Stream()
    start = surface.numbers(_ELEMENTS)
    stream.wait_stream(surface.current_stream())
    with surface.stream(stream):
        x = start
        for _ in range(_ROUNDS):
            x = x * 2 % 1009
    stream.synchronize()
    wanted = torch.arange(_ELEMENTS, dtype=torch.float32)
    for _ in range(_ROUNDS):
        wanted = wanted * 2 % 1009
    context.expect(
        torch.equal(x.cpu(), wanted), f"{_ROUNDS} dependent steps are right", "the result is wrong"
    )
    context.expect(stream.query(), "a stream that was waited for is idle", "query() is false")


@CHECKS.check("events", "A stream that waits for an event sees the work before it.")
def events(context: Context) -> None:
    import torch

    surface = Surface(context)
    first, second, event = surface.Stream(), surface.Stream(), surface.Event()
    start = surface.numbers(_ELEMENTS)
    surface.synchronize()
    with surface.stream(first):
        x = start
        for _ in range(_ROUNDS):
            x = x + 1
        event.record(first)
    second.wait_event(event)
    with surface.stream(second):
        doubled = x * 2
    second.synchronize()
    wanted = 2 * (torch.arange(_ELEMENTS, dtype=torch.float32) + _ROUNDS)
    context.expect(torch.equal(doubled.cpu(), wanted), "the other stream's results are there", "they are not")
    context.expect(event.query(), "the event is done", "query() is false")


@CHECKS.check("times", "Events measure times, which are not negative.")
def times(context: Context) -> None:
    surface = Surface(context)
    begin, end = surface.Event(enable_timing=True), surface.Event(enable_timing=True)
    begin.record()
    x = surface.numbers(_ELEMENTS)
    for _ in range(_ROUNDS):
        x = x + 1
    end.record()
    end.synchronize()
    found = begin.elapsed_time(end)
    context.expect(found >= 0, "the time between two events is not negative", f"it is {found} ms")


@CHECKS.check("recorded", "Memory of a tensor that a stream uses is not reused before that stream is done.")
def recorded(context: Context) -> None:
    import torch

    surface = Surface(context)
    stream = surface.Stream()
    x = surface.numbers(_ELEMENTS)
    stream.wait_stream(surface.current_stream())
    with surface.stream(stream):
        y = x
        for _ in range(_ROUNDS):
            y = y + 0
        total = y + x
    x.record_stream(stream)
    del x, y
    for _ in range(4):
        torch.full((_ELEMENTS,), -1.0, device=surface.name)
    stream.synchronize()
    wanted = 2 * torch.arange(_ELEMENTS, dtype=torch.float32)
    context.expect(
        torch.equal(total.cpu(), wanted), "the stream read the tensor's elements", "it read others"
    )


@CHECKS.check("synchronize", "synchronize waits for all streams.")
def synchronize(context: Context) -> None:
    surface = Surface(context)
    streams = [surface.Stream() for _ in range(3)]
    x = surface.numbers(_ELEMENTS)
    surface.synchronize()
    found = []
    for stream in streams:
        with surface.stream(stream):
            y = x
            for _ in range(_ROUNDS):
                y = y + 1
            found.append(y)
    surface.synchronize()
    context.expect(all(stream.query() for stream in streams), "no stream has work left", "query() is false")
    right = all(bool((y.cpu() - _ROUNDS == x.cpu()).all()) for y in found)
    context.expect(right, "all results are there", "they are not")
