"""The device as a whole: its properties, the reporting of failures, and threads."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.runtime.blocks import (
    allocated,
    download,
    pattern,
    same_bytes,
    stream_of,
)
from triton_porting_kit.conformance.runtime.modules import EMPTY, NO_ARGUMENTS, compiled
from triton_porting_kit.conformance.runtime.threads import THREADS, in_threads
from triton_porting_kit.errors import DeviceError, InvalidArgument

CHECKS = Checks("runtime/device", kit_device=True)

ASSERT = """
def asserts(O, limit):
    p = tl.program_id(0)
    tl.device_assert(p < limit, "too far")
    tl.store(O + p, p.to(tl.int64) + 1)
"""


# --- properties ------------------------------------------------------------------------------------------


def _positive(context: Context, name: str) -> None:
    value = getattr(context.device.properties(), name)
    context.expect(isinstance(value, int) and value > 0, f"{name} is a positive int", repr(value))


def _memory(context: Context, name: str) -> None:
    _positive(context, name)
    found = context.device.properties()
    largest = found.max_allocation_bytes
    what = f"max_allocation_bytes is 0, or no more than {found.memory_bytes}"
    context.expect(isinstance(largest, int) and 0 <= largest <= found.memory_bytes, what, repr(largest))


def _scratch(context: Context, name: str) -> None:
    found = context.device.properties()
    for each in (name, "max_dram_scratch_bytes"):
        value = getattr(found, each)
        context.expect(
            isinstance(value, int) and value >= 0, f"{each} is an int, and not negative", repr(value)
        )
    context.expect(found.scratch_limit > 0, "one of them is positive")


for _name, _expected, _body in (
    ("memory_bytes", "have a positive memory_bytes, and no allocation may be larger", _memory),
    ("core_count", "have a positive core_count", _positive),
    ("max_scratch_bytes", "state how much scratch a program may use, on chip or in memory", _scratch),
    ("max_threads_per_program", "have a positive max_threads_per_program", _positive),
    ("warp_size", "have a positive warp_size", _positive),
):
    CHECKS.add(f"property-{_name}", f"The device's properties {_expected}.", partial(_body, name=_name))


def _known(context: Context, name: str) -> None:
    value = getattr(context.device.properties(), name)
    context.expect(isinstance(value, str) and bool(value.strip()), f"{name} is a string", repr(value))


for _name in ("name", "arch"):
    CHECKS.add(f"property-{_name}", f"The device's properties have its {_name}.", partial(_known, name=_name))


@CHECKS.check("properties-constant", "The properties do not change while the device works.")
def _constant(context: Context) -> None:
    before = context.device.properties()
    with allocated(context.device, 1 << 20):
        context.expect(context.device.properties() == before, "they are the same with memory in use")


@CHECKS.check("properties-for-triton", "The properties that Triton reads are available under its names.")
def _for_triton(context: Context) -> None:
    found = context.driver.utils.get_device_properties(context.driver.get_current_device())
    for name in ("max_shared_mem", "multiprocessor_count", "warpSize"):
        value = found.get(name)
        context.expect(isinstance(value, int) and value > 0, f"{name} is a positive int", repr(value))


# --- failures are reported ---------------------------------------------------------------------------------


def fail(context: Context, out: Any, stream: int) -> None:
    """Launch a kernel on a stream; the assertion fails in its last program."""
    with context.driver.stream(stream):
        make_kernel(ASSERT)[(4,)](out, 3, debug=True)


@CHECKS.check(
    "asynchronous-failure",
    "What fails on a stream is raised by synchronizing that stream: once, not before, and not twice.",
    needs=("feature:streams", "feature:assert"),
)
def _asynchronous_failure(context: Context) -> None:
    device, out = context.device, context.array(np.zeros(4, np.int64), "i64")
    with stream_of(device) as stream:
        fail(context, out, stream)
        context.refuses("the first synchronize", lambda: device.synchronize(stream), DeviceError)
        device.synchronize(stream)
        context.expect(True, "the second synchronize raised nothing")


@CHECKS.check(
    "asynchronous-failure-of-device",
    "What fails on a stream is raised by synchronizing the device, once.",
    needs=("feature:streams", "feature:assert"),
)
def _failure_of_device(context: Context) -> None:
    device, out = context.device, context.array(np.zeros(4, np.int64), "i64")
    with stream_of(device) as stream:
        fail(context, out, stream)
        context.refuses("the first synchronize", device.synchronize, DeviceError)
        device.synchronize()
        device.synchronize(stream)
        context.expect(True, "later ones raised nothing")


@CHECKS.check(
    "failure-stays-on-its-stream",
    "What fails on one stream is not raised by synchronizing another, and does not stop it.",
    needs=("feature:streams", "feature:assert"),
)
def _stays(context: Context) -> None:
    device, out = context.device, context.array(np.zeros(4, np.int64), "i64")
    with stream_of(device) as bad, stream_of(device) as good, allocated(device, 100) as (address,):
        fail(context, out, bad)
        device.memset(address, 7, 100, good)
        device.synchronize(good)
        found: np.ndarray[Any, Any] = np.zeros(100, np.uint8)
        device.memcpy_dtoh(found, address, good)
        device.synchronize(good)
        same_bytes(context, "what the good stream did", found, np.full(100, 7, np.uint8))
        context.refuses("synchronizing the bad one", lambda: device.synchronize(bad), DeviceError)


@CHECKS.check(
    "destroy-raises-failure",
    "Destroying a stream raises what failed on it, if nothing has raised it before.",
    needs=("feature:streams", "feature:assert"),
)
def _destroy_raises(context: Context) -> None:
    device, out = context.device, context.array(np.zeros(4, np.int64), "i64")
    stream = device.create_stream()
    fail(context, out, stream)
    context.refuses("destroy_stream", lambda: device.destroy_stream(stream), DeviceError)
    context.refuses("the stream afterwards", lambda: device.synchronize(stream), InvalidArgument)
    device.synchronize()


@CHECKS.check(
    "usable-after-failure",
    "After a failure was raised, the stream and the device work as before.",
    needs=("feature:streams", "feature:assert"),
)
def _usable(context: Context) -> None:
    device, out = context.device, context.array(np.zeros(4, np.int64), "i64")
    with stream_of(device) as stream:
        for _ in range(3):
            fail(context, out, stream)
            context.refuses("synchronize", lambda: device.synchronize(stream), DeviceError)
            with context.driver.stream(stream):
                make_kernel(ASSERT)[(3,)](out, 3, debug=True)
            device.synchronize(stream)
            same_bytes(
                context,
                "what a good launch stored",
                download(device, out.data_ptr(), 24),
                np.array([1, 2, 3], np.int64).view(np.uint8),
            )


def _default_failure(context: Context) -> None:
    device, out = context.device, context.array(np.zeros(4, np.int64), "i64")

    def launch() -> None:
        fail(context, out, 0)
        device.synchronize()

    error = context.refuses("the launch, or synchronize,", launch, DeviceError)
    context.expect("too far" in str(error), "the message has the assertion's text", str(error))
    device.synchronize()
    context.expect(True, "it is raised once")


CHECKS.add(
    "default-failure",
    "What fails on the default stream is raised once, with the text of the assertion.",
    _default_failure,
    needs=("feature:assert",),
)


@CHECKS.check("messages", "Error messages name the call and the wrong value.")
def _messages(context: Context) -> None:
    device = context.device
    for call, word in {
        lambda: device.memalloc(-12345): "12345",
        lambda: device.memfree(0): "memfree",
        lambda: device.memset(0, 0, 16): "memset",
        lambda: device.synchronize((1 << 40) + 7): str((1 << 40) + 7),
        lambda: device.load_module(b"", "kernel_of_mine"): "kernel_of_mine",
    }.items():
        error = context.refuses(f"the call about {word}", call, DeviceError)
        context.expect(word in str(error), f"the message has {word}", str(error))


# --- threads ---------------------------------------------------------------------------------------------


@CHECKS.check("threads-memory", "Several threads can allocate, copy and free at the same time.")
def _threads_memory(context: Context) -> None:
    device = context.device

    def work(k: int) -> int:
        wrong = 0
        for turn in range(100):
            size = 100 + 37 * turn + k
            with allocated(device, size) as (address,):
                content = pattern(size, 100 * k + turn)
                device.memcpy_htod(address, content)
                wrong += int((download(device, address, size) != content).sum())
        return wrong

    wrong = in_threads(context, "allocating and copying", work)
    context.expect(not any(wrong), "every thread read what it wrote", f"wrong bytes by thread: {wrong}")


@CHECKS.check(
    "threads-streams",
    "Several threads can each use a stream and events of their own.",
    needs=("feature:streams", "feature:events"),
)
def _threads_streams(context: Context) -> None:
    device = context.device

    def work(k: int) -> int:
        with stream_of(device) as stream, allocated(device, 1000) as (address,):
            for turn in range(50):
                device.memset(address, turn, 1000, stream)
                event = device.create_event()
                device.record_event(event, stream)
                device.synchronize_event(event)
                device.destroy_event(event)
            device.memset(address, k, 1000, stream)
            device.synchronize(stream)
            return int((download(device, address, 1000) != k).sum())

    wrong = in_threads(context, "streams and events", work)
    context.expect(not any(wrong), "every thread read what it wrote", f"wrong bytes by thread: {wrong}")


@CHECKS.check("threads-one-stream", "Several threads can put work on one stream.", needs=("feature:streams",))
def _threads_one_stream(context: Context) -> None:
    device = context.device
    with stream_of(device) as stream, allocated(device, 1000 * THREADS) as (address,):

        def work(k: int) -> None:
            for turn in range(100):
                device.memset(address + 1000 * k, (turn + k) % 256, 1000, stream)

        in_threads(context, "memsets on one stream", work)
        device.synchronize(stream)
        expected = np.repeat(np.arange(99, 99 + THREADS, dtype=np.uint8), 1000)
        same_bytes(context, "the last memset of each", download(device, address, 1000 * THREADS), expected)


@CHECKS.check("threads-modules", "Several threads can load, launch and unload modules at the same time.")
def _threads_modules(context: Context) -> None:
    device = context.device
    binary, name = compiled(context, EMPTY)

    def work(k: int) -> None:
        for _ in range(10):
            module = device.load_module(binary, name)
            device.launch(device.get_function(module, name), (3,), 0, NO_ARGUMENTS)
            device.unload_module(module)

    in_threads(context, "loading and launching", work)
