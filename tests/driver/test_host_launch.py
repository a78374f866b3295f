"""Modules, functions and launches of the host device."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from host_scripts import FORK, LAUNCH, python
from objects import assemble, ir, kernel

from triton_porting_kit.binaries.elf import defined_symbols
from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.errors import InvalidModule, LaunchError, OutOfMemory


def _function(device: HostDevice, kind: str, **options: int) -> int:
    return device.get_function(device.load_module(kernel(kind, **options), kind), kind)


def _counts(device: HostDevice, programs: int, launch) -> np.ndarray:  # type: ignore[no-untyped-def, type-arg]
    """Run ``launch(args)`` of the `count` kernel over zeroed slots; gives the slots."""
    address = device.memalloc(8 * programs)
    device.memset(address, 0, 8 * programs)
    launch(struct.pack("Q", address))
    back = np.empty(programs, np.int64)
    device.memcpy_dtoh(back, address)
    device.memfree(address)
    return back


@pytest.mark.parametrize(
    "grid", [(1,), (2,), (7,), (1000,), (100_003,), (3, 5), (1, 1, 64), (4, 3, 2), (1, 999, 1)]
)
def test_every_program_runs_once(device: HostDevice, grid: tuple[int, ...]) -> None:
    function = _function(device, "count")
    programs = int(np.prod(grid))
    for _ in range(3):
        slots = _counts(device, programs, lambda args: device.launch(function, grid, 0, args))
        np.testing.assert_array_equal(slots, np.arange(1, programs + 1))


@pytest.mark.parametrize("grid", [(0,), (0, 4), (4, 0, 4), (2**31 - 1, 2**31 - 1, 0)])
def test_empty_grids_run_nothing(device: HostDevice, grid: tuple[int, ...]) -> None:
    fail = _function(device, "fail")
    device.launch(fail, grid, 0, struct.pack("q", 0))


@pytest.mark.parametrize(
    "grid", [(), (1, 1, 1, 1), (-1,), (2**31,), (2**40,), (2**64,), (2**31 - 1,) * 3, (0, 2**31)]
)
def test_bad_grids(device: HostDevice, grid: tuple[int, ...]) -> None:
    function = _function(device, "empty")
    with pytest.raises(LaunchError, match="grid"):
        device.launch(function, grid, 0, b"")


def test_failures_name_kernel_code_and_programs(device: HostDevice) -> None:
    fail = _function(device, "fail")
    with pytest.raises(LaunchError, match=r"kernel 'fail' failed with code 7 in programs 0 to 0 of 1$"):
        device.launch(fail, (1,), 0, struct.pack("q", 0))
    with pytest.raises(LaunchError, match=r"failed with code 7 in programs \d+ to \d+ of 1000"):
        device.launch(fail, (10, 100), 0, struct.pack("q", 500))
    device.launch(fail, (1000,), 0, struct.pack("q", 1000))


def test_unknown_functions_and_streams(device: HostDevice) -> None:
    function = _function(device, "empty")
    for bad in (0, 12345, -1, 2**64):
        with pytest.raises(LaunchError, match="function"):
            device.launch(bad, (1,), 0, b"")
    for bad in (12345, -1, 2**64):
        with pytest.raises(LaunchError, match="stream"):
            device.launch(function, (1,), bad, b"")


@pytest.mark.parametrize("scratch", [64, 4096, 1 << 20, (1 << 20) + 8])
def test_scratch_is_aligned_and_private(device: HostDevice, scratch: int) -> None:
    function = _function(device, "scratch", scratch=scratch)
    slots = _counts(device, 64, lambda args: device.launch(function, (64,), 0, args)).view(np.uint64)
    assert (slots % 64 == 0).all()
    assert (slots != 0).all()


def test_scratch_limits(device: HostDevice) -> None:
    for size in (1 << 40, -8 & (2**63 - 1)):
        with pytest.raises(InvalidModule, match="scratch"):
            device.load_module(kernel("empty", scratch=size), "empty")
    for cleared in (65, -1, 1 << 40):
        with pytest.raises(InvalidModule, match=f"wants {cleared} of 64 bytes of scratch to be cleared"):
            device.load_module(kernel("empty", cleared=cleared), "empty")


@pytest.mark.parametrize(
    ("table", "found"), [([], ""), ([1], "1"), ([-1], "-1"), ([0, 8], "0, 8"), ([2, 8, -8], "2, 8, -8")]
)
def test_a_table_of_pointers_that_is_none(device: HostDevice, table: list[int], found: str) -> None:
    values = ", ".join(f"i32 {number}" for number in table)
    text = f"@empty__pointers = constant [{len(table)} x i32] [{values}]\n"
    with pytest.raises(InvalidModule, match=rf"table of pointers is \[{found}\], not a count"):
        device.load_module(assemble(ir("empty", "empty") + text), "empty")


def test_modules(device: HostDevice) -> None:
    module = device.load_module(kernel("count", "a_kernel"), "a_kernel")
    again = device.load_module(kernel("count", "a_kernel"), "a_kernel")
    function = device.get_function(module, "a_kernel")
    other = device.get_function(again, "a_kernel")
    with pytest.raises(InvalidModule, match="holds 'a_kernel', not 'b'"):
        device.get_function(module, "b")
    device.unload_module(module)
    for call in (device.unload_module, lambda handle: device.get_function(handle, "a_kernel")):
        for handle in (module, 0, -1, 2**70):
            with pytest.raises(InvalidModule, match="does not exist"):
                call(handle)
    with pytest.raises(LaunchError, match="unloaded"):
        device.launch(function, (1,), 0, b"")
    slots = _counts(device, 3, lambda args: device.launch(other, (3,), 0, args))
    assert slots.tolist() == [1, 2, 3]


def test_unloading_leaves_running_work_alone(device: HostDevice) -> None:
    stream, address = device.create_stream(), device.memalloc(8)
    device.memset(address, 0, 8)
    module = device.load_module(kernel("spin"), "spin")
    function = device.get_function(module, "spin")
    for _ in range(3):
        device.launch(function, (1,), stream, struct.pack("QQ", address, 10_000_000))
    device.unload_module(module)
    device.synchronize(stream)
    back = bytearray(8)
    device.memcpy_dtoh(back, address)
    assert int.from_bytes(back, "little") == 3
    device.destroy_stream(stream)
    device.memfree(address)


def test_other_files_are_no_modules(device: HostDevice) -> None:
    shared_object = Path(sys.modules["triton_porting_kit.driver.host._host"].__file__ or "").read_bytes()
    foreign = "aarch64-unknown-linux-gnu" if platform.machine() == "x86_64" else "x86_64-unknown-linux-gnu"
    for binary, message in (
        (b"", "not an ELF"),
        (b"\x7fELF", "truncated"),
        (b"#include <stdio.h>", "not an ELF"),
        (shared_object, "not a relocatable object"),
        (assemble(ir("empty", "empty"), foreign), "this host is"),
        (kernel("empty", "another"), r"does not define empty, empty__scratch_bytes"),
        (assemble("define void @empty() { ret void }"), "tpk_host_abi_version"),
        (kernel("empty", abi=1), "kernel ABI 1"),
    ):
        with pytest.raises(InvalidModule, match=message):
            device.load_module(binary, "empty")


def test_truncated_objects(device: HostDevice) -> None:
    binary = kernel("spin")
    (table,) = struct.unpack_from("<Q", binary, 40)
    (count,) = struct.unpack_from("<H", binary, 60)
    ends = set()
    for section in range(count):
        offset, size = struct.unpack_from("<QQ", binary, table + 64 * section + 24)
        ends |= {offset, offset + size, table + 64 * section}
    ends |= set(np.random.default_rng(1).integers(0, len(binary), 300).tolist())
    for end in sorted(ends):
        if end < len(binary):
            with pytest.raises(InvalidModule):
                device.load_module(binary[:end], "spin")
            # And with the section table moved inside.
            moved = bytearray(binary[: max(end, 64)])
            moved[40:48] = struct.pack("<Q", max(0, len(moved) - 64 * count))
            with pytest.raises(InvalidModule):
                device.load_module(bytes(moved), "spin")


def test_damaged_tables_never_confuse_the_check() -> None:
    binary = kernel("spin")
    random = np.random.default_rng(2)
    for start in (0, *struct.unpack_from("<Q", binary, 40)):
        for _ in range(300):
            damaged = bytearray(binary)
            for place in random.integers(start, min(start + 1000, len(binary)), 4):
                damaged[place] = random.integers(256)
            with contextlib.suppress(InvalidModule):
                defined_symbols(bytes(damaged))


def test_undefined_symbols(device: HostDevice) -> None:
    text = ir("empty", "empty") + "declare void @no_such_symbol_anywhere()\n"
    text += "define void @caller() { call void @no_such_symbol_anywhere() ret void }"
    for _ in range(5):
        with pytest.raises(InvalidModule):
            device.load_module(assemble(text), "empty")
        device.unload_module(device.load_module(kernel("empty"), "empty"))


def test_native_entry(device: HostDevice) -> None:
    entry = device.launch_entry()
    u32, u64 = ctypes.c_uint32, ctypes.c_uint64
    launch = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, u64, u64, u32, u32, u32, ctypes.c_char_p, u64, ctypes.c_char_p, u64
    )(entry.function)
    count, fail = _function(device, "count"), _function(device, "fail")
    stream = device.create_stream()
    message = ctypes.create_string_buffer(b"x" * 200)
    for queue in (0, stream):

        def run(args: bytes, queue: int = queue) -> None:
            assert launch(entry.context, queue, count, 10, 2, 1, args, 8, message, 200) == 0
            device.synchronize(queue)

        np.testing.assert_array_equal(_counts(device, 20, run), np.arange(1, 21))
    assert launch(entry.context, 0, fail, 1, 1, 1, bytes(8), 8, message, 200) == 4
    assert b"'fail' failed with code 7" in message.value
    assert launch(entry.context, 0, 999, 1, 1, 1, bytes(8), 8, message, 10) == 4
    assert message.value == b"host CPU:"
    assert launch(entry.context, 0, 999, 1, 1, 1, bytes(8), 8, None, 0) == 4
    assert launch(entry.context, 0, count, 2**31, 1, 1, bytes(8), 8, message, 200) == 4
    assert launch(entry.context, 0, count, 2**31 - 1, 2**31 - 1, 3, bytes(8), 8, message, 200) == 4
    assert launch(entry.context, 999, count, 1, 1, 1, bytes(8), 8, message, 200) == 4
    assert b"stream 999" in message.value
    device.destroy_stream(stream)


def test_many_threads_launch_at_once(device: HostDevice) -> None:
    function = _function(device, "count")
    results: list[bool] = []

    def work(programs: int) -> None:
        for _ in range(30):
            slots = _counts(device, programs, lambda args: device.launch(function, (programs,), 0, args))
            results.append(bool((slots == np.arange(1, programs + 1)).all()))

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 100, 5000, 50_000, 999)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert results == [True] * 180


def test_many_streams_launch_at_once(device: HostDevice) -> None:
    function = _function(device, "count")
    streams = [device.create_stream() for _ in range(6)]
    addresses = [device.memalloc(8 * 3000) for _ in streams]
    for stream, address in zip(streams, addresses, strict=True):
        device.memset(address, 0, 8 * 3000, stream)
        for _ in range(20):
            device.launch(function, (3000,), stream, struct.pack("Q", address))
    device.synchronize()
    for stream, address in zip(streams, addresses, strict=True):
        back = np.empty(3000, np.int64)
        device.memcpy_dtoh(back, address)
        np.testing.assert_array_equal(back, 20 * np.arange(1, 3001))
        device.destroy_stream(stream)
        device.memfree(address)


def test_reset(device: HostDevice) -> None:
    module = device.load_module(kernel("empty"), "empty")
    function, stream = device.get_function(module, "empty"), device.create_stream()
    address = device.memalloc(100)
    device.reset()
    assert device.generation == 1
    assert device.memory_usage()[:3] == (0, 0, 0)
    with pytest.raises(InvalidModule):
        device.unload_module(module)
    with pytest.raises(LaunchError):
        device.launch(function, (1,), 0, b"")
    with pytest.raises(LaunchError):
        device.launch(function, (1,), stream, b"")
    with pytest.raises(ValueError, match="freed"):
        device.memset(address, 0, 1)
    device.launch(_function(device, "empty"), (5,), 0, b"")


def test_properties(device: HostDevice) -> None:
    properties = device.properties()
    assert properties.name
    assert properties.arch == platform.machine()
    assert properties.memory_bytes == 1 << 30
    assert properties.core_count == len(os.sched_getaffinity(0))
    assert HostDevice().properties().memory_bytes > 1 << 28


@pytest.mark.parametrize("width", ["1", "2", "3", "7", "64"])
def test_thread_count(width: str) -> None:
    code = LAUNCH + "for _ in range(50): run()\ncheck(50); print(_host.pool_width())"
    result = python(code, TPK_NUM_THREADS=width)
    assert (result.returncode, result.stdout.strip()) == (0, width), result.stderr


@pytest.mark.parametrize("width", ["0", "-1", "two", "1.5", "4x", "99999999999999999999", "5000"])
def test_bad_thread_count(width: str) -> None:
    result = python(LAUNCH + "run()", TPK_NUM_THREADS=width)
    assert f"LaunchError: host CPU: launch: TPK_NUM_THREADS is '{width}'" in result.stderr


def test_affinity_sets_the_width() -> None:
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n" + LAUNCH
    result = python(code + "run(); check(1); print(_host.pool_width())", TPK_NUM_THREADS="")
    assert (result.returncode, result.stdout.strip()) == (0, "1"), result.stderr


_PENDING = (
    LAUNCH
    + """
spin = device.get_function(device.load_module(kernel("spin"), "spin"), "spin")
stream = device.create_stream()
big = bytearray(1 << 22)
target = device.memalloc(1 << 22)
for _ in range({count}):
    device.launch(spin, ({grid},), stream, struct.pack("QQ", out, 5_000_000))
    device.memcpy_htod(target, big, stream)
"""
)


@pytest.mark.parametrize("grid", [1, 100_000])
def test_exit_with_pending_work(grid: int) -> None:
    result = python(_PENDING.format(count=2000, grid=grid) + "print('end')")
    assert (result.returncode, result.stdout.strip(), result.stderr) == (0, "end", "")


def test_exit_by_an_exception_with_pending_work() -> None:
    result = python(_PENDING.format(count=2000, grid=1) + "raise SystemExit(3)")
    assert (result.returncode, result.stderr) == (3, "")


def test_device_dropped_with_pending_work() -> None:
    result = python(_PENDING.format(count=200, grid=1) + "del device; print('end')")
    assert (result.returncode, result.stdout.strip(), result.stderr) == (0, "end", "")


def test_fork() -> None:
    code = (
        LAUNCH
        + FORK
        + """
run()
stream = device.create_stream()
run(stream); device.synchronize(stream)
def child():
    run(); run(stream); device.synchronize(); check(4)
    fresh = device.create_stream(); run(fresh); device.synchronize(fresh); check(5)
    device.destroy_stream(stream); device.destroy_stream(fresh)
    in_child(lambda: (run(), check(6)))
    device.memfree(device.memalloc(1 << 22))
for _ in range(5):
    in_child(child)
run(); run(stream); device.synchronize(); check(4)
"""
    )
    result = python(code)
    assert result.returncode == 0, result.stderr


def test_fork_leaves_pending_work_to_the_parent() -> None:
    code = (
        _PENDING.format(count=0, grid=1)
        + FORK
        + """
gate = device.get_function(device.load_module(kernel("gate"), "gate"), "gate")
flag = device.memalloc(8)
device.memset(flag, 0, 8)
device.launch(gate, (1,), stream, struct.pack("Q", flag))  # opened after the child has ended
for _ in range(50):
    device.launch(spin, (1,), stream, struct.pack("QQ", out, 1000))
    device.memcpy_htod(target, big, stream)
event, start = device.create_event(), device.create_event()
device.record_event(start)
device.record_event(event, stream)
def child():
    device.synchronize()
    device.synchronize_event(event)
    device.wait_event(stream, event)
    try:
        device.elapsed_time(start, event)
        raise SystemExit("the event counts as recorded")
    except ValueError as error:
        assert "never recorded" in str(error)
    device.memset(out, 0, 8000); run(stream); device.synchronize(stream); check(1)
    device.memfree(target)
in_child(child)
device.memset(flag, 1, 8)
device.synchronize()
back = bytearray(8); device.memcpy_dtoh(back, out)
assert int.from_bytes(back, "little") == 50
"""
    )
    result = python(code)
    assert result.returncode == 0, result.stderr


def test_fork_while_other_threads_launch() -> None:
    code = (
        LAUNCH
        + FORK
        + """
import threading
stop = False
mine = device.memalloc(8000); stream = device.create_stream()
def work():
    while not stop:
        device.launch(function, (1000,), 0, struct.pack("Q", mine))
        device.launch(function, (10,), stream, struct.pack("Q", mine))
        device.memfree(device.memalloc(100))
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
def child():
    run(); run(stream); device.synchronize(stream); check(2)
for _ in range(20):
    in_child(child)
stop = True
for thread in threads: thread.join()
"""
    )
    result = python(code)
    assert result.returncode == 0, result.stderr


def test_no_memory_for_scratch() -> None:
    code = (
        LAUNCH
        + """
import resource
from triton_porting_kit.errors import OutOfMemory
large = device.get_function(device.load_module(kernel("empty", scratch=1 << 30), "empty"), "empty")
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
try:
    device.launch(large, (1,), 0, b"")
except OutOfMemory as error:
    print(error)
"""
    )
    result = python(code)
    assert "1073741824 bytes of scratch" in result.stdout, result.stderr
    assert issubclass(OutOfMemory, MemoryError)
