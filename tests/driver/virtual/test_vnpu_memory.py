"""Allocations of the virtual NPU: limits, checks, and many of them."""

from __future__ import annotations

import ctypes
import itertools
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from chips import Chip, Refused, call, default_config, resident_bytes

from triton_porting_kit.driver import virtual


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 4096, 1 << 20, 3 << 20])
@pytest.mark.parametrize("alignment", [1, 64, 4096, 1 << 30])
def test_addresses_are_aligned_and_usable(chip: Chip, size: int, alignment: int) -> None:
    first, second = chip.alloc(size, alignment), chip.alloc(size, alignment)
    assert first not in (0, second)
    assert second != 0
    for address in (first, second):
        assert address % max(alignment, 64) == 0
        data = random.Random(size).randbytes(size)
        chip.write(address, data)
        assert chip.read(address, size) == data
        chip.free(address)
    assert chip.counted().allocated_bytes == chip.counted().allocations == 0
    assert chip.counted().allocated_peak == 2 * size


@pytest.mark.parametrize("alignment", [0, 3, 96, 1 << 31])
def test_bad_alignments_are_refused(chip: Chip, alignment: int) -> None:
    with pytest.raises(Refused, match=str(alignment)) as info:
        chip.alloc(64, alignment)
    assert info.value.status == "INVALID_ARGUMENT"


def test_the_memory_is_limited_to_the_byte() -> None:
    with Chip(memory_bytes=1 << 20) as chip:
        whole = chip.alloc(1 << 20)
        with pytest.raises(Refused, match="1 bytes asked for, 0 bytes free") as info:
            chip.alloc(1)
        assert info.value.status == "OUT_OF_MEMORY"
        empty = chip.alloc(0)
        chip.free(whole)
        chip.free(empty)
        chip.free(chip.alloc(1 << 20))
        with pytest.raises(Refused) as info:
            chip.alloc((1 << 64) - 1)
        assert info.value.status == "OUT_OF_MEMORY"


def test_ranges_are_checked(chip: Chip) -> None:
    address = chip.alloc(1000)
    chip.write(address + 1000, b"")  # right behind it, nothing
    for start, size, words in (
        (address + 990, 11, "leaves the allocation of 1000 bytes"),
        (address + 1001, 0, "not in a live allocation"),
        (address - 1, 1, "not in a live allocation"),
        (0, 1, "NULL"),
        (4096, 1, "not in a live allocation"),
        (address, (1 << 64) - 1, "leaves the allocation"),
    ):
        for attempt in (
            lambda start=start, size=size: chip.fill(start, 0, size),
            lambda start=start, size=size: chip.copy_to_device(0, start, ctypes.c_char_p(b"x" * 16), size),
            lambda start=start, size=size: chip.copy_to_host(0, ctypes.c_char_p(b"x" * 16), start, size),
            lambda start=start, size=size: chip.copy_on_device(0, start, address, size),
            lambda start=start, size=size: chip.copy_on_device(0, address, start, size),
        ):
            with pytest.raises(Refused, match=words) as info:
                attempt()
            assert info.value.status == "INVALID_POINTER"
    chip.write(0, b"")  # an empty array may have no address


def test_only_what_is_live_is_freed(chip: Chip) -> None:
    address = chip.alloc(1000)
    for wrong, words in (
        (0, "NULL"),
        (address + 64, "64 bytes inside"),
        (4096, "not of this chip"),
        (1, "not of this chip"),
    ):
        with pytest.raises(Refused, match=words) as info:
            chip.free(wrong)
        assert info.value.status == "INVALID_POINTER"
    chip.free(address)
    with pytest.raises(Refused, match="freed before"):
        chip.free(address)
    with pytest.raises(Refused, match="not in a live allocation"):
        chip.read(address, 1)


def test_free_waits_for_work(chip: Chip, kernels: bytes) -> None:
    queue, flag, other = chip.queue(), chip.array(bytes(8)), chip.alloc(64)
    chip.launch(chip.symbol(chip.load(kernels), "slow"), (1, 1, 1), flag, 100_000_000, queue=queue)
    chip.free(other)
    assert chip.read(flag, 8) == (1).to_bytes(8, "little")


def test_a_hundred_thousand_allocations_in_random_order() -> None:
    """No two overlap, all is given back, and neither process grows."""
    rng = random.Random(5)
    with Chip(memory_bytes=1 << 32) as chip:
        live: list[tuple[int, int]] = []

        def churn(count: int) -> None:
            for _ in range(count):
                if live and rng.random() < 0.48:
                    index = rng.randrange(len(live))
                    live[index], live[-1] = live[-1], live[index]
                    chip.free(live.pop()[0])
                else:
                    size = int(2 ** rng.uniform(0, 17))
                    address = chip.alloc(size, 1 << rng.randrange(13))
                    live.append((address, size))
                    if rng.random() < 0.05:
                        chip.fill(address, 1, size)

        churn(20_000)
        before = resident_bytes(), resident_bytes(chip.process())
        churn(180_000)
        ordered = sorted(live)
        for (address, size), (following, _) in itertools.pairwise(ordered):
            assert address + size <= following
        assert chip.counted().allocations == len(live)
        assert chip.counted().allocated_bytes == sum(size for _, size in live)
        rng.shuffle(live)
        while live:
            chip.free(live.pop()[0])
        assert chip.counted().allocated_bytes == 0
        after = resident_bytes(), resident_bytes(chip.process())
        assert after[0] - before[0] < 32 << 20
        assert after[1] - before[1] < 96 << 20


def test_freed_memory_goes_back_to_the_machine(chip: Chip) -> None:
    size = 200 << 20
    for _ in range(3):
        address = chip.alloc(size)
        chip.fill(address, 1, size)
        chip.synchronize()
        assert resident_bytes(chip.process()) > size
        chip.free(address)
        assert resident_bytes(chip.process()) < 64 << 20


def test_the_host_cannot_touch_device_memory() -> None:
    code = f"""
        import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
        import ctypes
        from chips import Chip
        chip = Chip()
        address = chip.alloc(64)
        print(chip.process(), flush=True)
        ctypes.string_at(address, 1)
        print("survived")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == -11
    assert "survived" not in done.stdout


@pytest.mark.parametrize(
    ("field", "value"),
    [("memory_bytes", 1), ("memory_bytes", 1 << 50), ("scratchpad_bytes", 0), ("cores", 0), ("cores", 5000),
     ("queue_depth", 0), ("queue_depth", 1 << 20), ("faults", b"nonsense"), ("chip_path", b"/does/not/exist")],
)  # fmt: skip
def test_impossible_configurations_are_refused(field: str, value: object) -> None:
    with pytest.raises(
        Refused, match="does not start" if field == "chip_path" else field.removesuffix("s")
    ) as info:
        Chip(**{field: value})
    assert info.value.status == ("DEVICE_LOST" if field == "chip_path" else "INVALID_ARGUMENT")


def test_a_chip_is_counted_where_its_program_can_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "plain"
    plain.touch(mode=0o600)
    for path, expected in (
        ("", 1),
        (str(virtual.chip()), 1),
        (str(plain), 0),
        (str(tmp_path), 0),
        ("/none", 0),
    ):
        monkeypatch.setenv("VNPU_CHIP", path)
        count = ctypes.c_uint32(7)
        call("count", ctypes.byref(count))
        assert count.value == expected, path
    with pytest.raises(Refused, match="vnpu_count: count is NULL"):
        call("count", None)


def test_the_environment_sets_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("MEMORY_BYTES", 1 << 21),
        ("SCRATCHPAD_BYTES", 4096),
        ("CORES", 3),
        ("QUEUE_DEPTH", 5),
        ("WATCHDOG_MS", 6),
    ):
        monkeypatch.setenv(f"VNPU_{name}", str(value))
    monkeypatch.setenv("VNPU_FAULTS", "fail-alloc:2")
    with Chip() as chip:
        config = chip.config()
        assert (config.memory_bytes, config.scratchpad_bytes, config.cores) == (1 << 21, 4096, 3)
        assert (config.queue_depth, config.watchdog_ms) == (5, 6)
        chip.alloc(1)
        with pytest.raises(Refused, match="fail-alloc"):
            chip.alloc(1)
    for bad in ("many", "-1", "1.5", "0x10", "99999999999999999999", "1 "):
        monkeypatch.setenv("VNPU_CORES", bad)
        with pytest.raises(Refused, match="VNPU_CORES") as info:
            default_config()
        assert info.value.status == "INVALID_ARGUMENT"


def test_null_arguments_are_refused(chip: Chip) -> None:
    for name, arguments in (
        ("alloc", (1, 64, None)), ("queue_create", (None,)), ("event_create", (None,)), ("counters", (None,)),
        ("get_config", (None,)), ("chip_process", (None,)), ("module_load", (None, 5, None)),
        ("get_symbol", (1, None, None)), ("inject", (None,)), ("event_elapsed", (1, 1, None)),
        ("copy_to_device", (0, chip.alloc(8), None, 8)), ("copy_to_host", (0, None, chip.alloc(8), 8)),
    ):  # fmt: skip
        with pytest.raises(Refused, match="NULL") as info:
            Chip.__getattr__(chip, name)(*arguments)
        assert info.value.status == "INVALID_ARGUMENT"


def test_a_closed_device_is_refused() -> None:
    chip = Chip()
    handle = chip.handle
    chip.close()
    for wrong in (handle, ctypes.c_void_p(), ctypes.c_void_p(1)):
        chip.handle = wrong
        with pytest.raises(Refused) as info:
            chip.alloc(1)
        assert info.value.status == "INVALID_ARGUMENT"
        with pytest.raises(Refused):
            chip.reset()
