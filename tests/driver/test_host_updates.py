"""Which calls of kernels with atomic operations are told that no other thread updates memory."""

from __future__ import annotations

import pytest
from host_scripts import FORK, LAUNCH, python
from objects import kernel

from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.errors import InvalidModule

SETUP = (
    LAUNCH
    + """
import threading
def load(name, **options):
    return device.get_function(device.load_module(kernel(name, cleared=8, **options), name), name)
def told(count, **options):
    place = device.memalloc(8 * count); device.memset(place, 0xFF, 8 * count)
    device.launch(load("told", **options), (count,), 0, struct.pack("Q", place))
    back = bytearray(8 * count); device.memcpy_dtoh(back, place); device.memfree(place)
    return set(struct.unpack(f"{count}q", back))
"""
)


@pytest.mark.parametrize("width", ["1", "2"])
def test_grids_on_one_thread_are_told(width: str) -> None:
    script = f"""
assert told(1, exclusive=0) == {{1}}
assert told(300, exclusive=0) == {{1 if {width} == 1 else 0}}
assert told(300, exclusive=-1) == told(1, exclusive=-1) == told(1) == {{0}}
"""
    result = python(SETUP + script, TPK_NUM_THREADS=width)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("width", ["1", "3"])
def test_none_is_told_while_others_run(width: str) -> None:
    """Threads launch kernels that ask, and such that have locks only, on the default stream and on others."""
    script = """
state = device.memalloc(24); device.memset(state, 0, 24)
asks, locks = load("exclude", exclusive=0), load("exclude", exclusive=-1)
streams = [0, device.create_stream()]
def work(number):
    for turn in range(300):
        function = (asks, asks, locks)[turn % 3]
        device.launch(function, (1 + turn % 5,), streams[number % 2], struct.pack("Qq", state, 200 * (turn % 7)))
for _ in range(100):  # until some were told, which depends on when threads run
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    device.synchronize()
    back = bytearray(24); device.memcpy_dtoh(back, state)
    inside, disturbed, exclusive = struct.unpack("3q", back)
    assert (inside, disturbed) == (0, 0), (inside, disturbed, exclusive)
    if exclusive > 20: break
assert exclusive > 20, exclusive
"""
    result = python(SETUP + script, TPK_NUM_THREADS=width)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("width", ["1", "2"])
def test_threads_that_share_a_grid_are_told_where_the_locks_are(width: str) -> None:
    script = f"""
alone, = told(1, exclusive=-1, stripes=0)
(locks,) = told(300, exclusive=-1, stripes=0)
assert locks == alone > 1 and locks % 64 == 0
assert told(300, exclusive=0, stripes=8) == {{1 if {width} == 1 else 0}}
assert told(300, exclusive=8, stripes=0) == {{0 if {width} == 1 else locks}}
"""
    result = python(SETUP + script, TPK_NUM_THREADS=width)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("width", ["1", "3"])
def test_calls_with_locks_run_beside_no_atomic_ones(width: str) -> None:
    script = """
state = device.memalloc(40); device.memset(state, 0, 40)
locks, atomic = load("kinds", exclusive=-1, stripes=0), load("kinds", exclusive=-1)
streams = [0, device.create_stream()]
def work(number):
    for turn in range(300):
        function = (locks, locks, atomic)[turn % 3]
        device.launch(function, (1 + turn % 5,), streams[number % 2], struct.pack("Qq", state, 200 * (turn % 7)))
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
device.synchronize()
back = bytearray(40); device.memcpy_dtoh(back, state)
atomics, locked, disturbed, told_nothing, told_locks = struct.unpack("5q", back)
assert (atomics, locked, disturbed) == (0, 0, 0) and told_nothing >= 1200 and told_locks > 20, struct.unpack("5q", back)
"""
    result = python(SETUP + script, TPK_NUM_THREADS=width)
    assert result.returncode == 0, result.stderr


def test_a_kernel_may_wait_for_one_that_asks() -> None:
    """On one thread: the one that waits has begun, so the other one takes locks."""
    script = """
flag = device.memalloc(8); device.memset(flag, 0, 8)
waits, sets, stream = load("gate", exclusive=-1), load("spin", exclusive=0), device.create_stream()
device.launch(waits, (1,), stream, struct.pack("Q", flag))
device.launch(sets, (1,), 0, struct.pack("Qq", flag, 10))
device.synchronize(stream)
"""
    result = python(SETUP + script, TPK_NUM_THREADS="1")
    assert result.returncode == 0, result.stderr


def test_a_child_is_not_kept_out_by_its_parents_threads() -> None:
    script = """
function, stream = load("exclude", exclusive=0), device.create_stream()
for turns in (1, 4, 16, 64):  # until the parent's thread has not ended before the child: machines may be busy
    state = device.memalloc(24); device.memset(state, 0, 24)
    device.launch(function, (1,), stream, struct.pack("Qq", state, turns * 1_000_000_000))
    back = bytearray(24)
    while not any(back): device.memcpy_dtoh(back, state)
    def child():
        assert told(1, exclusive=0) == {1}
    in_child(child)
    device.memcpy_dtoh(back, state); inside = back[0]
    device.synchronize(stream)
    device.memcpy_dtoh(back, state); assert struct.unpack("3q", back) == (0, 0, 1)
    if inside: break
assert inside == 1
"""
    result = python(SETUP + FORK + script, TPK_NUM_THREADS="1")
    assert result.returncode == 0, result.stderr


def test_the_number_lies_in_scratch(device: HostDevice) -> None:
    with pytest.raises(InvalidModule, match="keeps a number at byte 60 of 64 bytes of scratch"):
        device.load_module(kernel("told", exclusive=60), "told")
