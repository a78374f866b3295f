"""The AMD launcher: the block behind the kernel's own arguments, scratch buffers, and which launcher is taken."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from drivers import fresh_driver
from standin_library import Standin
from triton.runtime import _allocation
from triton.runtime.driver import driver as config

from triton_porting_kit.backends.amd import launcher as amd_launcher
from triton_porting_kit.backends.amd.driver import AMDDriver
from triton_porting_kit.backends.amd.launcher import AMDLauncher
from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.driver.hip import HipDevice
from triton_porting_kit.driver.hip.code import check_target
from triton_porting_kit.errors import InvalidModule, LaunchError, OptionError
from triton_porting_kit.launcher import GeneratedLauncher, PackedLauncher


@pytest.fixture(autouse=True)
def no_allocator() -> Iterator[None]:
    """What other tests have set with ``triton.set_allocator`` would be asked for scratch first."""
    token = _allocation._allocator.set(_allocation.NullAllocator())
    yield
    _allocation._allocator.reset(token)


@triton.jit
def add_one(target, source, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    tl.store(target + offsets, tl.load(source + offsets, inside) + 1, inside)


@triton.jit
def transposed(target, BLOCK: tl.constexpr):
    row = tl.arange(0, BLOCK)
    tile = tl.load(target + row[:, None] * BLOCK + row[None, :])
    tl.store(target + row[:, None] * BLOCK + row[None, :], tl.dot(tile, tl.trans(tile)))


@pytest.fixture
def driver(standin: Standin, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> Iterator[AMDDriver]:
    """The active driver, with two devices; kernels are compiled once for all tests."""
    monkeypatch.setenv("TPK_HIP_LIBRARY", str(standin.path))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "amd-launcher"))
    standin.configure("gfx942", "gfx942")
    made, before = fresh_driver(AMDDriver), config._active
    config.set_active(made)
    yield made
    for kernel in (add_one, transposed):
        kernel.device_caches.clear()
    gc.collect()  # Triton unloads kernels from the driver that is active then
    config._active = before
    for device in made.devices:
        assert isinstance(device, HipDevice)
        device.close()


class Launched:
    """A kernel that was launched once, and how to launch it again."""

    def __init__(self, driver: AMDDriver) -> None:
        self.array = DeviceArray.from_numpy(np.zeros(100, np.float32), driver.device)
        self.kernel = add_one[(2,)](self.array, self.array, 100, BLOCK=64)
        self.arguments = (self.array, self.array, 100)

    def again(self, launcher: Any, grid: tuple[int, int, int] = (2, 1, 1), stream: int = 0) -> None:
        launcher(*grid, stream, self.kernel.function, None, None, None, None, *self.arguments)

    def metadata(self, **changes: Any) -> Any:
        return SimpleNamespace(**{**self.kernel.metadata._asdict(), **changes})


@pytest.mark.parametrize("name", ["packed", "generated"])
def test_both_launchers_give_the_device_the_same(
    name: str, driver: AMDDriver, standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(amd_launcher.SELECTION_VARIABLE, name)
    launched = Launched(driver)
    driver.device.synchronize()
    assert isinstance(launched.kernel.run, AMDLauncher)
    kinds = {"packed": PackedLauncher, "generated": GeneratedLauncher}
    assert type(launched.kernel.run._launcher) is kinds[name]
    (launch,) = standin.launches()
    assert (launch.kernel, launch.grid, launch.block) == ("add_one", (2, 1, 1), (256, 1, 1))
    assert (launch.device, launch.stream, launch.shared_bytes) == (0, 0, launched.kernel.metadata.shared)
    address = launched.array.data_ptr()
    assert [argument.unsigned for argument in launch.explicit] == [address, address, 100, 0, 0]
    assert launch.passed_bytes == launched.kernel.run.layout.size


def test_another_launcher_is_refused(driver: AMDDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(amd_launcher.SELECTION_VARIABLE, "quick")
    with pytest.raises(OptionError, match=r"TPK_AMD_LAUNCHER is 'quick'(?s:.*)packed, generated"):
        Launched(driver)


def test_registers_are_known_to_triton(driver: AMDDriver) -> None:
    kernel = Launched(driver).kernel
    assert kernel.n_regs > 0
    assert kernel.n_spills == 0
    assert kernel.n_max_threads == 1024


# --- scratch -----------------------------------------------------------------------------------------------


def test_launches_of_a_stream_share_their_scratch(driver: AMDDriver, standin: Standin) -> None:
    launched, device = Launched(driver), driver.device
    metadata = launched.metadata(global_scratch_size=96, global_scratch_align=512)
    launcher = AMDLauncher(launched.kernel.src, metadata, device)
    stream = device.create_stream()
    for grid in ((2, 3, 1), (1, 1, 1)):
        launched.again(launcher, grid)
    launched.again(launcher, (2, 1, 1), stream)
    launched.again(launcher, (7, 3, 1))
    device.synchronize()
    # Streams do not wait for each other: launches are known by their grids.
    scratch = {launch.grid: launch.explicit[-2] for launch in standin.launches(1)}
    grids = ((2, 3, 1), (1, 1, 1), (2, 1, 1), (7, 3, 1))
    first, second, other, larger = (scratch[grid].unsigned for grid in grids)
    assert first == second != other
    assert all(scratch[grid].unsigned % 512 == 0 and scratch[grid].live for grid in grids[1:])
    assert larger != first
    assert all(launch.explicit[-1].unsigned == 0 for launch in standin.launches(1))
    device.destroy_stream(stream)
    before = standin.live()["allocations"]
    del launcher
    assert standin.live()["allocations"] == before - 2


def test_scratch_is_made_anew_after_a_reset(driver: AMDDriver) -> None:
    launched, device = Launched(driver), driver.device
    launcher = AMDLauncher(launched.kernel.src, launched.metadata(global_scratch_size=64), device)
    launched.again(launcher)
    device.reset()
    launched = Launched(driver)
    launched.again(launcher)
    device.synchronize()


def test_the_user_s_allocators_go_first(driver: AMDDriver, standin: Standin) -> None:
    launched, device, asked = Launched(driver), driver.device, []
    metadata = launched.metadata(
        global_scratch_size=32, global_scratch_align=128, profile_scratch_size=8, profile_scratch_align=16
    )
    launcher = AMDLauncher(launched.kernel.src, metadata, device)
    buffer = DeviceArray.empty(1 << 10, "uint8", device)

    def allocate(size: int, alignment: int, stream: int | None) -> DeviceArray:
        asked.append((size, alignment, stream))
        return buffer

    from triton.runtime import _allocation

    before = _allocation._allocator.get()
    triton.set_allocator(allocate)
    _allocation.set_profile_allocator(allocate)
    try:
        launched.again(launcher, (5, 1, 2))
    finally:
        _allocation._allocator.set(before)
        _allocation.set_profile_allocator(None)
    device.synchronize()
    assert asked == [(320, 128, 0), (80, 16, 0)]
    assert [argument.unsigned for argument in standin.launches(1)[0].explicit[-2:]] == [buffer.data_ptr()] * 2


def test_profile_scratch_is_zero_and_given_back(driver: AMDDriver, standin: Standin) -> None:
    launched, device = Launched(driver), driver.device
    launcher = AMDLauncher(launched.kernel.src, launched.metadata(profile_scratch_size=40), device)
    live = standin.live()["allocations"]
    launched.again(launcher)
    device.synchronize()
    argument = standin.launches(1)[0].explicit[-1]
    assert argument.live
    assert standin.live()["allocations"] == live


# --- what is refused ---------------------------------------------------------------------------------------


def test_a_cooperative_kernel_needs_a_device_for_it(driver: AMDDriver, standin: Standin) -> None:
    launched, device = Launched(driver), driver.device
    metadata = launched.metadata(launch_cooperative_grid=True)
    able = SimpleNamespace(
        properties=lambda: dataclasses.replace(device.properties(), extra={"cooperativeLaunch": True}),
        launch_entry=device.launch_entry,
    )
    launched.again(AMDLauncher(launched.kernel.src, metadata, able))
    device.synchronize()
    assert standin.launches()[-1].cooperative
    assert [argument.unsigned for argument in standin.launches()[-1].explicit] == [
        argument.unsigned for argument in standin.launches()[0].explicit
    ]
    unable = SimpleNamespace(
        properties=lambda: dataclasses.replace(device.properties(), extra={"cooperativeLaunch": False})
    )
    with pytest.raises(LaunchError, match="no cooperative launches"):
        AMDLauncher(launched.kernel.src, metadata, unable)


def test_code_for_another_architecture_is_refused(driver: AMDDriver, standin: Standin) -> None:
    standin.configure("gfx942", "gfx90a")
    binary = Launched(driver).kernel.asm["hsaco"]
    with pytest.raises(InvalidModule, match="made for gfx942, the device is gfx90a: compile it for gfx90a"):
        driver.devices[1].load_module(binary, "add_one")
    with pytest.raises(InvalidModule, match="no kernel 'add_two', it has add_one"):
        driver.devices[0].load_module(binary, "add_two")
    assert standin.live()["modules"] == 1


def test_features_have_to_fit() -> None:
    check_target("gfx942", "gfx942:sramecc+:xnack-")
    check_target("gfx942:xnack-", "gfx942:sramecc+:xnack-")
    check_target("gfx9-4-generic", "gfx942:sramecc+:xnack-")
    with pytest.raises(
        InvalidModule, match=r"made for gfx942:xnack\+, the device is gfx942:sramecc\+:xnack-"
    ):
        check_target("gfx942:xnack+", "gfx942:sramecc+:xnack-")


def with_less(driver: AMDDriver, **limits: int) -> None:
    """Let the device have less of something than its architecture."""
    driver.device.__dict__["_properties"] = dataclasses.replace(driver.device.properties(), **limits)


@pytest.fixture
def limits_unknown() -> Iterator[None]:
    """Triton asks for a device's limit once in a process."""
    from triton.compiler.compiler import max_shared_mem

    max_shared_mem.cache_clear()
    yield
    max_shared_mem.cache_clear()


@pytest.mark.usefixtures("limits_unknown")
def test_more_local_memory_than_the_device_has(driver: AMDDriver, standin: Standin) -> None:
    tile = DeviceArray.from_numpy(np.zeros((32, 32), np.float32), driver.device)
    kernel = transposed.warmup(tile, BLOCK=32, grid=(1,))
    binary, shared = kernel.asm["hsaco"], kernel.metadata.shared
    assert shared >= 2048
    with_less(driver, max_scratch_bytes=1024)
    with pytest.raises(triton.runtime.errors.OutOfResources) as caught:
        transposed[(1,)](tile, BLOCK=32)
    assert (caught.value.required, caught.value.limit) == (shared, 1024)
    with pytest.raises(InvalidModule, match=rf"'transposed' takes {shared} bytes of local memory.*has 1024"):
        driver.device.load_module(binary, "transposed")
    assert standin.live()["modules"] == 0


def test_more_threads_than_the_device_has(driver: AMDDriver) -> None:
    binary = Launched(driver).kernel.asm["hsaco"]
    with_less(driver, max_threads_per_program=128)
    with pytest.raises(InvalidModule, match="programs of 256 threads, the device's have 128"):
        driver.device.load_module(binary, "add_one")
