"""Modules and kernels of the virtual NPU: what is refused, what kernels may call, what they are given."""

from __future__ import annotations

import math
import os
import platform
import random
import struct
from collections.abc import Callable
from typing import Any

import pytest
import triton
import triton.language as tl
from chips import Chip, Refused

from triton_porting_kit.compiler import link_shared_object

ONE = (1, 1, 1)


def why_refused(chip: Chip, binary: bytes) -> str:
    with pytest.raises(Refused) as info:
        chip.load(binary)
    assert info.value.status == "INVALID_MODULE"
    return info.value.text


def test_modules_are_separate(chip: Chip, kernels: bytes) -> None:
    memory = chip.array(bytes(8 * 1000))
    modules = [chip.load(kernels) for _ in range(40)]
    functions = [chip.symbol(module, "advance") for module in modules]
    assert len(set(functions)) == 40
    assert chip.symbol(modules[0], "advance") == functions[0]
    for function in functions:
        chip.launch(function, (10, 10, 10), memory, 1)
    assert struct.unpack("<1000q", chip.read(memory, 8000)) == tuple(40 * p for p in range(1000))
    for module, function in zip(modules, functions, strict=True):
        chip.launch(function, (10, 10, 10), memory, 1)
        chip.module_unload(module)
        with pytest.raises(Refused, match="unloaded") as info:
            chip.launch(function, (10, 10, 10), memory, 1)
        assert info.value.status == "LAUNCH_FAILED"
        for attempt in (lambda m=module: chip.symbol(m, "advance"), lambda m=module: chip.module_unload(m)):
            with pytest.raises(Refused, match="unloaded") as info:
                attempt()
            assert info.value.status == "INVALID_MODULE"
    assert struct.unpack("<1000q", chip.read(memory, 8000)) == tuple(80 * p for p in range(1000))


def test_what_is_no_shared_object_is_refused(chip: Chip, build: Callable[..., bytes], kernels: bytes) -> None:
    text = "const int tpk_host_abi_version = 3;"
    assert "not in ELF format" in why_refused(chip, b"")
    assert "not in ELF format" in why_refused(chip, b"MZ" * 1000)
    assert "relocatable object; link it" in why_refused(chip, build(text, kind="-c"))
    assert "is for another machine" in why_refused(chip, kernels[:18] + b"\xf3\x00" + kernels[20:])
    assert "not 64-bit" in why_refused(chip, kernels[:4] + b"\1" + kernels[5:])
    assert "not a shared object" in why_refused(chip, kernels[:16] + b"\2\0" + kernels[18:])
    assert "program" in why_refused(chip, build(text + "int main() { return 0; }", kind="-pie"))
    assert "tpk_host_abi_version" in why_refused(chip, build("int nothing;"))
    assert "ABI 1, this chip runs 3" in why_refused(chip, build("const int tpk_host_abi_version = 1;"))
    undefined = build(text + "void some_missing_routine(void); void f(void) { some_missing_routine(); }")
    assert "some_missing_routine" in why_refused(chip, undefined)
    crashes = (
        ("raise(SIGSEGV);", "SIGSEGV"),
        ("__builtin_trap();", "SIGILL" if platform.machine() == "x86_64" else "SIGTRAP"),
        ("for (volatile int i = 0;; ++i);", "does not end within 2 seconds"),
        ("_exit(0);", "ends the process"),
        ("_exit(5);", "ends the process"),
    )
    for when, (crash, words) in [*(("constructor", each) for each in crashes), ("destructor", crashes[0])]:
        function = f"__attribute__(({when})) static void f(void) {{ {crash} }}"
        library = build(f"#include <signal.h>\n#include <unistd.h>\n{text}\n{function}")
        assert words in why_refused(chip, library), (when, crash)
    assert chip.load(kernels)


def test_symbols_are_checked(chip: Chip, kernels: bytes, build: Callable[..., bytes]) -> None:
    module = chip.load(kernels)
    for name, words in (
        ("missing", "no kernel 'missing'"),
        ("tpk_host_abi_version", "no kernel"),
        ("printf", "no kernel"),
        ("sizeless", "sizeless__pointers"),
        ("greedy", f"needs {1 << 40} bytes of scratchpad, a core has"),
        ("x" * 300_000, "300000 characters"),
    ):
        with pytest.raises(Refused, match=words) as info:
            chip.symbol(module, name)
        assert info.value.status == "INVALID_MODULE"
    head = "const int tpk_host_abi_version = 3; int f(void) { return 0; } const long f__scratch_bytes[] = "
    for rest in (
        "{0, 0}; const int f__pointers[] = {3, 0};",
        "{0, 0}; const int f__pointers[] = {-1};",
        "{-1, 0}; const int f__pointers[] = {0};",
        "{64, 65}; const int f__pointers[] = {0};",
        "{64, -1}; const int f__pointers[] = {0};",
        "{64}; const int f__pointers[] = {0};",
    ):
        damaged = chip.load(build(head + rest))
        with pytest.raises(Refused) as info:
            chip.symbol(damaged, "f")
        assert info.value.status == "INVALID_MODULE"


def test_truncated_binaries_are_refused(chip: Chip, kernels: bytes, scale: bytes) -> None:
    process = chip.process()
    for binary in (kernels, scale):
        for size in [*range(0, 200, 7), *range(200, len(binary), len(binary) // 40), len(binary) - 1]:
            text = why_refused(chip, binary[:size])
            assert "truncated" in text or "ELF" in text, size
    assert chip.process() == process


@pytest.mark.parametrize("linker", ["kit", "system"])
def test_mutilated_binaries_do_not_harm_the_chip(
    chip: Chip, kernels: bytes, linker: str, request: pytest.FixtureRequest
) -> None:
    """Loading one may work or be refused. The chip lives on, whatever it reads."""
    binary = kernels if linker == "system" else request.getfixturevalue("scale")
    rng = random.Random(7)
    process = chip.process()
    refusals = 0
    for _ in range(150):
        damaged = bytearray(binary)
        for _ in range(rng.choice((1, 3, 30))):
            # Tables rather than code.
            damaged[rng.randrange(rng.choice((64, 1024, len(binary))))] = rng.choice(
                (0, 1, 0x7F, 0xFF, rng.randrange(256))
            )
        statuses = []
        try:
            module = chip.load(bytes(damaged))
            try:
                chip.symbol(module, "advance")
            except Refused as error:
                statuses.append(error.status)
            chip.module_unload(module)
        except Refused as error:
            statuses.append(error.status)
            refusals += 1
        assert set(statuses) <= {"INVALID_MODULE"}
    assert refusals > 50
    assert chip.process() == process
    assert chip.load(kernels)


def test_launches_are_checked(chip: Chip, kernels: bytes) -> None:
    module = chip.load(kernels)
    advance, empty = chip.symbol(module, "advance"), chip.symbol(module, "empty")
    memory = chip.array(bytes(64))
    for grid in ((1 << 31, 1, 1), (1, 1, 1 << 31), ((1 << 31) - 1, (1 << 31) - 1, 4)):
        with pytest.raises(Refused, match="grid") as info:
            chip.launch(empty, grid)
        assert info.value.status == "LAUNCH_FAILED"
    for grid in ((0, 1, 1), (1, 0, 1), (5, 5, 0)):
        chip.launch(advance, grid, memory, 0)
    chip.synchronize()
    assert chip.counted().programs == 0
    with pytest.raises(Refused, match="has 0 bytes, and a pointer at offset 0") as info:
        chip.launch(advance, ONE)
    assert info.value.status == "LAUNCH_FAILED"
    with pytest.raises(Refused, match="the chip takes"):
        chip.launch_block(empty, ONE, bytes(1 << 20))
    with pytest.raises(Refused, match="function 12345 does not exist"):
        chip.launch(12345, ONE)
    with pytest.raises(Refused, match="queue 777"):
        chip.launch(empty, ONE, queue=777)


@pytest.mark.parametrize("size", [8, 16, 896, 904, 100_000, 256 << 10])
def test_argument_blocks_are_copied(chip: Chip, build: Callable[..., bytes], size: int) -> None:
    source = """
        const int tpk_host_abi_version = 3; const int last__pointers[] = {1, 0};
        const long last__scratch_bytes[] = {0, 0};
        int last(long *args, void *scratch, long begin, long end, int x, int y, int z) {
          *(long *)args[0] = args[SIZE / 8 - 1]; return (long)args % 8; }
    """
    function = chip.symbol(chip.load(build(source, f"-DSIZE={size}")), "last")
    memory = chip.array(bytes(8))
    for _ in range(100):
        chip.launch_block(
            function,
            ONE,
            (struct.pack("<q", memory) + bytes(size - 16) + struct.pack("<q", 4321))[-size:]
            if size > 8
            else struct.pack("<q", memory),
        )
    assert struct.unpack("<q", chip.read(memory, 8)) == (4321 if size > 8 else memory,)


def test_host_pointers_are_refused(chip: Chip, kernels: bytes) -> None:
    advance = chip.symbol(chip.load(kernels), "advance")
    memory = chip.array(bytes(64))
    host = id(chip)
    for wrong in (host, memory - 1, memory + 65, 1, -1):
        with pytest.raises(Refused, match=r"pointer at offset 0.*not in a live allocation") as info:
            chip.launch(advance, ONE, wrong, 0)
        assert info.value.status == "INVALID_POINTER"
    for right in (memory, memory + 63, memory + 64, 0):
        chip.launch(advance, (0, 1, 1), right, 0)
        if right == memory:
            chip.launch(advance, ONE, right, 0)
    chip.free(memory)
    with pytest.raises(Refused, match="not in a live allocation"):
        chip.launch(advance, ONE, memory, 0)


def test_each_core_has_a_scratchpad(kernels: bytes) -> None:
    with Chip(cores=4, scratchpad_bytes=1 << 20) as chip:
        scratchpad, memory = chip.symbol(chip.load(kernels), "scratchpad"), chip.array(bytes(8 * 1000))
        chip.launch(scratchpad, (1000, 1, 1), memory)
        addresses = set(struct.unpack("<1000q", chip.read(memory, 8000)))
        assert 1 <= len(addresses) <= 4
        assert all(address % 64 == 0 for address in addresses)
        assert chip.counted().scratchpad_high_water == 1 << 20
    with Chip(scratchpad_bytes=(1 << 20) - 64) as chip:
        with pytest.raises(
            Refused, match=f"needs {1 << 20} bytes of scratchpad, a core has {(1 << 20) - 64}"
        ):
            chip.symbol(chip.load(kernels), "scratchpad")


def test_scratchpads_are_cleared_as_far_as_a_kernel_wants(kernels: bytes) -> None:
    with Chip(cores=2) as chip:
        tally, memory = chip.symbol(chip.load(kernels), "tally"), chip.array(bytes(8 * 1000))
        for programs in (1, 1000, 1000, 7):
            chip.launch(tally, (programs, 1, 1), memory)
            counts = struct.unpack(f"<{programs}q", chip.read(memory, 8 * programs))
            assert counts[0] == 1
            assert all(1 <= count <= 1000 for count in counts)


def test_kernels_call_the_firmware(chip: Chip, kernels: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    module = chip.load(kernels)
    chip.launch(chip.symbol(module, "asserts"), ONE)
    with pytest.raises(Refused, match=r"program \(0, 1, 2\), element \(1, 3\): it is said") as info:
        chip.synchronize()
    assert info.value.status == "ASSERTION_FAILED"
    memory = chip.array(struct.pack("<d", 10.5))
    chip.launch(chip.symbol(module, "lgammas"), ONE, memory)
    assert struct.unpack("<d", chip.read(memory, 8)) == pytest.approx((math.lgamma(10.5),), rel=1e-15)
    prints = chip.symbol(module, "prints")
    for _ in range(20):
        chip.launch(prints, (50, 1, 1))
        chip.synchronize()
        lines = capfd.readouterr().out.splitlines()  # all is there when the call returns
        assert sorted(lines) == sorted(
            f"pid ({p}, 0, 0) idx ({i}) v {value}" for p in range(50) for i, value in enumerate((11, -12))
        )


@pytest.fixture(scope="module")
def scale(cpu_backend: None) -> bytes:
    """A kernel of the kit's own compiler as a shared object."""

    @triton.jit
    def advance(x, y, n, factor, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
        tl.store(y + at, tl.load(x + at, at < n) * factor, at < n)

    compiled: Any = advance.warmup(
        triton.MockTensor(tl.float32), triton.MockTensor(tl.float32), 1000, 2.5, SIZE=64, grid=(1,)
    )
    return link_shared_object(compiled.asm["obj"])


def test_kernels_of_the_kit_run(chip: Chip, scale: bytes) -> None:
    function = chip.symbol(chip.load(scale), "advance")
    values = [random.Random(3).uniform(-1, 1) for _ in range(1000)]
    source = chip.array(struct.pack("<1000f", *values))
    target = chip.array(bytes(4000))
    block = struct.pack("<QQif", source, target, 1000, 2.5)
    chip.launch_block(function, (16, 1, 1), block)
    got = struct.unpack("<1000f", chip.read(target, 4000))
    assert got == pytest.approx([2.5 * value for value in values], rel=1e-6)
    with pytest.raises(Refused) as info:
        chip.launch_block(function, (16, 1, 1), struct.pack("<QQif", source, id(source), 1000, 2.5))
    assert info.value.status == "INVALID_POINTER"


def test_loading_and_unloading_leaves_nothing(chip: Chip, kernels: bytes) -> None:
    def files() -> list[str]:
        folder = f"/proc/{chip.process()}/fd"
        return sorted(os.readlink(f"{folder}/{name}") for name in os.listdir(folder))

    chip.module_unload(chip.load(kernels))
    before = files()
    for _ in range(100):
        chip.module_unload(chip.load(kernels))
    assert files() == before


@pytest.mark.parametrize(("word", "expected"), [("", 1e-310), ("flush", 0.0), ("caller", 1e-310)])
def test_denormals_by_the_variable(
    kernels: bytes, monkeypatch: pytest.MonkeyPatch, word: str, expected: float
) -> None:
    """By the rule of the host device, whose kernels these are."""
    monkeypatch.setenv("TPK_DENORMALS", word)
    with Chip() as chip:
        memory = chip.array(bytes(8 * 100))
        chip.launch_block(
            chip.symbol(chip.load(kernels), "divide"), (100, 1, 1), struct.pack("<Qdd", memory, 1e-300, 1e10)
        )
        assert set(struct.unpack("<100d", chip.read(memory, 800))) == {expected}


def test_a_chip_says_why_it_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPK_DENORMALS", "maybe")
    with pytest.raises(Refused, match="TPK_DENORMALS is 'maybe'; set it to keep"):
        Chip()
