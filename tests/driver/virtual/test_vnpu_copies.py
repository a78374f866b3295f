"""Copies of the virtual NPU: every size, every direction, verified."""

from __future__ import annotations

import ctypes
import random
import threading

import pytest
from chips import Chip, Refused, resident_bytes

SLOT = 256 << 10
SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 895, 896, 897, SLOT - 1, SLOT, SLOT + 1, 6 * SLOT + 12345]


@pytest.mark.parametrize("size", SIZES)
def test_copies_arrive(chip: Chip, size: int) -> None:
    data = random.Random(size).randbytes(size)
    for offset in (0, 1, 4):
        memory = chip.alloc(size + 16)
        copy = chip.alloc(size + 16)
        for address in (memory, copy):
            chip.fill(address, 0xEE, size + 16)
        chip.write(memory + offset, data)
        chip.copy_on_device(0, copy + offset, memory + offset, size)
        for address in (memory, copy):
            whole = b"\xee" * offset + data + b"\xee" * (16 - offset)
            assert chip.read(address, size + 16) == whole


def test_the_source_may_change_after_the_call(chip: Chip) -> None:
    size = 5 << 20
    source = (ctypes.c_char * size)()
    memory = chip.alloc(size)
    for value in range(4):
        ctypes.memset(source, value, size)
        chip.copy_to_device(0, memory, source, size)
        ctypes.memset(source, 0xFF, size)
        assert chip.read(memory, size) == bytes([value]) * size


def test_counters_count_bytes_by_direction(chip: Chip) -> None:
    memory, other = chip.alloc(1 << 20), chip.alloc(1 << 20)
    chip.write(memory, bytes(1 << 20))
    chip.write(memory, bytes(100))
    chip.copy_on_device(0, other, memory, 12345)
    chip.fill(memory, 3, 777)
    chip.read(memory, 55)
    counted = chip.counted()
    assert counted.bytes_to_device == (1 << 20) + 100
    assert counted.bytes_on_device == 12345
    assert counted.bytes_filled == 777
    assert counted.bytes_to_host == 55
    assert counted.commands == 5


@pytest.mark.parametrize("kind", ["corrupt", "drop"])
@pytest.mark.parametrize("size", [1, 100, 5000, 3 * SLOT + 5])
def test_copies_that_go_wrong_are_noticed(chip: Chip, kind: str, size: int) -> None:
    data = random.Random(size).randbytes(size)
    memory, other = chip.array(data), chip.array(data)
    chip.inject(f"{kind}-copy:2")
    chip.write(memory, data)
    chip.write(memory, data[::-1])
    with pytest.raises(Refused, match="did not arrive as they were sent") as info:
        chip.synchronize()
    assert info.value.status == "COPY_FAILED"
    chip.synchronize()
    chip.write(memory, data)
    assert chip.read(memory, size) == data

    chip.inject(f"{kind}-copy:1")
    with pytest.raises(Refused, match="did not arrive as they were sent") as info:
        chip.read(memory, size)
    assert info.value.status == "COPY_FAILED"
    assert chip.read(memory, size) == data

    chip.inject(f"{kind}-copy:1")
    chip.copy_on_device(0, other, memory, size)
    with pytest.raises(Refused) as info:
        chip.read(other, size)
    assert info.value.status == "COPY_FAILED"
    assert chip.read(memory, size) == data


def test_a_gibibyte_is_copied_in_flat_memory(chip: Chip) -> None:
    piece = 32 << 20
    data = bytes(random.Random(1).randbytes(1 << 20)) * (piece >> 20)
    memory = chip.alloc(piece)
    target = ctypes.create_string_buffer(piece)
    sizes = []
    for _ in range(16):  # 32 MiB in, 32 MiB out
        chip.write(memory, data)
        ctypes.memset(target, 0, piece)
        chip.copy_to_host(0, target, memory, piece)
        assert ctypes.string_at(target, piece) == data
        sizes.append((resident_bytes(), resident_bytes(chip.process())))
    assert chip.counted().bytes_to_device + chip.counted().bytes_to_host == 1 << 30
    for first, last in zip(sizes[1], sizes[-1], strict=True):
        assert abs(last - first) < 8 << 20


def test_threads_copy_at_once(chip: Chip) -> None:
    """More pieces are under way than there are staging slots; nobody waits for ever."""
    size = 4 << 20
    failures: list[object] = []

    def work(seed: int) -> None:
        try:
            queue = chip.queue() if seed % 2 else 0
            data = random.Random(seed).randbytes(size)
            memory = chip.alloc(size)
            for _ in range(4):
                chip.fill(memory, 0, size, queue)
                chip.write(memory, data, queue)
                if chip.read(memory, size, queue) != data:
                    failures.append(seed)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_kernel_may_write_where_a_copy_goes(chip: Chip, kernels: bytes) -> None:
    """A flag that a kernel waits for, and changes at once, is no bad copy."""
    gate = chip.symbol(chip.load(kernels), "gate")
    waiting, copies = chip.queue(), chip.queue()
    for _ in range(50):
        flag = chip.array(bytes(8))
        chip.synchronize()
        chip.launch(gate, (1, 1, 1), flag, queue=waiting)
        chip.write(flag, (1).to_bytes(8, "little"), copies)
        chip.synchronize()
        assert chip.read(flag, 8) == (2).to_bytes(8, "little")
        chip.free(flag)
