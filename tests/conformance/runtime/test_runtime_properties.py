"""The level `runtime` on devices that say more of themselves: how large an allocation may be, and that they compile."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from levels_helpers import checks_of, tried

from triton_porting_kit.backends.cpu.compiler import CPUBackend
from triton_porting_kit.compiler import CPP_COMMAND, CpuTarget, Pipeline, cpp_pipeline
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.status import Status
from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.driver.properties import DeviceProperties
from triton_porting_kit.errors import CompilationError, InvalidModule, OutOfMemory

Patch = pytest.MonkeyPatch
LARGEST = 768 << 20


def say(patch: Patch, **more: Any) -> None:
    """Let the device say something else of itself."""
    real = HostDevice.properties

    def properties(self: HostDevice) -> DeviceProperties:
        return dataclasses.replace(real(self), **more)

    patch.setattr(HostDevice, "properties", properties)


def passes(name: str) -> None:
    record = tried(checks_of("runtime")[f"runtime/{name}"])
    assert record.status is Status.PASS, f"{record.stage}: {record.message}"


# --- the largest allocation ----------------------------------------------------------------------------------


@pytest.fixture
def small_allocations(monkeypatch: Patch) -> None:
    """An allocator such as OpenCL's, which gives one buffer a part of the memory."""
    say(monkeypatch, max_allocation_bytes=LARGEST)
    real = HostDevice.memalloc

    def memalloc(self: HostDevice, size: int, alignment: int = 64) -> int:
        if size > LARGEST:
            raise OutOfMemory(f"memalloc: {size} bytes")
        return real(self, size, alignment)

    monkeypatch.setattr(HostDevice, "memalloc", memalloc)


@pytest.mark.usefixtures("small_allocations")
@pytest.mark.parametrize(
    "name",
    [
        "memory/exhaustion", "memory/recovery", "memory/free-returns-memory", "memory/churn", "memory/too-much-twice",
        "device/reset-frees", "device/property-memory_bytes", "launches/leak-device", "launches/leak-arrays",
    ],
)  # fmt: skip
def test_no_allocation_is_larger_than_the_device_says(name: str) -> None:
    passes(name)


def test_more_than_the_memory_is_no_size_of_an_allocation(monkeypatch: Patch) -> None:
    say(monkeypatch, max_allocation_bytes=1 << 60)
    record = tried(checks_of("runtime")["runtime/device/property-memory_bytes"])
    assert record.status is Status.FAIL


# --- scratch ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_chip", "in_memory", "status"),
    [(0, 4096, Status.PASS), (4096, 0, Status.PASS), (0, 0, Status.FAIL), (4096, -1, Status.FAIL)],
)
def test_scratch_is_on_chip_or_in_memory(
    monkeypatch: Patch, on_chip: int, in_memory: int, status: Status
) -> None:
    say(monkeypatch, max_scratch_bytes=on_chip, max_dram_scratch_bytes=in_memory)
    assert tried(checks_of("runtime")["runtime/device/property-max_scratch_bytes"]).status is status


# --- modules of source text ------------------------------------------------------------------------------------


@pytest.fixture
def compiling(monkeypatch: Patch) -> Iterator[None]:
    """A device whose modules are C++, which it compiles as it loads them."""
    from triton_porting_kit.compiler.cpp.build import build

    command = (
        CPP_COMMAND[0],
        "-O0",
        "-c",
        *(word for word in CPP_COMMAND[1:] if word not in ("-O2", "-shared")),
    )
    real = HostDevice.load_module

    def load_module(self: HostDevice, binary: bytes, name: str) -> int:
        try:
            return real(self, build(binary.decode(errors="replace"), command, timeout=60), name)
        except CompilationError as error:
            raise InvalidModule(f"load_module: {error}") from error

    def pipeline(self: CPUBackend, options: object) -> Pipeline:
        return cpp_pipeline(CpuTarget.portable()).until("cpp")

    say(monkeypatch, modules_are_source=True)
    monkeypatch.setattr(HostDevice, "load_module", load_module)
    monkeypatch.setattr(CPUBackend, "pipeline", pipeline)
    monkeypatch.setattr(CPUBackend, "version", lambda self: "source")
    make_kernel.cache_clear()
    yield
    make_kernel.cache_clear()


REFUSED = ("empty", "one-byte", "zeros", "ones", "text", "head", "half", "no-head")


@pytest.mark.usefixtures("compiling")
@pytest.mark.parametrize(
    "name", [*(f"{kind}-refused" for kind in REFUSED), "many", "missing-function-refused"]
)
def test_modules_may_be_source(name: str) -> None:
    passes(f"modules/{name}")


@pytest.mark.usefixtures("compiling")
@pytest.mark.parametrize("kind", REFUSED)
def test_source_that_is_not_looked_at_is_seen(monkeypatch: Patch, kind: str) -> None:
    """A device that loads its last good program for whatever it is given."""
    good: list[bytes] = []
    compiling = HostDevice.load_module

    def load_module(self: HostDevice, binary: bytes, name: str) -> int:
        try:
            module = compiling(self, binary, name)
        except InvalidModule:
            if not good:
                from triton_porting_kit.conformance.runtime.modules import EMPTY

                good.append(bytes(make_kernel(EMPTY).warmup(grid=(1,)).kernel))
            return compiling(self, good[0], name)
        return module

    monkeypatch.setattr(HostDevice, "load_module", load_module)
    record = tried(checks_of("runtime")[f"runtime/modules/{kind}-refused"])
    assert record.status is Status.FAIL
    assert "load_module or get_function raises InvalidModule" in record.message
