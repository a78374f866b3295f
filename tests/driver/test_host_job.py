"""How the programs of a grid are shared out among threads."""

from __future__ import annotations

import re
import struct

import numpy as np
import pytest
from host_scripts import LAUNCH, python
from objects import kernel

from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.errors import LaunchError

WIDTHS = ["1", "2", "3", "8", "100"]


def _function(device: HostDevice, kind: str, **options: int) -> int:
    return device.get_function(device.load_module(kernel(kind, **options), kind), kind)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_program_runs_once_on_any_number_of_threads(width: str) -> None:
    script = """
import numpy as np
count = device.get_function(device.load_module(kernel("count"), "count"), "count")
for programs in (1, 2, 3, 7, 64, 65, 99, 1000, 54321):
    address = device.memalloc(8 * programs)
    for again in range(1, 4):
        if again == 1:
            device.memset(address, 0, 8 * programs)
        device.launch(count, (programs,), 0, struct.pack("Q", address))
        slots = np.empty(programs, np.int64)
        device.memcpy_dtoh(slots, address)
        assert (slots == again * np.arange(1, programs + 1)).all(), programs
    device.memfree(address)
"""
    result = python(LAUNCH + script, TPK_NUM_THREADS=width)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("width", WIDTHS)
def test_programs_may_wait_for_earlier_ones(width: str) -> None:
    script = """
chain = device.get_function(device.load_module(kernel("chain"), "chain"), "chain")
for programs in (1, 7, 200):
    address = device.memalloc(8 * programs)
    for _ in range(3):
        device.memset(address, 0, 8 * programs)
        device.launch(chain, (programs,), 0, struct.pack("Q", address))
"""
    result = python(LAUNCH + script, TPK_NUM_THREADS=width)
    assert result.returncode == 0, result.stderr


def test_each_thread_keeps_its_programs() -> None:
    """So that it finds their data in its cache: with as many programs as threads, each of which runs one."""
    script = """
import numpy as np
where = device.get_function(device.load_module(kernel("meet.where"), "meet.where"), "meet.where")
address = device.memalloc(8 * 5)
seen = set()
for _ in range(30):
    device.memset(address, 0, 8 * 5)
    device.launch(where, (4,), 0, struct.pack("QQ", address, 4))
    slots = np.empty(5, np.int64)
    device.memcpy_dtoh(slots, address)
    assert len(set(slots[1:])) == 4, slots
    seen.add(tuple(slots))
assert len(seen) == 1, seen
"""
    result = python(LAUNCH + script, TPK_NUM_THREADS="4")
    assert result.returncode == 0, result.stderr


def test_the_first_failure_is_told(device: HostDevice) -> None:
    """Every program from one on fails, in whatever order threads come to them."""
    fail = _function(device, "fail")
    for first in np.random.default_rng(1).integers(0, 1000, 300):
        with pytest.raises(LaunchError) as info:
            device.launch(fail, (1000,), 0, struct.pack("q", first))
        found = re.search(r"in programs (\d+) to (\d+) of 1000", str(info.value))
        assert found is not None
        assert int(found[1]) <= first <= int(found[2])


@pytest.mark.parametrize("width", WIDTHS)
def test_scratch_is_cleared_once_in_a_launch(width: str) -> None:
    """Each thread counts its own programs of a launch: there are as many ones as threads, then as many twos..."""
    script = f"""
import numpy as np
tally = device.get_function(device.load_module(kernel("tally", cleared=8), "tally"), "tally")
other = device.get_function(device.load_module(kernel("tally"), "tally"), "tally")
programs = 300
address = device.memalloc(8 * programs)
for _ in range(20):
    for function in (other, tally):
        device.launch(function, (programs,), 0, struct.pack("Q", address))
    slots = np.empty(programs, np.int64)
    device.memcpy_dtoh(slots, address)
    counts = np.bincount(slots)[1:]
    assert 1 <= counts[0] <= {width}, counts
    assert (np.diff(counts) <= 0).all() and counts.sum() == programs, counts
"""
    result = python(LAUNCH + script, TPK_NUM_THREADS=width)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(("begin", "end"), [(0, 5), (3, 4), (900, 5000), (2000, 3000)])
def test_only_some_programs(device: HostDevice, begin: int, end: int) -> None:
    count = _function(device, "count")
    address = device.memalloc(8 * 1000)
    device.memset(address, 0, 8 * 1000)
    arguments, slots = struct.pack("Q", address), np.empty(1000, np.int64)
    with device.only_programs(begin, end):
        device.launch(count, (1000,), 0, arguments)
    device.memcpy_dtoh(slots, address)
    programs = np.arange(1000)
    assert (slots == np.where((programs >= begin) & (programs < end), programs + 1, 0)).all()
    device.launch(count, (1000,), 0, arguments)
    device.memcpy_dtoh(slots, address)
    assert (slots >= programs + 1).all(), "the next launch runs all"
    device.memfree(address)
