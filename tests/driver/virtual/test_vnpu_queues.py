"""Queues and events of the virtual NPU: order, independence, limits, failures."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest
from chips import Chip, Refused

ONE = (1, 1, 1)
MILLISECOND = 1_000_000


def number(chip: Chip, address: int, queue: int = 0) -> int:
    return int.from_bytes(chip.read(address, 8, queue), "little", signed=True)


def test_a_queue_keeps_its_order(chip: Chip, kernels: bytes) -> None:
    advance = chip.symbol(chip.load(kernels), "advance")
    memory, copy = chip.alloc(8 * 64), chip.alloc(8 * 64)
    for queue in (0, chip.queue()):
        expected = [0] * 64
        chip.fill(memory, 0, 8 * 64, queue)
        for step in range(300):  # more than the queue holds
            chip.launch(advance, (4, 4, 4), memory, step % 3 - 1, queue=queue)
            expected = [value * (step % 3 - 1) + p for p, value in enumerate(expected)]
        chip.copy_on_device(queue, copy, memory, 8 * 64)
        chip.fill(memory, 0xFF, 8 * 64, queue)
        data = chip.read(copy, 8 * 64, queue)
        assert [int.from_bytes(data[i : i + 8], "little", signed=True) for i in range(0, 512, 8)] == expected


def test_calls_return_before_the_work_is_done(chip: Chip, kernels: bytes) -> None:
    gate, flag, other = chip.symbol(chip.load(kernels), "gate"), chip.array(bytes(8)), chip.queue()
    for queue in (0, chip.queue()):
        chip.fill(flag, 0, 8, other)
        chip.queue_synchronize(other)
        chip.launch(gate, ONE, flag, queue=queue)  # would not return if it waited
        chip.fill(flag, 1, 1, other)
        chip.queue_synchronize(queue)
        assert number(chip, flag) == 2


def test_queues_are_independent(chip: Chip, kernels: bytes) -> None:
    """A kernel waits for a copy on another queue, then for a kernel on another queue."""
    module = chip.load(kernels)
    gate, slow = chip.symbol(module, "gate"), chip.symbol(module, "slow")
    flag, waiting, other = chip.array(bytes(8)), chip.queue(), chip.queue()
    chip.launch(gate, ONE, flag, queue=waiting)
    chip.fill(flag, 1, 1, other)
    chip.queue_synchronize(waiting)
    assert number(chip, flag) == 2
    chip.fill(flag, 0, 8)
    chip.synchronize()
    chip.launch(gate, ONE, flag, queue=waiting)
    chip.launch(slow, ONE, flag, MILLISECOND, queue=other)
    chip.synchronize()
    assert number(chip, flag) == 2


def test_a_full_queue_makes_callers_wait(kernels: bytes) -> None:
    with Chip(queue_depth=4, cores=2) as chip:
        module = chip.load(kernels)
        gate, advance = chip.symbol(module, "gate"), chip.symbol(module, "advance")
        flag, memory, other = chip.array(bytes(8)), chip.array(bytes(16)), chip.queue()
        chip.synchronize()
        chip.launch(gate, ONE, flag)
        for _ in range(3):
            chip.launch(advance, (2, 1, 1), memory, 1)
        caller = threading.Thread(
            target=lambda: [chip.launch(advance, (2, 1, 1), memory, 1) for _ in range(4)]
        )
        caller.start()
        caller.join(0.05)
        assert caller.is_alive()
        chip.fill(flag, 1, 1, other)
        caller.join()
        assert number(chip, flag) == 2
        assert number(chip, memory + 8) == 7


@pytest.mark.parametrize("depth", [1, 2])
def test_shallow_queues_work(kernels: bytes, depth: int) -> None:
    with Chip(queue_depth=depth) as chip:
        advance, memory = chip.symbol(chip.load(kernels), "advance"), chip.array(bytes(8 << 18))
        queue, event = chip.queue(), chip.event()
        chip.launch(advance, (100, 1, 1), memory, 1)
        chip.event_record(event, 0)
        chip.queue_wait(queue, event)
        chip.launch(advance, (100, 1, 1), memory, 1, queue=queue)
        assert chip.read(memory, 8 << 18, queue)[8:16] == (2).to_bytes(8, "little")


def test_there_are_1024_queues(chip: Chip) -> None:
    queues = [chip.queue() for _ in range(1024)]
    with pytest.raises(Refused, match="1024 queues") as info:
        chip.queue()
    assert info.value.status == "OUT_OF_MEMORY"
    memory = chip.alloc(1024)
    for index, queue in enumerate(queues):
        chip.fill(memory + index, index % 251, 1, queue)
    chip.synchronize()
    assert chip.read(memory, 1024) == bytes(index % 251 for index in range(1024))
    for queue in queues:
        chip.queue_destroy(queue)
    assert chip.queue() not in queues


def test_handles_are_checked(chip: Chip) -> None:
    queue, event, memory = chip.queue(), chip.event(), chip.alloc(8)
    chip.queue_destroy(queue)
    chip.event_destroy(event)
    for attempt in (
        lambda: chip.queue_synchronize(queue),
        lambda: chip.queue_destroy(queue),
        lambda: chip.queue_destroy(0),
        lambda: chip.fill(memory, 0, 8, queue),
        lambda: chip.read(memory, 8, queue),
        lambda: chip.event_record(event, 0),
        lambda: chip.event_record(chip.event(), queue),
        lambda: chip.queue_wait(0, event),
        lambda: chip.queue_wait(queue, chip.event()),
        lambda: chip.event_synchronize(event),
        lambda: chip.event_destroy(event),
        lambda: chip.elapsed(event, chip.event()),
    ):
        with pytest.raises(Refused, match=r"queue|event") as info:
            attempt()
        assert info.value.status == "INVALID_ARGUMENT"


def test_a_failure_drops_what_is_behind_it(chip: Chip, kernels: bytes) -> None:
    module = chip.load(kernels)
    fails, advance = chip.symbol(module, "fails"), chip.symbol(module, "advance")
    memory, event = chip.array(bytes(8)), chip.event()
    for queue in (0, chip.queue()):
        ways: list[Callable[[], object]] = [
            lambda queue=queue: chip.queue_synchronize(queue),
            chip.synchronize,
            lambda queue=queue: chip.read(memory, 8, queue),
        ]
        for wait in ways:
            chip.launch(fails, (10, 1, 1), 3, queue=queue)
            chip.fill(memory, 1, 8, queue)
            chip.launch(advance, ONE, memory, 5, queue=queue)
            chip.event_record(event, queue)
            chip.event_synchronize(event)
            with pytest.raises(Refused, match="kernel 'fails' failed with code 7") as info:
                wait()
            assert info.value.status == "LAUNCH_FAILED"
            chip.synchronize()
            assert number(chip, memory, queue) == 0
    chip.launch(fails, (10, 1, 1), 3, queue=queue)
    with pytest.raises(Refused, match="code 7"):
        chip.queue_destroy(queue)
    with pytest.raises(Refused, match="does not exist"):
        chip.queue_synchronize(queue)


def test_failures_stay_with_their_queue(chip: Chip, kernels: bytes) -> None:
    fails = chip.symbol(chip.load(kernels), "fails")
    queues, memory = [chip.queue() for _ in range(3)], chip.alloc(8)
    for queue in queues:
        chip.launch(fails, (10, 1, 1), 3, queue=queue)
    chip.fill(memory, 1, 8)
    assert chip.read(memory, 8) == b"\1" * 8
    for _ in queues:
        with pytest.raises(Refused, match="code 7"):
            chip.synchronize()
    chip.synchronize()


def test_events_order_queues(chip: Chip, kernels: bytes) -> None:
    slow = chip.symbol(chip.load(kernels), "slow")
    first, second, event = chip.queue(), chip.queue(), chip.event()
    flag, seen = chip.array(bytes(8)), chip.array(bytes(8))
    chip.queue_wait(second, event)  # never recorded: does not wait
    for round_ in range(1, 6):
        chip.launch(slow, ONE, flag, 20 * MILLISECOND, queue=first)
        chip.event_record(event, first)
        chip.queue_wait(second, event)
        chip.copy_on_device(second, seen, flag, 8)
        assert number(chip, seen, second) == round_


def test_a_wait_is_for_what_the_event_stood_for(chip: Chip, kernels: bytes) -> None:
    gate = chip.symbol(chip.load(kernels), "gate")
    first, second, event = chip.queue(), chip.queue(), chip.event()
    flag = chip.array(bytes(8))
    chip.event_record(event, first)
    chip.queue_wait(second, event)
    chip.launch(gate, ONE, flag, queue=first)
    chip.event_record(event, first)  # behind a kernel that waits
    chip.queue_synchronize(second)
    with pytest.raises(Refused, match="has not been reached"):
        chip.elapsed(event, event)
    chip.fill(flag, 1, 8, second)
    chip.event_synchronize(event)
    assert chip.elapsed(event, event) == 0


def test_events_measure_time(chip: Chip, kernels: bytes) -> None:
    slow, flag = chip.symbol(chip.load(kernels), "slow"), chip.array(bytes(8))
    start, end = chip.event(), chip.event()
    with pytest.raises(Refused, match="start event was never recorded") as info:
        chip.elapsed(start, end)
    assert info.value.status == "INVALID_ARGUMENT"
    begin = time.monotonic()
    chip.event_record(start, 0)
    chip.launch(slow, ONE, flag, 100 * MILLISECOND)
    with pytest.raises(Refused, match="end event was never recorded"):
        chip.synchronize() or chip.elapsed(start, end)
    chip.event_record(end, 0)
    chip.event_synchronize(end)
    taken = chip.elapsed(start, end)
    assert 100 <= taken <= (time.monotonic() - begin) * 1000
    assert chip.elapsed(end, start) == -taken


def test_a_newer_record_on_another_queue_counts(chip: Chip, kernels: bytes) -> None:
    gate, flag = chip.symbol(chip.load(kernels), "gate"), chip.array(bytes(8))
    late, now = chip.queue(), chip.queue()
    event, after = chip.event(), chip.event()
    chip.launch(gate, ONE, flag, queue=late)
    chip.event_record(event, late)  # will be reached last
    chip.event_record(event, now)
    chip.event_synchronize(event)
    chip.event_record(after, now)
    chip.event_synchronize(after)
    before = chip.elapsed(event, after)
    chip.fill(flag, 1, 8, now)
    chip.queue_synchronize(late)
    assert chip.elapsed(event, after) == before


def test_threads_share_queues(chip: Chip, kernels: bytes) -> None:
    slow, flag = chip.symbol(chip.load(kernels), "slow"), chip.array(bytes(8))
    queues = [0, chip.queue(), chip.queue()]
    errors: list[Exception] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        try:
            for _ in range(100):
                queue, event = rng.choice(queues), chip.event()
                chip.launch(slow, (3, 1, 1), flag, 1000, queue=queue)
                chip.event_record(event, queue)
                chip.queue_wait(rng.choice(queues), event)
                if rng.random() < 0.1:
                    chip.event_synchronize(event)
                chip.event_destroy(event)
                chip.free(chip.alloc(100))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    chip.synchronize()
    assert not errors
    assert number(chip, flag) == 6 * 100 * 3
    assert chip.counted().launches == 600
    assert chip.counted().programs == 1800


def test_kernels_share_the_cores(kernels: bytes) -> None:
    """A grid that could use every core for minutes does not keep another queue's kernel away."""
    with Chip(cores=2) as chip:
        module = chip.load(kernels)
        patient, advance = chip.symbol(module, "patient"), chip.symbol(module, "advance")
        stop, memory = chip.array(bytes(8)), chip.array(bytes(16))
        first, second = chip.queue(), chip.queue()
        chip.launch(patient, (100_000, 1, 1), stop, 10 * MILLISECOND, queue=first)
        chip.launch(advance, (2, 1, 1), memory, 1, queue=second)
        assert number(chip, memory + 8, second) == 1
        chip.fill(stop, 1, 1, second)
        chip.queue_synchronize(first)
        assert chip.counted().programs == 100_002
        before = chip.counted().kernel_nanoseconds
        chip.launch(chip.symbol(module, "slow"), ONE, memory, 10 * MILLISECOND)
        chip.synchronize()
        assert chip.counted().kernel_nanoseconds - before >= 10 * MILLISECOND


def test_programs_of_a_small_grid_run_at_once(chip: Chip, kernels: bytes) -> None:
    meets, flag = chip.symbol(chip.load(kernels), "meets"), chip.array(bytes(8))
    for _ in range(200):
        chip.fill(flag, 0, 8)
        chip.launch(meets, (2, 1, 1), flag)
    assert number(chip, flag) == 1
