"""Streams and events of the host device: order, independence, failures, time."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable

import numpy as np
import pytest
from objects import kernel

from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.errors import InvalidArgument, LaunchError

SLOW = 20_000_000
"""Rounds of the `spin` kernel: some milliseconds."""


@pytest.fixture
def spin(device: HostDevice) -> Callable[[int, int], None]:
    """``spin(stream, counter)`` keeps a stream busy for a while, then adds 1 at the address `counter`."""
    function = device.get_function(device.load_module(kernel("spin"), "spin"), "spin")
    return lambda stream, counter: device.launch(function, (1,), stream, struct.pack("QQ", counter, SLOW))


def _value(device: HostDevice, address: int, stream: int = 0) -> int:
    back = bytearray(8)
    device.memcpy_dtoh(back, address, stream)
    device.synchronize(stream)
    return int.from_bytes(back, "little")


def test_work_of_a_stream_runs_in_order_behind_the_caller(device: HostDevice, spin) -> None:
    stream, address = device.create_stream(), device.memalloc(8)
    gate = device.get_function(device.load_module(kernel("gate"), "gate"), "gate")
    flag = device.memalloc(8)
    device.memset(flag, 0, 8)
    device.memset(address, 0, 8, stream)
    event = device.create_event()
    device.launch(gate, (1,), stream, struct.pack("Q", flag))
    for _ in range(5):
        spin(stream, address)
    device.record_event(event, stream)
    with pytest.raises(InvalidArgument, match="not been reached"):
        device.elapsed_time(event, event)  # the calls above came back, the work waits at the gate
    device.memset(flag, 1, 8)
    device.memcpy_dtod(address, address, 8, stream)
    assert _value(device, address, stream) == 5
    device.memfree(flag)
    device.destroy_event(event)
    device.destroy_stream(stream)
    device.memfree(address)


def test_random_operations_on_streams_match_their_order(device: HostDevice) -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        stream, address = device.create_stream(), device.memalloc(256)
        model = np.zeros(256, np.uint8)
        device.memset(address, 0, 256, stream)
        for _ in range(50):
            start, count = random.integers(0, 128, 2)
            if random.integers(2):
                data = random.integers(0, 256, count, dtype=np.uint8)
                device.memcpy_htod(address + int(start), data, stream)
                model[start : start + count] = data
            else:
                source = int(random.integers(0, 128))
                device.memcpy_dtod(address + int(start), address + source, int(count), stream)
                model[start : start + count] = model[source : source + count].copy()
        back = np.empty(256, np.uint8)
        device.memcpy_dtoh(back, address, stream)
        device.synchronize(stream)
        np.testing.assert_array_equal(back, model)
        device.destroy_stream(stream)
        device.memfree(address)


def test_streams_run_beside_each_other_and_events_join_them(device: HostDevice, spin) -> None:
    first, second = device.create_stream(), device.create_stream()
    address = device.memalloc(16)
    device.memset(address, 0, 16)
    event = device.create_event()
    spin(first, address)
    spin(first, address)
    device.record_event(event, first)
    device.wait_event(second, event)
    device.memcpy_dtod(address + 8, address, 8, second)
    assert _value(device, address + 8, second) == 2
    device.synchronize_event(event)
    device.destroy_event(event)
    for stream in (first, second):
        device.destroy_stream(stream)
    device.memfree(address)


def test_the_default_stream_waits_for_an_event_and_for_nothing_else(device: HostDevice, spin) -> None:
    stream, address = device.create_stream(), device.memalloc(8)
    device.memset(address, 0, 8)
    event = device.create_event()
    for _ in range(3):
        spin(stream, address)
    device.record_event(event, stream)
    spin(stream, address)
    device.wait_event(0, event)
    assert _value(device, address) >= 3
    device.synchronize()
    assert _value(device, address) == 4
    device.destroy_event(event)
    device.destroy_stream(stream)
    device.memfree(address)


def test_waiting_takes_what_the_event_stands_for_now(device: HostDevice, spin) -> None:
    busy, free = device.create_stream(), device.create_stream()
    address, event = device.memalloc(8), device.create_event()
    device.memset(address, 0, 8)
    device.wait_event(free, event)  # never recorded: no wait
    device.synchronize_event(event)
    device.record_event(event, busy)
    device.synchronize_event(event)
    device.wait_event(free, event)
    spin(busy, address)
    device.record_event(event, busy)  # the wait above is for the earlier recording
    device.synchronize(free)
    device.destroy_event(event)
    for stream in (busy, free):
        device.destroy_stream(stream)
    assert _value(device, address) == 1  # destroying lets the work end
    device.memfree(address)


def test_elapsed_time(device: HostDevice, spin) -> None:
    address, stream = device.memalloc(8), device.create_stream()
    for queue in (0, stream):
        start, end = device.create_event(), device.create_event()
        with pytest.raises(InvalidArgument, match="start event was never recorded"):
            device.elapsed_time(start, end)
        device.record_event(start, queue)
        spin(queue, address)
        device.record_event(end, queue)
        device.synchronize_event(end)
        assert 0.1 < device.elapsed_time(start, end) < 60_000
        assert device.elapsed_time(end, start) == -device.elapsed_time(start, end)
        for event in (start, end):
            device.destroy_event(event)
    device.destroy_stream(stream)
    device.memfree(address)


def test_a_failure_is_raised_once_by_the_next_synchronize(device: HostDevice) -> None:
    fail = device.get_function(device.load_module(kernel("fail"), "fail"), "fail")
    stream, other, address = device.create_stream(), device.create_stream(), device.memalloc(1)
    device.memset(address, 1, 1)
    event = device.create_event()
    device.launch(fail, (4,), stream, struct.pack("q", 2))
    device.memset(address, 2, 1, stream)
    device.record_event(event, stream)
    device.wait_event(other, event)
    device.synchronize(other)
    with pytest.raises(LaunchError, match=r"'fail' failed with code 7 .* 1 operations behind it"):
        device.synchronize(stream)
    device.synchronize(stream)
    back = bytearray(1)
    device.memcpy_dtoh(back, address, stream)
    device.synchronize(stream)
    assert back == b"\1"  # the fill behind the failure did not run
    device.launch(fail, (1,), stream, struct.pack("q", 0))
    with pytest.raises(LaunchError):
        device.synchronize()
    device.synchronize()
    device.launch(fail, (1,), stream, struct.pack("q", 0))
    with pytest.raises(LaunchError):
        device.destroy_stream(stream)
    with pytest.raises(InvalidArgument):
        device.synchronize(stream)
    device.destroy_event(event)
    device.destroy_stream(other)
    device.memfree(address)


def test_failures_of_several_streams_are_each_raised(device: HostDevice) -> None:
    fail = device.get_function(device.load_module(kernel("fail"), "fail"), "fail")
    streams = [device.create_stream() for _ in range(3)]
    for stream in streams:
        device.launch(fail, (1,), stream, struct.pack("q", 0))
    for _ in streams:
        with pytest.raises(LaunchError):
            device.synchronize()
    device.synchronize()
    for stream in streams:
        device.destroy_stream(stream)


def test_unknown_handles(device: HostDevice) -> None:
    address = device.memalloc(8)
    event, stream = device.create_event(), device.create_stream()
    calls: list[Callable[[int], object]] = [
        device.synchronize,
        device.destroy_stream,
        lambda bad: device.memset(address, 0, 8, bad),
        lambda bad: device.memcpy_htod(address, bytes(8), bad),
        lambda bad: device.memcpy_dtoh(bytearray(8), address, bad),
        lambda bad: device.memcpy_dtod(address, address, 8, bad),
        lambda bad: device.record_event(event, bad),
        lambda bad: device.wait_event(bad, event),
        lambda bad: device.record_event(bad, stream),
        lambda bad: device.wait_event(stream, bad),
        device.synchronize_event,
        device.destroy_event,
        lambda bad: device.elapsed_time(bad, event),
    ]
    for call in calls:
        for bad in (999, -1, 2**64):
            with pytest.raises(InvalidArgument):
                call(bad)
    with pytest.raises(InvalidArgument, match="default stream"):
        device.destroy_stream(0)
    device.destroy_event(event)
    device.destroy_stream(stream)
    with pytest.raises(InvalidArgument, match="destroyed"):
        device.destroy_stream(stream)
    device.memfree(address)


def test_free_waits_for_work_that_uses_the_memory(device: HostDevice, spin) -> None:
    stream = device.create_stream()
    for size in (8, 4 << 20):
        address = device.memalloc(size)
        spin(stream, address)
        device.memset(address, 3, size, stream)
        device.memfree(address)
    device.synchronize(stream)
    device.destroy_stream(stream)


def test_buffers_live_until_the_copy_has_run(device: HostDevice, spin) -> None:
    stream, counter = device.create_stream(), device.memalloc(8)
    address = device.memalloc(1 << 16)
    spin(stream, counter)
    for value in range(20):
        device.memcpy_htod(address, np.full(1 << 16, value, np.uint8), stream)
    back = np.empty(1 << 16, np.uint8)
    device.memcpy_dtoh(back, address, stream)
    device.synchronize(stream)
    assert (back == 19).all()
    device.destroy_stream(stream)
    device.memfree(counter)
    device.memfree(address)


def test_one_stream_from_many_threads(device: HostDevice) -> None:
    count = device.get_function(device.load_module(kernel("count"), "count"), "count")
    stream, address = device.create_stream(), device.memalloc(8 * 100)
    device.memset(address, 0, 800, stream)

    def work() -> None:
        for _ in range(50):
            device.launch(count, (10, 10), stream, struct.pack("Q", address))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    back = np.empty(100, np.int64)
    device.memcpy_dtoh(back, address, stream)
    device.synchronize(stream)
    np.testing.assert_array_equal(back, 200 * np.arange(1, 101))
    device.destroy_stream(stream)
    device.memfree(address)
