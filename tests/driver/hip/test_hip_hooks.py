"""The hooks of a HIP device, over the stand-in: what reaches HIP, in what order, and what never does."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from hip_calls import Hip
from hip_kernels import CodeObjects
from hip_sessions import Session
from standin_library import Standin

from triton_porting_kit.driver.hip import HipDevice, open_devices
from triton_porting_kit.errors import (
    DeviceError,
    InvalidArgument,
    InvalidModule,
    InvalidPointer,
    LaunchError,
    OutOfMemory,
)

ADD_BLOCK = bytes(48)


@contextmanager
def waits(standin: Standin, call: Callable[[], object], stream: int = 0) -> Iterator[None]:
    """`call` does not return while the work on `stream` is held, and does afterwards."""
    done = threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            failures.append(error)
        done.set()

    thread = threading.Thread(target=run)
    with standin.held(stream):
        yield
        thread.start()
        assert not done.wait(0.1)
    thread.join(60)
    assert done.is_set()
    assert not failures


def test_every_hook_does_its_work(standin: Standin, device: HipDevice, code_objects: CodeObjects) -> None:
    Session(device, code_objects.add()).run()
    kinds = [operation.kind for operation in standin.operations()]
    assert kinds[:6] == ["event", "copy to device", "event", "fill", "copy on device", "event"]
    assert kinds.count("launch") == 1


def test_what_a_hook_cannot_take_never_reaches_hip(
    standin: Standin, device: HipDevice, code_objects: CodeObjects
) -> None:
    """HIP may crash on what it does not know: the device refuses it first."""
    place, freed = device.memalloc(64), device.memalloc(64)
    device.memfree(freed)
    stream, event = device.create_stream(), device.create_event()
    device.destroy_stream(stream)
    device.destroy_event(event)
    module = device.load_module(code_objects.add(), "add")
    function = device.get_function(module, "add")
    device.unload_module(module)
    host = np.zeros(64, np.uint8)
    for error, call in [
        (InvalidPointer, lambda: device.memfree(freed)),
        (InvalidPointer, lambda: device.memfree(place + 8)),
        (InvalidPointer, lambda: device.memcpy_htod(freed, host)),
        (InvalidPointer, lambda: device.memcpy_htod(place + 1, host)),
        (InvalidPointer, lambda: device.memcpy_htod(host.ctypes.data, host)),
        (InvalidPointer, lambda: device.memcpy_dtoh(host, place - 1)),
        (InvalidPointer, lambda: device.memcpy_dtod(place, freed, 1)),
        (InvalidPointer, lambda: device.memset(place, 0, 65)),
        (InvalidArgument, lambda: device.memset(place, 256, 1)),
        (InvalidArgument, lambda: device.synchronize(stream)),
        (InvalidArgument, lambda: device.destroy_stream(stream)),
        (InvalidArgument, lambda: device.destroy_stream(0)),
        (InvalidArgument, lambda: device.memset(place, 0, 1, stream)),
        (InvalidArgument, lambda: device.record_event(event)),
        (InvalidArgument, lambda: device.wait_event(0, event)),
        (InvalidArgument, lambda: device.synchronize_event(event)),
        (InvalidArgument, lambda: device.destroy_event(event)),
        (InvalidModule, lambda: device.unload_module(module)),
        (InvalidModule, lambda: device.get_function(module, "add")),
        (LaunchError, lambda: device.launch(function, (1,), 0, ADD_BLOCK)),
    ]:  # fmt: skip
        with pytest.raises(error, match="HIP device 0: "):
            call()
    device.memfree(place)
    assert not standin.undefined()
    assert not standin.launches()


def test_memory_has_the_alignment_that_is_asked_for(device: HipDevice) -> None:
    """More than HIP's own, too."""
    addresses = [device.memalloc(10, 1 << k) for k in range(17)]
    assert not any(address % (1 << k) for k, address in enumerate(addresses))
    for address in addresses:
        device.memfree(address)


def test_memory_runs_out(standin: Standin) -> None:
    standin.configure("gfx942", memory_bytes=1 << 20)
    device = HipDevice(0)
    assert device.properties().memory_bytes == 1 << 20
    place = device.memalloc(900 << 10)
    for size in (200 << 10, 1 << 62):
        with pytest.raises(OutOfMemory, match=str(size)):
            device.memalloc(size)
    device.memfree(place)
    device.memfree(device.memalloc(900 << 10))


@pytest.mark.parametrize(
    ("arch", "warp", "lds"),
    [("gfx90a", 64, 65536), ("gfx950", 64, 163840), ("gfx1100", 32, 65536), ("gfx1250", 32, 327680)],
)
def test_devices_say_what_they_are(standin: Standin, arch: str, warp: int, lds: int) -> None:
    standin.configure(arch)
    properties = HipDevice(0).properties()
    assert (properties.arch, properties.warp_size, properties.max_scratch_bytes) == (arch, warp, lds)
    assert properties.core_count > 0
    assert not properties.host_visible_memory


# --- host buffers ------------------------------------------------------------------------------------


def test_a_source_lives_until_its_copy_has_run(standin: Standin, device: HipDevice) -> None:
    place = device.memalloc(1 << 20)
    expected = np.random.default_rng(1).bytes(1 << 20)
    with standin.held():
        source = bytearray(expected)
        device.memcpy_htod(place, source)
        del source
        gc.collect()
        churn = [bytes([k]) * (1 << 20) for k in range(8)]
    device.synchronize()
    assert standin.read(place, 1 << 20) == expected
    device.memfree(place)
    assert len(churn) == 8


def test_a_destination_lives_until_its_copy_has_run(standin: Standin, device: HipDevice) -> None:
    place = device.memalloc(1 << 20)
    with standin.held():
        device.memcpy_dtoh(np.zeros(1 << 20, np.uint8), place)
        gc.collect()
    device.synchronize()
    device.memfree(place)


def test_buffers_are_let_go_when_their_copies_have_run(standin: Standin, device: HipDevice) -> None:
    place = device.memalloc(64)
    array = bytearray(64)
    for _ in range(100):
        device.memcpy_htod(place, array)
    device.synchronize()
    array.append(1)  # refused while something looks at the bytes
    device.memfree(place)
    assert standin.live()["events"] <= 100


# --- order -------------------------------------------------------------------------------------------


def test_hooks_do_not_wait_for_the_stream(
    standin: Standin, device: HipDevice, code_objects: CodeObjects
) -> None:
    place, stream = device.memalloc(64), device.create_stream()
    module = device.load_module(code_objects.add(), "add")
    function, event = device.get_function(module, "add"), device.create_event()
    back = bytearray(64)
    with standin.held(stream):
        device.memset(place, 1, 64, stream)
        device.memcpy_htod(place, b"\2" * 8, stream)
        device.launch(function, (1,), stream, ADD_BLOCK)
        device.memcpy_dtod(place + 8, place, 8, stream)
        device.memcpy_dtoh(back, place, stream)
        device.record_event(event, stream)
        with pytest.raises(InvalidArgument, match="hipErrorNotReady"):
            device.elapsed_time(event, event)
        assert standin.live()["pending"] >= 6
    device.synchronize(stream)
    assert back == b"\2" * 16 + b"\1" * 48
    kinds = [entry.kind for entry in standin.operations() if entry.stream == stream and entry.kind != "event"]
    assert kinds == ["fill", "copy to device", "launch", "copy on device", "copy to host"]
    device.destroy_event(event)
    device.destroy_stream(stream)
    device.unload_module(module)
    device.memfree(place)


def test_the_default_stream_and_others_are_independent(standin: Standin, device: HipDevice) -> None:
    place, stream = device.memalloc(2), device.create_stream()
    with standin.held():
        device.memset(place, 1, 1)
        device.memset(place + 1, 2, 1, stream)
        device.synchronize(stream)
        assert standin.read(place + 1, 1) == b"\2"
    with standin.held(stream):
        device.memset(place + 1, 3, 1, stream)
        device.synchronize(0)
    device.destroy_stream(stream)
    device.memfree(place)


def test_freeing_waits(standin: Standin, device: HipDevice) -> None:
    place, stream = device.memalloc(64), device.create_stream()
    with waits(standin, lambda: device.memfree(place), stream):
        device.memset(place, 1, 64, stream)
    device.destroy_stream(stream)


def test_destroying_a_stream_waits(standin: Standin, device: HipDevice) -> None:
    place, stream = device.memalloc(64), device.create_stream()
    with waits(standin, lambda: device.destroy_stream(stream), stream):
        device.memset(place, 1, 64, stream)
    assert standin.read(place, 64) == b"\1" * 64
    device.memfree(place)


def test_unloading_waits(standin: Standin, device: HipDevice, code_objects: CodeObjects) -> None:
    stream, module = device.create_stream(), device.load_module(code_objects.add(), "add")
    with waits(standin, lambda: device.unload_module(module), stream):
        device.launch(device.get_function(module, "add"), (1,), stream, ADD_BLOCK)
    device.destroy_stream(stream)


def test_waiting_for_events_and_streams(standin: Standin, device: HipDevice) -> None:
    place, stream, event = device.memalloc(64), device.create_stream(), device.create_event()
    for wait in (
        lambda: device.synchronize(stream),
        lambda: device.synchronize(),
        lambda: device.synchronize_event(event),
    ):
        with waits(standin, wait, stream):
            device.memset(place, 1, 64, stream)
            device.record_event(event, stream)
    device.destroy_event(event)
    device.destroy_stream(stream)
    device.memfree(place)


def test_elapsed_time_is_what_the_work_took(
    standin: Standin, device: HipDevice, code_objects: CodeObjects
) -> None:
    module = device.load_module(code_objects.add(), "add")
    function = device.get_function(module, "add")
    start, end = device.create_event(), device.create_event()
    standin.durations(kernel_us=20_000)
    device.record_event(start)
    device.launch(function, (1,), 0, ADD_BLOCK)
    device.record_event(end)
    device.synchronize_event(end)
    first, launch, last = (entry for entry in standin.operations() if entry.kind in ("event", "launch"))
    took, around = (launch.finished - launch.started) / 1e6, (last.finished - first.started) / 1e6
    assert 20 <= took <= device.elapsed_time(start, end) <= around + 0.001
    for event in (start, end):
        device.destroy_event(event)
    device.unload_module(module)


# --- threads, devices --------------------------------------------------------------------------------


def test_threads_use_a_device_at_once(standin: Standin, device: HipDevice, code_objects: CodeObjects) -> None:
    code = code_objects.add()

    def work(_: int) -> None:
        session = Session(device, code)
        for _ in range(10):
            session.run()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_work_of_a_thread_keeps_its_order(standin: Standin, device: HipDevice) -> None:
    """Each thread's fills on its stream end with its last."""

    def work(index: int) -> tuple[int, int]:
        place, stream = device.memalloc(4096), device.create_stream()
        for value in range(50):
            device.memset(place, value, 4096, stream)
        device.memset(place, 100 + index, 4096, stream)
        device.destroy_stream(stream)
        return index, place

    with ThreadPoolExecutor(4) as pool:
        for index, place in pool.map(work, range(8)):
            assert standin.read(place, 4096) == bytes([100 + index]) * 4096
            device.memfree(place)


def test_the_interpreter_s_lock_is_free_while_a_hook_waits(standin: Standin, device: HipDevice) -> None:
    """With it, the hook would wait for ever: this thread could not let the work go on."""
    place = device.memalloc(8)
    with waits(standin, device.synchronize):
        device.memset(place, 1, 8)
    device.memfree(place)


def test_devices_are_told_apart(
    standin: Standin, open_device: Callable[..., HipDevice], code_objects: CodeObjects
) -> None:
    standin.configure("gfx942", "gfx1100", "gfx942")
    first, second, third = (open_device(index) for index in range(3))
    assert [device.properties().arch for device in (first, second, third)] == ["gfx942", "gfx1100", "gfx942"]
    assert len(open_devices()) == 3
    Session(third, code_objects.add()).run()
    assert {operation.device for operation in standin.operations()} == {2}
    place, stream, event = third.memalloc(8), third.create_stream(), third.create_event()
    for error, call in [
        (InvalidPointer, lambda: first.memset(place, 0, 8)),
        (InvalidPointer, lambda: first.memfree(place)),
        (InvalidArgument, lambda: first.synchronize(stream)),
        (InvalidArgument, lambda: first.record_event(event)),
        (InvalidModule, lambda: second.load_module(code_objects.add(), "add")),
        (InvalidModule, lambda: first.load_module(code_objects.add("gfx1100"), "add")),
    ]:
        with pytest.raises(error):
            call()
    third.destroy_event(event)
    third.destroy_stream(stream)
    third.memfree(place)
    assert not standin.undefined()


def test_the_thread_s_device_is_left_as_it_was(
    standin: Standin, open_device: Callable[..., HipDevice]
) -> None:
    """Others in the process, such as torch, have a current device, too."""
    standin.configure("gfx942", "gfx942")
    hip, device = Hip(standin), open_device(1)
    current = ctypes.c_int()
    device.memfree(device.memalloc(64))
    with pytest.raises(DeviceError):
        device.memfree(5)
    hip.GetDevice(ctypes.byref(current))
    assert current.value == 0
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: device.memfree(device.memalloc(64))).result()


def test_streams_memory_and_events_of_others_are_taken(standin: Standin, device: HipDevice) -> None:
    """As torch's are: HIP is asked whether it knows them."""
    hip = Hip(standin)
    place, stream = hip.result("Malloc", 64), hip.result("StreamCreateWithFlags", 0)
    event = hip.result("EventCreateWithFlags", 2)
    device.memset(place, 9, 64, stream)
    device.adopt_event(event)
    device.record_event(event, stream)
    device.wait_event(0, event)
    device.synchronize_event(event)
    assert standin.read(place, 64) == b"\x09" * 64
    device.destroy_event(event)
    with pytest.raises(InvalidArgument):
        device.destroy_stream(stream)
    hip.EventDestroy(event)
    hip.StreamDestroy(stream)
    hip.Free(place)


def test_a_reset_frees_everything_and_hip_forgets_it(
    standin: Standin, device: HipDevice, code_objects: CodeObjects
) -> None:
    session = Session(device, code_objects.add())
    steps = session.steps()
    for step in steps:
        if step == "launch":
            break
    assert standin.live()["modules"] == 1
    steps.close()
    standin.calls()
    device.reset()
    assert not any(standin.live().values())
    assert standin.calls()["hipDeviceReset"] == 1
    assert not standin.undefined()
    Session(device, code_objects.add()).run()


def test_reset_drops_pending_work(standin: Standin, device: HipDevice) -> None:
    place, stream = device.memalloc(1 << 16), device.create_stream()
    standin.durations(copy_us=5000)
    for _ in range(5):
        device.memset(place, 1, 1 << 16, stream)
        device.memcpy_htod(place, bytes(1 << 16), stream)
    device.reset()
    assert not any(standin.live().values())
    for call in (lambda: device.memfree(place), lambda: device.destroy_stream(stream)):
        with pytest.raises(DeviceError):
            call()
    assert not standin.undefined()
