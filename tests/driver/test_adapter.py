"""The adapter between Triton and a device."""

from __future__ import annotations

import dataclasses
import inspect
import os
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from drivers import fresh_driver
from objects import kernel
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from triton_porting_kit.driver import Device, DeviceArray, active
from triton_porting_kit.driver.adapter import TritonDriver
from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.errors import InvalidArgument, InvalidModule, SignatureError


class Driver(TritonDriver):
    backend_name: ClassVar[str] = "test"
    benchmark_cache_bytes: ClassVar[int] = 1 << 16
    launcher_cls = None

    def make_device(self) -> Device:
        return HostDevice()

    def make_target(self, device: Device) -> GPUTarget:
        return GPUTarget("test", device.properties().arch, device.properties().warp_size)


class Pair(Driver):
    def make_devices(self) -> list[Device]:
        return [HostDevice(), HostDevice()]


@pytest.fixture
def driver() -> Driver:
    return fresh_driver(Driver)


@pytest.fixture
def activated(driver: Driver) -> Any:
    from triton.runtime.driver import driver as config

    before = config._active
    config.set_active(driver)
    yield driver
    config._active = before


def test_a_class_has_one_object_and_opens_its_device_once(
    driver: Driver, activated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inductor creates a driver each time it switches between backends, while arrays stay in use."""
    from triton.runtime.driver import driver as config

    array = DeviceArray.zeros(3, "int32", driver.device)
    config.set_active(fresh_driver(Pair))
    config.set_active(type(driver)())
    assert config.active is driver
    assert config.active.device is array.device
    with driver.stream(driver.device.create_stream()) as stream:
        assert type(driver)().get_current_stream() == stream
    found = []
    threads = [threading.Thread(target=lambda: found.append(type(driver)())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(map(id, found)) == {id(driver)}


def test_it_is_the_base_class_of_a_driver() -> None:
    assert inspect.isabstract(TritonDriver)
    assert not inspect.isabstract(Driver)
    assert issubclass(Driver, DriverBase)


def test_target_and_device(driver: Driver) -> None:
    assert driver.get_current_target() == GPUTarget("test", driver.device.properties().arch, 1)
    assert driver.get_current_target() is driver.get_current_target()
    assert driver.get_current_device() == 0
    with pytest.raises(InvalidArgument, match="no device 1 of 1"):
        driver.set_current_device(1)


def test_devices_and_streams_are_current_per_thread() -> None:
    driver = fresh_driver(Pair)
    driver.set_current_device(1)
    driver.set_current_stream(7)
    driver.set_current_stream(5, device=0)
    assert (driver.get_current_stream(), driver.get_current_stream(1), driver.get_current_stream(0)) == (
        7,
        7,
        5,
    )
    assert driver.device is driver.devices[1]
    seen = []
    thread = threading.Thread(
        target=lambda: seen.append((driver.get_current_device(), driver.get_current_stream(0)))
    )
    thread.start()
    thread.join()
    assert seen == [(0, 0)]
    with driver.stream(9) as stream:
        assert stream == driver.get_current_stream() == 9
        driver.set_current_device(0)
    driver.set_current_device(1)
    assert driver.get_current_stream() == 7
    with pytest.raises(RuntimeError), driver.stream(3):
        raise RuntimeError
    assert driver.get_current_stream() == 7


def test_binaries() -> None:
    driver = fresh_driver(Pair)
    handles = [driver.utils.load_binary("count", kernel("count"), 0, device) for device in (0, 1)]
    assert handles[0][0] != handles[1][0]
    for module, function, registers, spills, threads in handles:
        assert function > 0
        assert (registers, spills) == (0, 0)
        assert threads >= 64 * 128
        driver.utils.unload_module(module)
        with pytest.raises(InvalidArgument):
            driver.utils.unload_module(module)
    with pytest.raises(InvalidModule):
        driver.utils.load_binary("count", b"garbage", 0, 0)
    with pytest.raises(InvalidArgument):
        driver.utils.load_binary("count", kernel("count"), 0, 2)


def test_a_kernel_is_unloaded_by_the_driver_that_is_active_then() -> None:
    """Triton unloads by the active driver, which may be another one than the kernel's."""
    one, other = fresh_driver(Pair), fresh_driver(Driver)
    module = one.utils.load_binary("count", kernel("count"), 0, 0)[0]
    kept = other.utils.load_binary("count", kernel("count"), 0, 0)[0]
    other.utils.unload_module(module)
    other.utils.unload_module(kept)
    for driver in (one, other):
        with pytest.raises(InvalidArgument):
            driver.utils.unload_module(module)


def test_properties(driver: Driver) -> None:
    properties = driver.utils.get_device_properties(0)
    assert properties["max_shared_mem"] > 0
    assert properties["multiprocessor_count"] == len(os.sched_getaffinity(0))
    for name in ("max_num_regs", "warpSize", "sm_clock_rate", "mem_clock_rate", "mem_bus_width"):
        assert properties[name] >= 0
    with pytest.raises(InvalidArgument):
        driver.utils.get_device_properties(3)


@pytest.mark.parametrize(
    ("on_chip", "in_memory", "limit"), [(4096, 0, 4096), (0, 1 << 20, 1 << 20), (4096, 9, 9)]
)
def test_triton_is_told_of_scratch_wherever_it_lies(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, on_chip: int, in_memory: int, limit: int
) -> None:
    say(monkeypatch, max_scratch_bytes=on_chip, max_dram_scratch_bytes=in_memory)
    assert driver.utils.get_device_properties(0)["max_shared_mem"] == limit


def test_what_is_overwritten_between_runs_is_an_allocation_that_there_can_be(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert driver.get_empty_cache_for_benchmark().nbytes == Driver.benchmark_cache_bytes
    say(monkeypatch, max_allocation_bytes=4096)
    assert driver.get_empty_cache_for_benchmark().nbytes == 4096


def say(patch: pytest.MonkeyPatch, **more: Any) -> None:
    """Let the device say something else of itself."""
    real = HostDevice.properties
    patch.setattr(HostDevice, "properties", lambda self: dataclasses.replace(real(self), **more))


@pytest.mark.parametrize(
    ("ty", "expected"),
    [
        ("*fp32", "void*"),
        ("*kbf16", "void*"),
        ("i1", "int8_t"),
        ("u1", "uint8_t"),
        ("i64", "int64_t"),
        ("u16", "uint16_t"),
        ("fp16", "uint16_t"),
        ("bf16", "uint16_t"),
        ("fp32", "float"),
        ("fp64", "double"),
    ],
)
def test_cpp_types(driver: Driver, ty: str, expected: str) -> None:
    assert driver.map_python_to_cpp_type(ty) == expected


def test_unknown_cpp_type(driver: Driver) -> None:
    with pytest.raises(SignatureError, match="fp3"):
        driver.map_python_to_cpp_type("fp3")


def test_torch_device(driver: Driver) -> None:
    torch = pytest.importorskip("torch")
    assert driver.get_active_torch_device() == torch.device("cpu")


def test_profile_scratch(driver: Driver) -> None:
    scratch = driver.allocate_default_profile_scratch(1000, 256, None)
    assert scratch.data_ptr() % 256 == 0
    assert not scratch.numpy().any()


def test_device_interface(driver: Driver) -> None:
    interface = driver.get_device_interface()
    assert (interface.current_device(), interface.device_count(), interface.is_available()) == (0, 1, True)
    stream = interface.Stream()
    start, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
    with interface.stream(stream):
        assert interface.current_stream().handle == stream.handle
        start.record()
        end.record()
        end.wait(interface.default_stream())
    end.synchronize()
    stream.synchronize()
    interface.synchronize()
    assert start.elapsed_time(end) >= 0
    external = interface.ExternalStream(stream.handle)
    del external
    driver.device.synchronize(stream.handle)


@pytest.mark.parametrize("through", ["triton", "own"])
def test_benchmarks(activated: Driver, through: str) -> None:
    import triton.testing

    bench = triton.testing.do_bench if through == "triton" else activated.get_benchmarker()
    array = DeviceArray.zeros(1 << 14, "int8", activated.device)
    calls: list[int] = []

    def work() -> None:
        calls.append(1)
        array.fill_(1)

    assert 0 < bench(work, warmup=1, rep=3) < 10_000
    low, high = bench(work, warmup=1, rep=3, quantiles=(0.2, 0.8))
    assert low <= high
    assert len(bench(work, warmup=1, rep=3, return_mode="all")) >= 1
    for mode in ("min", "max", "median"):
        assert bench(work, warmup=1, rep=1, return_mode=mode) > 0
    gradient = SimpleNamespace(grad=1)
    bench(work, warmup=1, rep=1, grad_to_none=[gradient])
    assert gradient.grad is None
    assert len(calls) > 10


def test_modelled_time_is_measured_by_events(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call to compile the kernel, and one between two events of the current stream."""
    monkeypatch.setattr(Driver, "models_time", True)
    device = driver.device
    stream, steps = device.create_stream(), []
    record = device.record_event
    monkeypatch.setattr(device, "record_event", lambda event, on: (steps.append(on), record(event, on)))
    monkeypatch.setattr(device, "elapsed_time", lambda start, end: 0.125)
    with driver.stream(stream):
        bench = driver.get_benchmarker()
        assert bench(lambda: steps.append("call"), rep=10_000) == 0.125
        assert bench(lambda: None, quantiles=(0.5, 0.2)) == [0.125, 0.125]
    assert steps[:4] == ["call", stream, "call", stream]


def test_benchmark_mode(activated: Driver) -> None:
    with pytest.raises(ValueError, match="return_mode"):
        activated.get_benchmarker()(lambda: None, return_mode="average")


# --- which driver is active ------------------------------------------------------------------------------


class Fallback(Driver):
    backend_name: ClassVar[str] = "cpu"
    fallback: ClassVar[bool] = True


class Absent(Driver):
    backend_name: ClassVar[str] = "absent"

    @classmethod
    def is_available(cls) -> bool:
        return False


def _foreign(answer: Any) -> Any:
    def is_active() -> bool:
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    return SimpleNamespace(is_active=is_active)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.delenv(active.SELECTION_VARIABLE, raising=False)
    drivers: dict[str, Any] = {"cpu": Fallback, "test": Driver, "nvidia": _foreign(False)}
    monkeypatch.setattr(active, "registered_drivers", lambda: drivers)
    return drivers


def test_a_device_comes_before_a_fallback(registry: dict[str, Any]) -> None:
    assert Driver.is_active()
    assert not Fallback.is_active()
    del registry["test"]
    assert Fallback.is_active()
    registry["absent"] = Absent
    assert Fallback.is_active()
    assert not Absent.is_active()


def test_all_step_back_for_a_foreign_driver(registry: dict[str, Any]) -> None:
    registry["nvidia"] = _foreign(True)
    assert not Driver.is_active()
    assert not Fallback.is_active()
    registry["nvidia"] = _foreign(RuntimeError("broken"))
    assert Driver.is_active()


def test_one_of_two_devices_stays(registry: dict[str, Any]) -> None:
    class Another(Driver):
        backend_name: ClassVar[str] = "another"

    registry["another"] = Another
    assert Another.is_active()
    assert not Driver.is_active()
    assert not Fallback.is_active()


def test_one_of_two_fallbacks_stays(registry: dict[str, Any]) -> None:
    class Second(Fallback):
        backend_name: ClassVar[str] = "second"

    del registry["test"]
    registry["second"] = Second
    assert Fallback.is_active()
    assert not Second.is_active()


def test_the_user_decides(registry: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    registry["nvidia"] = _foreign(True)
    monkeypatch.setenv(active.SELECTION_VARIABLE, "cpu")
    assert Fallback.is_active()
    assert not Driver.is_active()
    monkeypatch.setenv(active.SELECTION_VARIABLE, "absent")
    assert not Absent.is_active()


def test_while_triton_is_still_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(active.SELECTION_VARIABLE, raising=False)
    monkeypatch.delattr("triton.backends.backends")
    assert active.registered_drivers() == {}
    assert Fallback.is_active()


def test_neither_arrays_nor_benchmarks_import_torch() -> None:
    code = """
import sys
sys.modules["torch"] = None
sys.path.insert(0, {here!r})
from test_adapter import Driver
from triton.runtime.driver import driver as config
import triton.testing
driver = Driver()
config.set_active(driver)
array = driver.get_empty_cache_for_benchmark()
triton.testing.do_bench(lambda: array.fill_(1), warmup=1, rep=1)
driver.get_benchmarker()(lambda: array.fill_(1), warmup=1, rep=1)
"""
    result = subprocess.run(
        [sys.executable, "-c", code.format(here=os.path.dirname(__file__))],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
