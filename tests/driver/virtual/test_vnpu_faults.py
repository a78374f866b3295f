"""The virtual NPU misbehaves: on request, and by what kernels do to it. The caller lives on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest
from chips import Chip, Refused, is_running

ONE = (1, 1, 1)
PROMISED_SECONDS = 5.0
"""Within which a fault has to be told."""


def loss(chip: Chip, provoke: Callable[[], object]) -> str:
    """The reason that the chip gives for being lost; checks what holds for every lost chip."""
    process, memory, queue, event = chip.process(), chip.alloc(64), chip.queue(), chip.event()
    start = time.monotonic()

    def provoke_and_wait() -> None:
        provoke()
        chip.synchronize()

    with pytest.raises(Refused) as info:
        provoke_and_wait()
    assert time.monotonic() - start < PROMISED_SECONDS
    assert info.value.status == "DEVICE_LOST", info.value
    assert "vnpu_reset" in info.value.text
    assert not is_running(process)
    for attempt in (
        lambda: chip.alloc(64),
        lambda: chip.write(memory, b"x"),
        lambda: chip.read(memory, 1),
        lambda: chip.fill(memory, 0, 1),
        lambda: chip.copy_on_device(0, memory, memory, 1),
        lambda: chip.synchronize(),
        lambda: chip.queue_synchronize(queue),
        lambda: chip.queue(),
        lambda: chip.event_record(event, queue),
        lambda: chip.event_synchronize(event),
        lambda: chip.load(b""),
        lambda: chip.inject("die:1"),
        lambda: chip.process(),
    ):
        with pytest.raises(Refused) as again:
            attempt()
        assert again.value.status == "DEVICE_LOST", again.value
    chip.counted()
    chip.free(memory)
    chip.event_destroy(event)
    chip.queue_destroy(queue)
    chip.reset()
    assert chip.process() != process
    assert chip.counted().allocated_bytes == chip.counted().commands == 0
    assert chip.read(chip.array(b"alive"), 5) == b"alive"
    return info.value.text


@pytest.mark.parametrize(
    ("kernel", "arguments", "words"),
    [
        ("stores", [0x1234567000], "kernel 'stores' crashed in programs 0 to 0 of 1: SIGSEGV at address 0x1234567000, outside of device memory"),
        ("stores", [16], "at address 0x10, an offset to NULL"),
        ("stores", [1 << 62], "SIGSEGV at an address that no memory can have"),
        ("divides", [0], "SIGFPE"),
        ("aborts", [], "SIGABRT"),
        ("exits", [], "ended with status 3"),
        ("recurses", [], "SIGSEGV"),
    ],
)  # fmt: skip
def test_crashing_kernels_lose_the_chip(
    chip: Chip, kernels: bytes, kernel: str, arguments: list[int], words: str
) -> None:
    function = chip.symbol(chip.load(kernels), kernel)
    assert words in loss(chip, lambda: chip.launch(function, ONE, *arguments))


def test_the_watchdog_stops_endless_kernels(kernels: bytes) -> None:
    with Chip(watchdog_ms=200, cores=2) as chip:
        function = chip.symbol(chip.load(kernels), "endless")
        text = loss(chip, lambda: chip.launch(function, (5, 1, 1)))
        assert "kernel 'endless' was stopped by the watchdog: programs" in text
        assert "of 5 have taken more than 200 ms of CPU time" in text


def test_the_watchdog_lets_long_grids_run(kernels: bytes) -> None:
    with Chip(watchdog_ms=200, cores=2) as chip:
        slow, flag = chip.symbol(chip.load(kernels), "slow"), chip.array(bytes(8))
        chip.launch(slow, (60, 1, 1), flag, 20_000_000)
        chip.synchronize()
        assert chip.read(flag, 8) == (60).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("fault", "command"),
    [("die", command) for command in ("copy in", "copy out", "copy", "fill", "record", "wait", "launch")]
    + [("hang", command) for command in ("copy out", "record", "launch")],
)
def test_the_chip_hangs_or_dies_at_a_command(chip: Chip, kernels: bytes, fault: str, command: str) -> None:
    memory, other, event = chip.alloc(64), chip.alloc(64), chip.event()
    chip.event_record(event, 0)
    empty = chip.symbol(chip.load(kernels), "empty")
    chip.inject(f"{fault}:3")
    chip.fill(memory, 1, 64)
    chip.fill(memory, 2, 64)
    commands: dict[str, Callable[[], object]] = {
        "copy in": lambda: chip.write(memory, b"x" * 64),
        "copy out": lambda: chip.read(memory, 64),
        "copy": lambda: chip.copy_on_device(0, other, memory, 64),
        "fill": lambda: chip.fill(memory, 3, 64),
        "record": lambda: chip.event_record(event, 0),
        "wait": lambda: chip.queue_wait(0, event),
        "launch": lambda: chip.launch(empty, ONE),
    }
    text = loss(chip, commands[command])
    assert ("hangs: no heartbeat" if fault == "hang" else "killed by signal 9 (SIGKILL)") in text


def test_others_may_kill_or_stop_the_chip(chip: Chip) -> None:
    for number, words in (
        (signal.SIGKILL, "SIGKILL"),
        (signal.SIGTERM, "SIGTERM"),
        (signal.SIGSTOP, "no heartbeat"),
    ):

        def provoke(number: int = number) -> None:
            memory = chip.alloc(64)
            os.kill(chip.process(), number)
            time.sleep(0.05)
            chip.fill(memory, 0, 64)

        assert words in loss(chip, provoke)


def test_every_waiting_call_ends_with_the_chip(chip: Chip, kernels: bytes) -> None:
    import threading

    endless = chip.symbol(chip.load(kernels), "endless")
    memory, queue, event = chip.alloc(8 << 20), chip.queue(), chip.event()
    for used in (0, queue):
        chip.launch(endless, (1, 1, 1), queue=used)
    chip.event_record(event, queue)
    got: list[str] = []

    def attempt(call: Callable[[], object]) -> None:
        try:
            call()
            got.append("OK")
        except Refused as error:
            got.append(error.status)

    def flood() -> None:
        while True:
            chip.write(memory, bytes(8 << 20), queue)

    calls: list[Callable[[], object]] = [
        chip.synchronize,
        lambda: chip.queue_synchronize(queue),
        lambda: chip.event_synchronize(event),
        lambda: chip.read(memory, 8 << 20, queue),
        lambda: chip.read(memory, 8),
        flood,
    ]
    threads = [threading.Thread(target=attempt, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    assert not got
    start = time.monotonic()
    os.kill(chip.process(), signal.SIGKILL)
    for thread in threads:
        thread.join(PROMISED_SECONDS)
    assert time.monotonic() - start < PROMISED_SECONDS
    assert got == ["DEVICE_LOST"] * len(calls)


def test_the_nth_allocation_and_module_fail(chip: Chip, kernels: bytes) -> None:
    chip.inject("fail-alloc:2,refuse-module:1,fail-alloc:3")
    chip.alloc(1)
    for _ in range(2):
        with pytest.raises(Refused, match="fail-alloc") as info:
            chip.alloc(1)
        assert info.value.status == "OUT_OF_MEMORY"
    with pytest.raises(Refused, match="refuse-module") as info:
        chip.load(kernels)
    assert info.value.status == "INVALID_MODULE"
    chip.load(kernels)
    chip.alloc(1)
    assert chip.counted().allocations == 2


def test_a_slow_queue_is_only_slow(chip: Chip, kernels: bytes) -> None:
    advance, memory = chip.symbol(chip.load(kernels), "advance"), chip.array(bytes(8 * 16))
    chip.synchronize()
    chip.inject("slow-queue:3:30000")
    start = time.monotonic()
    for _ in range(10):
        chip.launch(advance, (16, 1, 1), memory, 1)
    data = chip.read(memory, 8 * 16)
    assert 9 * 0.03 <= time.monotonic() - start < PROMISED_SECONDS
    assert data == b"".join((10 * p).to_bytes(8, "little") for p in range(16))


def test_a_reset_disarms_faults(chip: Chip) -> None:
    chip.inject("fail-alloc:1,die:1,hang:2,corrupt-copy:1,slow-queue:1:1000000")
    chip.reset()
    assert chip.read(chip.array(b"fine"), 4) == b"fine"


@pytest.mark.parametrize(
    "text",
    ["explode:1", "die", "die:", "die:0", "die:-1", "die:x", "die:1:2", "slow-queue:1", "slow-queue:1:0", "slow-queue:1:x", "die:1;hang:1", "die: 1"],
)  # fmt: skip
def test_misspelt_faults_are_refused(chip: Chip, text: str) -> None:
    with pytest.raises(Refused, match="the fault") as info:
        chip.inject(f"fail-alloc:1,{text}")
    assert info.value.status == "INVALID_ARGUMENT"
    chip.alloc(1)
