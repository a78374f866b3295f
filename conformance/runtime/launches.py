"""Launches from threads, on streams, and thousands of them."""

from __future__ import annotations

import gc
import resource
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from triton_porting_kit.conformance.arrays import GuardedArray
from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.runtime.blocks import allocated, pieces
from triton_porting_kit.conformance.runtime.clocks import check_clock
from triton_porting_kit.conformance.runtime.spinning import spin, turns_for
from triton_porting_kit.conformance.runtime.threads import THREADS, in_threads, parsed_beside_others

CHECKS = Checks("runtime/launches")

ADD = (
    "def add_to(X, n, by, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.store(X + i, tl.load(X + i, mask=i < n) + by, mask=i < n)\n"
)
BLOCK = 64
LAUNCHES = 10_000
ALLOWANCE = 1 << 20
"""The number of bytes by which the process may grow in `LAUNCHES` launches: about 100 per launch."""
_BLOCK_BYTES = 48
"""The assumed size of a block of Python's allocator; smaller blocks are rare."""


def _add(array: GuardedArray, by: int) -> None:
    count = array.shape[0]
    make_kernel(ADD)[(-(-count // BLOCK),)](array, count, by, BLOCK=BLOCK)


# --- one after another -------------------------------------------------------------------------------------


@CHECKS.check(
    "in-order",
    "500 launches on one array run in order, each on the result of the previous one.",
    elements=BLOCK,
)
def _in_order(context: Context) -> None:
    source = "def step(X, k):\n    tl.store(X, tl.load(X) * 3 + k)\n"
    word = context.array(np.zeros(1, np.uint64), "u64")
    expected = 0
    for k in range(2, 502):
        make_kernel(source)[(1,)](word, k)
        expected = (expected * 3 + k) % (1 << 64)
    context.compare("the result", identical(context.read(word), np.array([expected], np.uint64)))


@CHECKS.check(
    "seen-by-copies",
    "A copy to the host after a launch always sees what the launch wrote.",
    elements=BLOCK,
)
def _seen(context: Context) -> None:
    array = context.array(np.zeros(1000, np.int32), "i32")
    for turn in range(1, 51):
        _add(array, turn)
        context.compare(
            f"after launch {turn}", identical(array.read(), np.full(1000, turn * (turn + 1) // 2, np.int32))
        )


@CHECKS.check(
    "interleaved", "Alternating launches of different kernels do not mix up their arguments.", elements=BLOCK
)
def _interleaved(context: Context) -> None:
    sources = [f"def own{k}(X, a, b):\n    tl.store(X + {k}, a * {k + 1} + b)\n" for k in range(6)]
    out = context.array(np.zeros(6, np.int64), "i64")
    for turn in range(20):
        for k, source in enumerate(sources):
            make_kernel(source)[(1,)](out, turn + 2, k + 2)
    expected = np.array([21 * (k + 1) + k + 2 for k in range(6)], np.int64)
    context.compare("the last of each", identical(context.read(out), expected))


@CHECKS.check(
    "unaligned-lengths",
    "One kernel runs on arrays of 100 lengths and writes nothing outside of them.",
    elements=BLOCK,
)
def _lengths(context: Context) -> None:
    wrong = []
    for count in range(1, 101):
        array = context.array(np.zeros(count, np.int32), "i32")
        _add(array, count)
        if not np.array_equal(context.read(array), np.full(count, count, np.int32)):
            wrong.append(count)
    context.expect(not wrong, "all of them are right", f"wrong are the lengths {wrong}")


# --- threads -----------------------------------------------------------------------------------------------


@CHECKS.check(
    "threads",
    "Launches of one kernel from several threads, each on its own array, are all right.",
    elements=BLOCK,
)
def _threads(context: Context) -> None:
    arrays = [context.array(np.zeros(777, np.int32), "i32") for _ in range(THREADS)]
    _add(context.array(np.zeros(777, np.int32), "i32"), 3)

    def work(k: int) -> None:
        for turn in range(200):
            parsed_beside_others(
                partial(_add, arrays[k], turn + 2 * k + 2)
            )  # multiples of 16 are compiled anew

    in_threads(context, "200 launches each", work)
    for k, array in enumerate(arrays):
        expected = np.full(777, sum(turn + 2 * k + 2 for turn in range(200)), np.int32)
        context.compare(f"thread {k}", identical(context.read(array), expected))


@CHECKS.check(
    "threads-compile",
    "Several threads may launch a kernel that is not compiled yet at the same time.",
    elements=BLOCK,
)
def _threads_compile(context: Context) -> None:
    salt = int(context.random.integers(2, 1 << 30))
    source = f"def fresh(X, by):\n    tl.store(X, by + {salt})\n"
    words = [context.array(np.zeros(1, np.int64), "i64") for _ in range(THREADS)]

    def work(k: int) -> None:
        kernel = make_kernel(source)
        parsed_beside_others(lambda: kernel[(1,)](words[k], 2 * k + 3))

    in_threads(context, "the first launch", work)
    found = np.concatenate([context.read(word) for word in words])
    context.compare("what each stored", identical(found, np.arange(THREADS, dtype=np.int64) * 2 + 3 + salt))


@CHECKS.check(
    "threads-kernels", "Several threads may each compile and launch kernels of their own.", elements=BLOCK
)
def _threads_kernels(context: Context) -> None:
    words = [context.array(np.zeros(3, np.int64), "i64") for _ in range(THREADS)]

    def work(k: int) -> None:
        for n in range(3):
            kernel = make_kernel(f"def of_thread_{k}_{n}(X, a):\n    tl.store(X + {n}, a * {k + 2})\n")
            parsed_beside_others(partial(kernel[(1,)], words[k], n + 2))

    in_threads(context, "three kernels each", work)
    found = np.stack([context.read(word) for word in words])
    expected = np.outer(np.arange(THREADS) + 2, np.arange(3) + 2).astype(np.int64)
    context.compare("what each stored", identical(found, expected))


@CHECKS.check(
    "threads-atomics",
    "Additions to one word by programs of launches from several threads are all counted.",
    needs=("feature:atomics", "atomic:i64"),
)
def _threads_atomics(context: Context) -> None:
    total = context.array(np.zeros(1, np.int64), "i64")
    source = "def count_up(X):\n    tl.atomic_add(X, 1)\n"
    make_kernel(source)[(1,)](total)

    def work(k: int) -> None:
        for _ in range(20):
            parsed_beside_others(lambda: make_kernel(source)[(50,)](total))

    in_threads(context, "launches", work)
    context.compare("the count", identical(context.read(total), np.array([1 + THREADS * 1000], np.int64)))


# --- streams that the driver offers to Triton ----------------------------------------------------------------


@CHECKS.check(
    "stream", "A launch goes to the stream that is current in its thread.", needs=("feature:streams",)
)
def _stream(context: Context) -> None:
    interface = context.driver.get_device_interface()
    out = context.array(np.zeros(2, np.int64), "i64")
    context.memory.synchronize()
    device = context.driver.get_current_device()
    before = context.driver.get_current_stream(device)
    stream = interface.Stream()
    with interface.stream(stream):
        inside = context.driver.get_current_stream(device)
        for k in range(4):
            spin(out, turns_for(context, 5.0) >> k, 2 * k + 3)
    stream.synchronize()
    context.compare("the last of four to write", identical(out.read()[:1], np.array([9], np.int64)))
    context.expect(inside != before, "another stream was current in the block", f"{inside} and {before}")
    after = context.driver.get_current_stream(device)
    context.expect(after == before, "the one from before is current again", f"{after}, not {before}")


@CHECKS.check(
    "stream-of-thread",
    "A stream that is current in one thread is not current in another.",
    needs=("feature:streams",),
)
def _stream_of_thread(context: Context) -> None:
    interface, driver = context.driver.get_device_interface(), context.driver
    device = driver.get_current_device()
    before = driver.get_current_stream(device)
    with interface.stream(interface.Stream()):
        seen = in_threads(context, "asking for the stream", lambda k: driver.get_current_stream(device), 1)
    context.expect(seen == [before], "the other thread is on the stream from before", f"{seen}, not {before}")


@CHECKS.check(
    "events",
    "Events of the driver measure how long launches take; of a simulated chip, by its own clock.",
    needs=("feature:streams", "feature:events"),
)
def _events(context: Context) -> None:
    interface = context.driver.get_device_interface()
    out = context.array(np.zeros(2, np.int64), "i64")
    start, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)

    def measured(turns: int) -> float:
        start.record()
        spin(out, turns, 5)
        end.record()
        end.synchronize()
        found = start.elapsed_time(end)
        context.expect(
            isinstance(found, (int, float)), "elapsed_time returns a number", f"it returned {found!r}"
        )
        return float(found)

    check_clock(context, measured)


# --- 10,000 launches -----------------------------------------------------------------------------------------


def resident_bytes() -> int:
    """The resident memory of this process, or its maximum if the system does not report the current value."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return pages * resource.getpagesize()


def _sizes() -> tuple[int, int]:
    """Resident bytes, and a lower bound of the bytes of Python objects: a leak may fit into freed memory."""
    return resident_bytes(), sys.getallocatedblocks() * _BLOCK_BYTES


def _growth(context: Context, launch: Any) -> int:
    """Bytes by which the process grows in `LAUNCHES` launches: the minimum of three runs, as other threads allocate."""
    least = 1 << 62
    for _ in range(3):
        for _ in range(LAUNCHES // 5):
            launch()
        context.memory.synchronize()
        gc.collect()
        before = _sizes()
        for _ in range(LAUNCHES):
            launch()
        context.memory.synchronize()
        gc.collect()
        least = min(least, max(now - then for now, then in zip(_sizes(), before, strict=True)))
        if least <= ALLOWANCE:
            break
    return least


@CHECKS.check(
    "leak-host",
    "10,000 launches do not increase the host's memory by more than 1 MiB.",
    seconds=300,
    elements=BLOCK,
)
def _leak_host(context: Context) -> None:
    array, constant = context.array(np.zeros(1, np.int64), "i64"), (3, 5.5)
    source = "def leaks(X, t, by, f):\n    tl.store(X, tl.load(X) + by)\n"
    kernel, launched = make_kernel(source), 0

    def launch() -> None:
        nonlocal launched
        kernel[(1,)](array, constant, 3, 2.5)
        launched += 1

    grown = _growth(context, launch)
    context.expect(grown <= ALLOWANCE, "the process has grown by at most 1 MiB", f"by {grown} bytes")
    context.compare("every launch ran", identical(context.read(array), np.array([3 * launched], np.int64)))


@CHECKS.check("leak-references", "Launches keep no references to their arguments.")
def _leak_references(context: Context) -> None:
    array, text, number, pair = (
        context.array(np.zeros(8, np.int32), "i32"),
        1 << 70,
        10**15 + 1,
        (10**9 + 7, 2.5),
    )
    source = "def keeps(X, n, t):\n    tl.store(X, tl.load(X) + 1)\n"
    kernel = make_kernel(source)
    kernel[(1,)](array, number, pair)
    context.memory.synchronize()
    watched = (array, number, pair, pair[0], text)
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(200):
        kernel[(1,)](array, number, pair)
    context.memory.synchronize()
    gc.collect()
    grown = [sys.getrefcount(item) - old for item, old in zip(watched, before, strict=True)]
    context.expect(max(grown) <= 1, "200 launches leave none behind", f"references more: {grown}")


@CHECKS.check(
    "leak-refused", "Launches that are refused do not leak memory either.", seconds=300, elements=BLOCK
)
def _leak_refused(context: Context) -> None:
    array = context.array(np.zeros(8, np.int32), "i32")
    source = "def refuses(X, by: tl.int32):\n    tl.store(X, by)\n"
    compiled = make_kernel(source).warmup(array, 3, grid=(1,))

    def launch() -> None:
        try:
            compiled[(1, 1, 1)](array, "three")
        except (TypeError, ValueError, RuntimeError):
            return
        raise AssertionError("a text was taken for an int")

    launch()
    before = sys.getrefcount(array)
    grown = _growth(context, launch)
    context.expect(grown <= ALLOWANCE, "the process has grown by at most 1 MiB", f"by {grown} bytes")
    gc.collect()
    context.expect(sys.getrefcount(array) <= before + 1, "references to arguments are given back")


@CHECKS.check(
    "leak-device",
    "10,000 launches do not increase the device's memory in use.",
    seconds=300,
    kit_device=True,
    elements=BLOCK,
)
def _leak_device(context: Context) -> None:
    usage = getattr(context.device, "memory_usage", None)
    array = context.array(np.zeros(1000, np.int32), "i32")
    _add(array, 3)
    context.memory.synchronize()
    gc.collect()
    before = usage() if usage else None
    for _ in range(LAUNCHES):
        _add(array, 3)
    context.memory.synchronize()
    gc.collect()
    if usage and before:
        context.expect(
            usage()[0] <= before[0], "the device counts no more bytes in use", f"{usage()[0]}, {before[0]}"
        )
        context.expect(usage()[2] <= before[2], "nor more allocations", f"{usage()[2]}, {before[2]}")
    total = np.full(1000, 3 * (LAUNCHES + 1), np.int32)
    context.compare("every launch ran", identical(context.read(array), total))
    device = context.device
    with allocated(device, *pieces(device, device.properties().memory_bytes // 2)):
        context.expect(True, "half of the device's memory can still be allocated at once")


@CHECKS.check(
    "leak-arrays", "1,000 arrays that are created and dropped return their memory.", kit_device=True
)
def _leak_arrays(context: Context) -> None:
    sizes = pieces(context.device, context.device.properties().memory_bytes // 100)
    for _ in range(1000):
        with allocated(context.device, *sizes):
            pass
    context.expect(True, "ten times the device's memory was allocated")
