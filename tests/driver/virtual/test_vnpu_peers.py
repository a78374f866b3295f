"""Several virtual NPUs: copies and events between them, memory that they share, and the loss of one."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import time
from collections.abc import Iterator

import pytest
from chips import Chip, Refused, call

PROMISED_SECONDS = 5.0
"""Within which a chip tells that another one is lost."""
SIZE = (3 << 20) + 5


@pytest.fixture
def two() -> Iterator[tuple[Chip, Chip]]:
    with Chip(cores=2, memory_bytes=1 << 30) as first, Chip(cores=2, memory_bytes=1 << 30) as second:
        yield first, second


@pytest.fixture
def shared() -> Iterator[tuple[int, mmap.mmap]]:
    """A descriptor of 128 KiB of shared memory, and a view of it."""
    file = os.memfd_create("shared")
    os.ftruncate(file, 128 << 10)
    with mmap.mmap(file, 128 << 10) as memory:
        yield file, memory
    os.close(file)


def map_it(chip: Chip, file: int, size: int = 128 << 10) -> int:
    return chip._result("import", ctypes.c_int(file), size)


def test_bytes_are_copied_between_chips_after_the_work_on_the_queue(two: tuple[Chip, Chip]) -> None:
    first, second = two
    data = random.Random(1).randbytes(SIZE)
    source, target, queue = first.array(data), second.alloc(SIZE), second.queue()
    second.inject("slow-queue:1:1000")
    second.fill(target, 7, SIZE, queue)
    second.copy_peer(queue, target, first.handle, source, SIZE)
    assert second.read(target, SIZE, queue) == data
    second.fill(target, 0, SIZE, queue)
    first.copy_peer(0, source, second.handle, target, 5)
    second.queue_synchronize(queue)
    second.copy_peer(0, target + 8, second.handle, target, 8)  # within a chip
    assert second.read(target, 16) == bytes(16)


@pytest.mark.parametrize(("target", "source"), [(0, 1), (1, 0)])
def test_copies_outside_of_allocations_are_refused(two: tuple[Chip, Chip], target: int, source: int) -> None:
    first, second = two
    places = [0, 0]
    places[source] = first.alloc(64) if source == 0 else second.alloc(64)
    chips = (second, first)
    with pytest.raises(Refused) as info:
        chips[0].copy_peer(0, places[1] if target else 0, chips[1].handle, places[0], 8)
    assert info.value.status == "INVALID_POINTER"


def test_a_queue_waits_for_another_chips_event(two: tuple[Chip, Chip], kernels: bytes) -> None:
    first, second = two
    gate, flag = first.symbol(first.load(kernels), "gate"), first.array(bytes(8))
    marks, seen = first.array(bytes(8)), second.array(bytes(8))
    working, waiting, event = first.queue(), second.queue(), first.event()
    second.queue_wait_peer(waiting, first.handle, event)  # not recorded: no wait
    second.queue_synchronize(waiting)
    first.launch(gate, (1, 1, 1), flag, queue=working)
    first.event_record(event, working)
    second.queue_wait_peer(waiting, first.handle, event)  # returns: the host does not wait
    second.fill(seen, 1, 8, waiting)
    time.sleep(0.05)  # in which the second chip would fill, if its queue did not wait
    assert second.read(seen, 8, second.queue()) == bytes(8)
    first.fill(flag, 1, 8, first.queue())
    assert second.read(seen, 8, waiting) == b"\1" * 8
    for step in range(2, 300):  # more often than there are gates
        first.fill(marks, step % 256, 8, working)
        first.event_record(event, working)
        second.queue_wait_peer(waiting, first.handle, event)
    second.copy_peer(waiting, seen, first.handle, marks, 8)
    assert second.read(seen, 8, waiting) == bytes([299 % 256]) * 8


def test_the_loss_of_another_chip_ends_a_wait_for_it(two: tuple[Chip, Chip]) -> None:
    first, second = two
    memory, own = first.alloc(64), second.array(b"kept")
    event, begin = first.event(), time.monotonic()
    first.inject("hang:1")
    first.fill(memory, 1, 64)
    first.event_record(event, 0)
    second.queue_wait_peer(0, first.handle, event)
    with pytest.raises(
        Refused, match="the other chip, for whose event the queue has waited, is lost"
    ) as info:
        second.synchronize()
    assert info.value.status == "DEVICE_LOST"
    assert time.monotonic() - begin < PROMISED_SECONDS
    assert second.read(own, 4) == b"kept"  # this one works on
    with pytest.raises(Refused) as info:
        second.copy_peer(0, own, first.handle, memory, 4)
    assert info.value.status == "DEVICE_LOST"


def test_chips_share_memory(two: tuple[Chip, Chip], shared: tuple[int, mmap.mmap], kernels: bytes) -> None:
    file, memory = shared
    first, second = (map_it(chip, file) for chip in two)
    two[0].write(first + 100, b"from the first")
    two[0].synchronize()
    assert two[1].read(second + 100, 14) == memory[100:114] == b"from the first"
    advance = two[1].symbol(two[1].load(kernels), "advance")
    two[1].fill(second, 0, 64)
    two[1].launch(advance, (8, 1, 1), second, 0)
    two[1].synchronize()
    assert two[0].read(first, 64) == memory[:64] != bytes(64)
    two[0].free(first)
    with pytest.raises(Refused) as info:
        two[0].read(first, 1)
    assert info.value.status == "INVALID_POINTER"
    again = two[0].array(b"other memory")
    assert two[0].read(again, 12) == b"other memory"
    assert memory[100:114] == b"from the first"


def test_what_cannot_be_shared_is_refused(chip: Chip, shared: tuple[int, mmap.mmap]) -> None:
    before = chip.counted().allocated_bytes
    for file, size in ((-1, 4096), (shared[0], 0), (shared[0], 1 << 20), (12345, 4096)):
        with pytest.raises(Refused) as info:
            map_it(chip, file, size)
        assert info.value.status == "INVALID_ARGUMENT"
    assert chip.counted().allocated_bytes == before


def test_the_watchdog_leaves_kernels_alone_that_may_wait_for_other_chips(
    shared: tuple[int, mmap.mmap], kernels: bytes
) -> None:
    with Chip(cores=2, watchdog_ms=50) as chip:
        module = chip.load(kernels)
        slow, endless = chip.symbol(module, "slow"), chip.symbol(module, "endless")
        flag, address = chip.array(bytes(8)), map_it(chip, shared[0])
        chip.launch(slow, (1, 1, 1), flag, 500_000_000)
        chip.synchronize()
        chip.free(address)
        chip.launch(endless, (1, 1, 1))
        with pytest.raises(Refused, match="watchdog"):
            chip.synchronize()


def test_launches_fail_while_a_chip_is_missing(chip: Chip, kernels: bytes) -> None:
    module = chip.load(kernels)
    slow, gate = chip.symbol(module, "slow"), chip.symbol(module, "gate")
    flag, queue = chip.array(bytes(8)), chip.queue()
    chip.launch(gate, (1, 1, 1), flag, queue=queue)
    chip.fail_launches(b"rank 3 went away")
    chip.fill(flag, 1, 8, chip.queue())
    for each in (queue, 0):  # the running one, and a later one
        if each == 0:
            chip.launch(slow, (1, 1, 1), flag, 1)
        with pytest.raises(Refused, match="rank 3 went away") as info:
            chip.queue_synchronize(each)
        assert info.value.status == "DEVICE_LOST"
    assert len(chip.read(flag, 8)) == 8
    chip.fail_launches(None)
    chip.launch(slow, (1, 1, 1), flag, 1)
    chip.synchronize()


def test_the_number_of_chips_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    def count() -> int:
        found = ctypes.c_uint32()
        call("count", ctypes.byref(found))
        return found.value

    monkeypatch.delenv("VNPU_COUNT", raising=False)
    assert count() == 1
    monkeypatch.setenv("VNPU_COUNT", "8")
    assert count() == 8
    monkeypatch.setenv("VNPU_COUNT", "0")
    with pytest.raises(Refused, match="VNPU_COUNT is '0'"):
        count()
