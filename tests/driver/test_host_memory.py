"""Allocation, copies and fills of the host device."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.errors import DeviceError, InvalidArgument, InvalidPointer, OutOfMemory

MIB = 1 << 20


@pytest.mark.parametrize("size", [0, 1, 3, 63, 64, 65, 4097, MIB - 1, MIB, MIB + 1, 5 * MIB + 7])
def test_allocations_are_aligned_and_accounted(device: HostDevice, size: int) -> None:
    first, second = device.memalloc(size), device.memalloc(size)
    assert first != 0
    assert first != second
    assert first % 64 == second % 64 == 0
    assert device.memory_usage()[0] == 2 * size
    assert device.memory_usage()[2] == 2
    device.memset(first, 0xA5, size)
    back = bytearray(size)
    device.memcpy_dtoh(back, first)
    assert back == b"\xa5" * size
    device.memfree(first)
    device.memfree(second)
    assert device.memory_usage()[:3] == (0, 2 * size, 0)


@pytest.mark.parametrize("alignment", [1, 64, 128, 4096, 1 << 16, 1 << 21])
@pytest.mark.parametrize("size", [0, 100, 3 * MIB])
def test_alignment(device: HostDevice, alignment: int, size: int) -> None:
    address = device.memalloc(size, alignment)
    assert address % max(alignment, 64) == 0
    device.memset(address, 1, size)
    device.memfree(address)


@pytest.mark.parametrize("alignment", [0, 3, 48, 1 << 31, -8])
def test_bad_alignment(device: HostDevice, alignment: int) -> None:
    with pytest.raises(InvalidArgument, match="alignment"):
        device.memalloc(16, alignment)


def test_out_of_memory_names_the_sizes() -> None:
    device = HostDevice(memory_limit=1000)
    first = device.memalloc(600)
    with pytest.raises(OutOfMemory, match=r"500 bytes asked for, 400 bytes free \(600 of 1000 in use\)"):
        device.memalloc(500)
    second = device.memalloc(400)
    with pytest.raises(OutOfMemory):
        device.memalloc(1)
    device.memfree(first)
    device.memfree(device.memalloc(600))
    device.memfree(second)


@pytest.mark.parametrize("size", [1 << 50, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**80])
def test_sizes_beyond_the_memory(device: HostDevice, size: int) -> None:
    with pytest.raises(OutOfMemory):
        device.memalloc(size)


def test_impossible_sizes_and_types(device: HostDevice) -> None:
    with pytest.raises(InvalidArgument, match="size -1"):
        device.memalloc(-1)
    with pytest.raises(TypeError):
        device.memalloc("16")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        device.memalloc(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, 100, 2 * MIB])
def test_free_refuses_what_it_did_not_allocate(device: HostDevice, size: int) -> None:
    address = device.memalloc(size)
    if size:
        with pytest.raises(InvalidPointer, match="lies 64 bytes inside"):
            device.memfree(address + 64)
    device.memfree(address)
    with pytest.raises(InvalidPointer, match="was freed before"):
        device.memfree(address)
    with pytest.raises(InvalidPointer, match="NULL"):
        device.memfree(0)
    foreign = np.zeros(10)
    with pytest.raises(InvalidPointer, match="not allocated by this device"):
        device.memfree(foreign.ctypes.data)
    for bad in (-1, 2**64):
        with pytest.raises(InvalidPointer):
            device.memfree(bad)


def test_free_of_another_device(device: HostDevice) -> None:
    other = HostDevice()
    address = other.memalloc(8)
    with pytest.raises(InvalidPointer):
        device.memfree(address)
    other.memfree(address)


def _each_copy(device: HostDevice, address: int, size: int):  # type: ignore[no-untyped-def]
    scratch = np.zeros(max(size, 1), np.uint8)
    host = scratch.ctypes.data
    yield lambda: device.memcpy_htod(address, bytes(size))
    yield lambda: device.memcpy_dtoh(bytearray(size), address)
    yield lambda: device.memcpy_dtod(address, host, size)
    yield lambda: device.memcpy_dtod(host, address, size)
    yield lambda: device.memset(address, 0, size)


@pytest.mark.parametrize("block", [100, 2 * MIB])
def test_ranges_are_checked_by_every_copy(device: HostDevice, block: int) -> None:
    address = device.memalloc(block)
    for offset, size in ((0, block + 1), (block - 1, 2), (block, 1), (-1, 2), (-64, 80)):
        for call in _each_copy(device, address + offset, size):
            with pytest.raises(InvalidPointer, match=r"leaves the allocation|runs into"):
                call()
    for offset, size in ((0, block), (block, 0), (block - 1, 1)):
        for call in _each_copy(device, address + offset, size):
            call()
    device.memfree(address)
    for offset, size in ((0, block), (1, 1), (0, 0)):
        for call in _each_copy(device, address + offset, size):
            with pytest.raises(InvalidPointer, match="freed"):
                call()


def test_null_and_address_overflow(device: HostDevice) -> None:
    for call in _each_copy(device, 0, 8):
        with pytest.raises(InvalidPointer, match="NULL"):
            call()
    for call in _each_copy(device, 64, 8):
        with pytest.raises(InvalidPointer, match="NULL plus 64"):
            call()
    for call in _each_copy(device, 0, 0):  # empty tensors have no address
        call()
    with pytest.raises(InvalidPointer, match="address space"):
        device.memset(2**64 - 4, 0, 8)
    for bad in (-8, 2**64):
        for call in _each_copy(device, bad, 8):
            with pytest.raises(InvalidPointer):
                call()


@pytest.mark.parametrize("size", [-1, 2**64, 2**70])
def test_bad_copy_sizes(device: HostDevice, size: int) -> None:
    address = device.memalloc(8)
    with pytest.raises(DeviceError):
        device.memset(address, 0, size)
    with pytest.raises(DeviceError):
        device.memcpy_dtod(address, address, size)
    device.memfree(address)


@pytest.mark.parametrize("value", [-1, 256, 1 << 40])
def test_fill_values(device: HostDevice, value: int) -> None:
    address = device.memalloc(8)
    with pytest.raises(InvalidArgument, match="value"):
        device.memset(address, value, 8)
    device.memfree(address)


def test_buffers(device: HostDevice) -> None:
    address = device.memalloc(16)
    with pytest.raises(InvalidArgument, match="contiguous"):
        device.memcpy_htod(address, np.zeros(16, np.uint8)[::2])
    with pytest.raises(InvalidArgument, match="writable"):
        device.memcpy_dtoh(b"0123456789abcdef", address)
    with pytest.raises(InvalidArgument, match="'int'"):
        device.memcpy_htod(address, 5)
    device.memcpy_htod(address, np.arange(4, dtype=np.float32))
    back = np.empty((2, 2), np.float32)
    device.memcpy_dtoh(back, address)
    assert back.tolist() == [[0, 1], [2, 3]]
    device.memfree(address)


@pytest.mark.parametrize("stream_kind", ["default", "created"])
def test_buffers_are_given_back(device: HostDevice, stream_kind: str) -> None:
    stream = device.create_stream() if stream_kind == "created" else 0
    address = device.memalloc(8)
    source = np.arange(8, dtype=np.uint8)
    alive = weakref.ref(source)
    device.memcpy_htod(address, source, stream)
    del source
    device.synchronize(stream)
    gc.collect()
    assert alive() is None
    grown = bytearray(8)
    device.memcpy_dtoh(grown, address, stream)
    device.synchronize(stream)
    grown.append(1)  # refused while a buffer is held
    assert grown[:8] == bytes(range(8))
    if stream:
        device.destroy_stream(stream)
    device.memfree(address)


def test_many_frees_leave_the_quarantine_bounded(device: HostDevice) -> None:
    for size in (64, 300_000, 2 * MIB):
        for _ in range(6000 if size == 64 else 200):
            device.memfree(device.memalloc(size))
    # Memory that left the quarantine may belong to others again: copies to foreign memory go on working.
    foreign = [np.zeros(64, np.uint8) for _ in range(500)]
    for array in foreign:
        device.memset(array.ctypes.data, 7, 64)
        assert array[63] == 7


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_copies_touch_nothing_else(data: st.DataObject) -> None:
    device = HostDevice()
    guard, size = 128, data.draw(st.integers(0, 5000))
    address = device.memalloc(size + 2 * guard)
    model = bytearray(b"\xee" * (size + 2 * guard))
    device.memset(address, 0xEE, len(model))
    for _ in range(data.draw(st.integers(1, 5))):
        offset = data.draw(st.integers(0, size))
        count = data.draw(st.integers(0, size - offset))
        where = slice(guard + offset, guard + offset + count)
        match data.draw(st.sampled_from(["htod", "memset", "dtod", "dtoh"])):
            case "htod":
                payload = data.draw(st.binary(min_size=count, max_size=count))
                device.memcpy_htod(address + guard + offset, payload)
                model[where] = payload
            case "memset":
                byte = data.draw(st.integers(0, 255))
                device.memset(address + guard + offset, byte, count)
                model[where] = bytes([byte]) * count
            case "dtod":
                source = data.draw(st.integers(0, size - count))
                device.memcpy_dtod(address + guard + offset, address + guard + source, count)
                model[where] = bytes(model[guard + source : guard + source + count])
            case "dtoh":
                back = bytearray(b"\x11" * (count + 8))
                device.memcpy_dtoh(memoryview(back)[4 : 4 + count], address + guard + offset)
                assert back == b"\x11" * 4 + model[where] + b"\x11" * 4
    everything = bytearray(len(model))
    device.memcpy_dtoh(everything, address)
    assert everything == model
    device.memfree(address)
