"""The time of the chip's clock, against schedules computed by hand from the model of docs/npu.md.

n1 issues a command in 2 cycles, a channel starts in 24 and moves 128 bytes per cycle, global memory moves 768 and has a
latency of 200, a launch takes 1000. A cycle is a nanosecond.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from chips import Chip, Refused
from npus import KERNELS, Npu, build, memory, statements, unit

from triton_porting_kit.chips import CHIPS, ChipDescription, load
from triton_porting_kit.chips.files import parse

N1 = load("n1")
PRODUCT = "tpk_npu_matrix(sums, left, right, 64, 64, 32, 256, 64, 128, TPK_NPU_FP16, TPK_NPU_FP16, TPK_NPU_FP32, 0, 1);"
"""4 x 4 x 2 tiles of 2 cycles, after 8: 72 cycles."""

Cycles = Callable[..., float]


def cycles(chip: Npu, run: Callable[[], object]) -> int:
    """What passes by the chip's clock, in cycles of 1 GHz."""
    start, end = chip.event(), chip.event()
    chip.event_record(start, 0)
    run()
    chip.event_record(end, 0)
    chip.queue_synchronize(0)
    return round(chip.elapsed(start, end) * 1e6)


@pytest.fixture(scope="module")
def chip() -> Iterator[Npu]:
    with Npu(N1) as opened:
        yield opened


def taken(chip: Npu, folder: Path, body: str, grid: int = 1) -> int:
    """The cycles of a launch of a kernel with these statements, without those of launching itself."""
    binary = statements(folder, body, chip.description)
    x = chip.alloc(1 << 20)
    found = cycles(chip, lambda: chip.launch_kernel(binary, "kernel", grid, x, x + (1 << 19)))
    chip.free(x)
    return found - 1000


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", 0),
        # issue 2, start 24, 4096 / 128, latency 200
        ("row(0, vector, x, 4096, 1);", 2 + 24 + 32 + 200),
        # A store is complete when it has left: the latency is that of the source.
        ("row(0, y, vector, 4096, 1);", 2 + 24 + 32 + 4),
        # The second one of a channel starts when the first one has ended: 2 + 56 + 24 + 64, and completes after it.
        ("row(0, vector, x, 4096, 1); row(0, vector + 4096, x, 8192, 1);", 2 + 56 + 88 + 200),
        # On two channels: the second gets its command at 4.
        ("row(0, vector, x, 4096, 1); row(1, vector + 4096, x, 8192, 1);", 4 + 24 + 64 + 200),
        # Work overlaps with a transfer, and does not after a wait.
        ("row(0, vector, x, 4096, 1); tpk_npu_work(TPK_NPU_SPECIAL, 100);", 2 + 400),
        ("tpk_npu_wait(2, row(0, vector, x, 4096, 1)); tpk_npu_work(TPK_NPU_SPECIAL, 100);", 258 + 400),
        ("tpk_npu_work(TPK_NPU_SCALAR, 7); tpk_npu_work(TPK_NPU_REARRANGE, 10);", 7 + 20),
        # Three iterations of half a scalar instruction, rounded up, and of one that rearranges.
        ("const int64_t parts[9] = {512, [7] = 1024}; tpk_npu_works(parts, 3);", 2 + 3 * 2),
        # The matrix unit alone: issue 2, 72; then two in a row.
        (PRODUCT, 2 + 72),
        (PRODUCT + PRODUCT, 2 + 72 + 72),
        # Loads of A (complete at 258) and B (at 4 + 24 + 64 + 200 = 292); the product runs from 292 to 364. The next A
        # moves from 58 + 24 to 210 and is complete at 410: it and the product overlap.
        (
            "row(0, left, x, 4096, 1); row(1, right, x, 8192, 1); row(0, left + 8192, x, 16384, 1);"
            f"tpk_npu_order(1, 2, 1); tpk_npu_order(1, 3, 1); {PRODUCT}",
            410,
        ),
        # The same with a store of the sums behind the product: 364 + 24 + 16384 / 128 + 4.
        (
            "row(0, left, x, 4096, 1); row(1, right, x, 8192, 1); row(0, left + 8192, x, 16384, 1);"
            f"tpk_npu_order(1, 2, 1); tpk_npu_order(1, 3, 1); {PRODUCT}"
            "tpk_npu_order(3, 1, 1); row(1, y, sums, 16384, 1);",
            364 + 24 + 128 + 4,
        ),
        # The core waits for the product (from 258 to 330), then works while nothing else runs.
        (
            f"row(0, left, x, 4096, 1); tpk_npu_order(1, 2, 1); {PRODUCT} tpk_npu_wait(1, 1);"
            "tpk_npu_work(TPK_NPU_SIMPLE, 50);",
            330 + 50,
        ),
        # A channel that waits for the other one holds up what is behind: 258, then 24 + 8 + 4, then 24 + 8 + 4 more
        # cycles but for the latency of the one before, which has ended 4 cycles before.
        (
            "row(0, vector, x, 4096, 1); tpk_npu_order(3, 2, 1); row(1, y, vector, 1024, 1); row(1, y + 1024, sums, 1024, 1);",
            258 + 32 + 32 + 4,
        ),
        # What comes from the cluster's memory (latency 30) is not complete before what the channel moved before it.
        ("row(0, vector, x, 4096, 1); tpk_npu_wait(2, row(0, left, (int64_t)window + SHARED, 128, 1));", 258),
        # An element: issue 2, 64 bytes of 768 per cycle, latency 200; a store has no latency. 202.08 + 2.08 * 11
        (
            "tpk_npu_element_load(x, 4, 1); for (int i = 0; i < 11; ++i) tpk_npu_element_store(x, 0, 4, 1);",
            225,
        ),
        # Rows of 4 bytes that lie apart take a burst of 64 bytes each: 32 * 64 / 128.
        ("tpk_npu_transfer t = tile(vector, x, 32, 1, 4, 256); tpk_npu_dma(0, &t, 1);", 2 + 24 + 16 + 200),
        # Rows of 32 bytes behind each other share bursts: 32 * 32 / 128. A store of part of a burst moves all of it.
        ("tpk_npu_transfer t = tile(vector, x, 32, 8, 64, 32); tpk_npu_dma(0, &t, 1);", 2 + 24 + 8 + 200),
        ("tpk_npu_transfer t = tile(y, vector, 1, 8, 64, 32); tpk_npu_dma(0, &t, 1);", 2 + 24 + 0.5 + 4),
        # What is filled is written on chip: 32 rows of 64 bytes, of which 16 are read.
        (
            "tpk_npu_transfer t = tile(vector, x, 32, 16, 64, 64); t.high[0] = 16; tpk_npu_dma(0, &t, 1);",
            2 + 24 + 16 + 200,
        ),
        # A gather: 24 + 64 elements, and their bursts, which are all of x's first 64 * 256 bytes / 4.
        (
            "for (int i = 0; i < 64; ++i) ((int32_t *)vector)[i] = 64 * i;"
            "tpk_npu_gather(0, vector + 1024, x, vector, 0, 64, 4, 4, 4, 0, 1);",
            2 + 24 + 64 + 64 * 64 / 128 + 200,
        ),
    ],
)
def test_one_core(chip: Npu, tmp_path: Path, body: str, expected: float) -> None:
    assert taken(chip, tmp_path, body) == pytest.approx(expected, abs=0.51)


def test_a_full_queue_stalls_the_core(tmp_path: Path) -> None:
    """Two commands may be pending. Each takes 24 + 10 cycles, and 200 more to complete.

    The core issues at 2 and 4. The first one completes at 236, so the third is issued at 238; the second one completes
    at 270, so the fourth is issued at 272, when the third one has just ended. It runs to 306.
    """
    with Npu(parse(CHIPS["n1"].read_text().replace("queue = 16", "queue = 2", 1))) as chip:
        body = "for (int i = 0; i < 4; ++i) row(0, vector + 1280 * i, x, 1280, 1);"
        assert taken(chip, tmp_path, body) == 306 + 200


def test_two_cores_share_global_memory(tmp_path: Path) -> None:
    """Of 160 bytes per cycle each gets 80. The first one ends after 20 cycles, then the other one moves 128."""
    with Npu(
        parse(CHIPS["n1"].read_text().replace("bytes_per_cycle = 768", "bytes_per_cycle = 160"))
    ) as chip:
        body = "row(0, vector, x, begin ? 3264 : 1600, 1);"
        assert taken(chip, tmp_path, body, grid=2) == 26 + 20 + 13 + 200
        # A channel of another core that is slower than its share leaves the rest: 1600 bytes at 96 from one core, while
        # the cluster's memory of 64 bytes per cycle limits the other one.
    slow = CHIPS["n1"].read_text().replace("bytes_per_cycle = 768", "bytes_per_cycle = 160")
    slow = slow.replace(
        'cluster"\nbytes = 4194304 # 1 MiB for each core\nalignment = 64\nbanks = 16\nbytes_per_cycle = 512',
        'cluster"\nbytes = 4194304\nalignment = 64\nbanks = 16\nbytes_per_cycle = 64',
    )
    with Npu(parse(slow)) as chip:
        body = "row(0, begin ? (int64_t)window + SHARED : vector, x, begin ? 6400 : 9600, 1);"
        assert taken(chip, tmp_path, body, grid=2) == 26 + 100 + 200
        # Four cores of a cluster share its memory, eight in two clusters do not share more.
        body = "row(0, vector, (int64_t)window + SHARED, 1600, 1);"
        assert [taken(chip, tmp_path, body, grid) for grid in (1, 4, 8)] == [26 + 25 + 30] + 2 * [
            26 + 100 + 30
        ]


def test_all_channels_share_global_memory(chip: Npu, tmp_path: Path) -> None:
    """Eight transfers begin at 26 with 96 bytes per cycle each; from 28 on, sixteen have 48.

    The first eight end at 28 + (4800 - 192) / 48 = 124; the others then have 192 bytes left, and 96 per cycle.
    """
    body = "row(0, vector, x, 4800, 1); row(1, vector + 8192, x, 4800, 1);"
    assert taken(chip, tmp_path, body, grid=8) == 126 + 200
    # 16 programs are two for each core, called once: the kernel does not loop, so nothing changes.
    assert taken(chip, tmp_path, body, grid=16) == 126 + 200


def test_programs_are_dealt_in_ranges(chip: Npu, tmp_path: Path) -> None:
    """11 programs on 8 cores: the first three get two."""
    binary = statements(
        tmp_path,
        "for (int64_t p = begin; p < end; ++p) tpk_npu_element_store(x + 8 * p, begin * 100 + end, 8, 1);",
        N1,
    )
    x = chip.put(np.zeros(11, np.int64))
    chip.launch_kernel(binary, "kernel", 11, x, x)
    ranges = [(0, 2), (2, 4), (4, 6), *((p, p + 1) for p in range(6, 11))]
    expected = [begin * 100 + end for begin, end in ranges for _ in range(begin, end)]
    assert chip.get(x, np.zeros(11, np.int64)).tolist() == expected


def test_copies_and_fills_take_time(chip: Npu) -> None:
    size = 1024 * 768
    x, data = chip.alloc(2 * size), bytes(size)
    assert cycles(chip, lambda: chip.write(x, data)) == 1000 + size // 32
    assert cycles(chip, lambda: chip.read(x, size)) == 1000 + size // 32
    assert cycles(chip, lambda: chip.fill(x, 1, size)) == 1000 + 1024
    assert cycles(chip, lambda: chip.copy_on_device(0, x + size, x, size)) == 1000 + 2048
    assert cycles(chip, lambda: None) == 0


def test_queues_wait_by_the_chip_s_clock(chip: Npu) -> None:
    """A queue that waits for an event goes on at its time; engine and cores do one thing at a time."""
    first, second = chip.queue(), chip.queue()
    x = chip.alloc(1 << 20)
    start, done, end = chip.event(), chip.event(), chip.event()
    chip.event_record(start, first)
    chip.fill(x, 1, 768000, first)
    chip.event_record(done, first)
    chip.queue_wait(second, done)
    chip.fill(x, 1, 76800, second)
    chip.event_record(end, second)
    chip.queue_synchronize(second)
    assert round(chip.elapsed(start, done) * 1e6) == 2000
    assert round(chip.elapsed(done, end) * 1e6) == 1100


def _time_of_adding(chip: Npu, binary: bytes) -> int:
    x = chip.alloc(4 << 20)
    return cycles(chip, lambda: chip.launch_kernel(binary, "add", 1024, x, x, x, 1 << 20))


def test_counters_of_units_and_memories(tmp_path: Path) -> None:
    """Both launches are those of `test_one_core` that overlap, where every figure is known.

    A is complete at 258, B at 292; the product runs from 292 to 364, 286 after it was issued at 6. The core waits from 8
    to 410 for the second A, of which 112 are for the first B, and is told to store only then.
    """
    body = (
        "row(0, left, x, 4096, 1); row(1, right, x, 8192, 1);"
        f"tpk_npu_order(1, 2, 1); tpk_npu_order(1, 3, 1); {PRODUCT} int64_t next = row(0, left + 8192, x, 16384, 1);"
        "tpk_npu_wait(3, 1); tpk_npu_wait(2, next); row(0, y, sums, 2048, 1); tpk_npu_work(TPK_NPU_SCALAR, 11);"
    ).replace("row(0, y, sums", "tpk_npu_order(2, 1, 1); row(0, y, sums")
    with Npu(N1) as chip:
        for _ in range(2):
            # The store: issued at 412, 24 + 16 + 4.
            assert taken(chip, tmp_path, body) == 412 + 24 + 16 + 4
        found = {unit(chip, number).name.decode(): unit(chip, number) for number in range(4)}
        assert [*found] == [*N1.units]
        rows = {
            name: tuple(
                value // 2 for value in (data.commands, data.bytes, data.busy, data.ordered, data.waited)
            )
            for name, data in found.items()
        }
        assert rows == {
            "core": (0, 0, 5 * 2 + 11, 0, 0),
            "matrix": (1, 0, 72, 286, 0),
            "dma0": (3, 4096 + 16384 + 2048, 56 + 152 + 40, 0, 410 - 292),
            "dma1": (1, 8192, 88, 0, 292 - 8),
        }
        moved = {memory(chip, index).name.decode(): memory(chip, index).bytes // 2 for index in range(6)}
        assert moved == {
            "global": 30720,
            "left": 20480,
            "right": 8192,
            "sums": 2048,
            "vector": 0,
            "shared": 0,
        }
        assert memory(chip, 0).capacity == 2 * (1000 + 456) * 768
        assert memory(chip, 1).capacity == 2 * (1000 + 456) * 1024 * 8
        for counters in (lambda: unit(chip, 4), lambda: memory(chip, 6)):
            with pytest.raises(Refused, match="n1, which has"):
                counters()
        chip.reset()
        assert unit(chip, 1).busy == 0
    with Chip(cores=2) as plain, pytest.raises(Refused, match="has no description"):
        unit(plain, 0)


def test_time_does_not_depend_on_the_machine(tmp_path: Path) -> None:
    """The same on one CPU and on all, again and again, and while another queue is busy copying."""
    binary = build(tmp_path, KERNELS.read_text(), N1)
    usable = os.sched_getaffinity(0)
    found = set()
    for cpus in (usable, {min(usable)}):
        os.sched_setaffinity(0, cpus)
        try:
            with Npu(N1) as chip:
                found |= {_time_of_adding(chip, binary) for _ in range(3)}
        finally:
            os.sched_setaffinity(0, usable)
    assert len(found) == 1
    # Each program moves 3 x 4096 bytes; nothing overlaps but the two loads.
    (time,) = found
    assert time > 1000 + 128 * (2 + 24 + 32 + 200 + 4 + 24 + 32)


def test_a_long_launch_keeps_little(tmp_path: Path) -> None:
    """300,000 commands on each core are simulated while they run."""
    body = "for (int i = 0; i < 300000; ++i) tpk_npu_wait(2, row(0, vector, x, 64, 1));"
    with Npu(N1) as chip:
        # Eight channels have 96 bytes per cycle each.
        assert taken(chip, tmp_path, body, grid=8) == 300000 * (2 + 24 + 200) + 300000 * 64 // 96
        with open(f"/proc/{chip.process()}/status") as file:
            peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
        assert peak < 200 << 10


def test_the_clock_of_the_description_counts(tmp_path: Path) -> None:
    fast: ChipDescription = parse(CHIPS["n1"].read_text().replace("clock_mhz = 1000", "clock_mhz = 2000"))
    with Npu(fast) as chip:
        assert taken(chip, tmp_path, "tpk_npu_work(0, 3000);") == (1000 + 3000) / 2 - 1000
