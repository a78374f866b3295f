"""Faults that are planted in the device's hooks and in the launch path are caught by the checks that are about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from levels_helpers import failing
from triton.runtime import driver

from triton_porting_kit.backends.cpu.driver import CPUDriver
from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.errors import DeviceError, InvalidModule, InvalidPointer
from triton_porting_kit.toolchain import compat

Patch = pytest.MonkeyPatch


@pytest.fixture
def fresh_launchers() -> Iterator[None]:
    """Kernels get their launchers from the driver anew, before a test and after it."""
    compat.forget_loaded_kernels()
    yield
    driver.active.device.synchronize()
    compat.forget_loaded_kernels()


# --- faults of the device ----------------------------------------------------------------------------------


def _hook(name: str) -> Callable[..., Any]:
    return getattr(HostDevice, name)  # type: ignore[no-any-return]


def short_upload(patch: Patch) -> None:
    right = _hook("memcpy_htod")
    cut = lambda self, dst, src, stream=0: right(self, dst, bytes(memoryview(src).cast("B"))[:-1], stream)  # noqa: E731
    patch.setattr(HostDevice, "memcpy_htod", cut)


def short_copy(patch: Patch) -> None:
    right = _hook("memcpy_dtod")
    patch.setattr(
        HostDevice,
        "memcpy_dtod",
        lambda self, dst, src, size, stream=0: right(self, dst, src, size & ~3, stream),
    )


def long_fill(patch: Patch) -> None:
    right = _hook("memset")
    patch.setattr(
        HostDevice, "memset", lambda self, dst, v, n, stream=0: right(self, dst, v, (n + 7) & ~7, stream)
    )


def free_that_does_nothing(patch: Patch) -> None:
    patch.setattr(HostDevice, "memfree", lambda self, addr: None)


def one_alignment(patch: Patch) -> None:
    right = _hook("memalloc")
    patch.setattr(HostDevice, "memalloc", lambda self, size, alignment=64: right(self, size, 64))


def blocks_that_overlap(patch: Patch) -> None:
    right = _hook("memalloc")
    blocks: dict[str, int] = {}

    def memalloc(self: Any, size: int, alignment: int = 64) -> Any:
        if not 0 < size < 4096:
            return right(self, size, alignment)
        if "next" not in blocks:
            blocks["next"] = right(self, 1 << 22, 4096)
        blocks["next"] += max(size // 2 // alignment, 1) * alignment
        return blocks["next"]

    patch.setattr(HostDevice, "memalloc", memalloc)
    patch.setattr(HostDevice, "memfree", lambda self, addr: None)


def waits_for_no_event(patch: Patch) -> None:
    patch.setattr(HostDevice, "wait_event", lambda self, stream, event: None)


def waits_for_nothing(patch: Patch) -> None:
    patch.setattr(HostDevice, "synchronize", lambda self, stream=None: None)


def one_stream_for_all(patch: Patch) -> None:
    right = _hook("memset")
    patch.setattr(
        HostDevice, "memset", lambda self, dst, value, size, stream=0: right(self, dst, value, size, 0)
    )


def swallows_failures(patch: Patch) -> None:
    right = _hook("synchronize")

    def synchronize(self: Any, stream: int | None = None) -> None:
        try:
            right(self, stream)
        except DeviceError:
            return

    patch.setattr(HostDevice, "synchronize", synchronize)


def time_stands_still(patch: Patch) -> None:
    patch.setattr(HostDevice, "elapsed_time", lambda self, start, end: 0.0)


def loads_anything(patch: Patch) -> None:
    right = _hook("load_module")
    good: dict[str, bytes] = {}

    def load_module(self: Any, binary: bytes, name: str) -> Any:
        try:
            handle = right(self, binary, name)
        except InvalidModule:
            return right(self, good[name], name)
        good[name] = binary
        return handle

    patch.setattr(HostDevice, "load_module", load_module)


def reset_that_keeps_memory(patch: Patch) -> None:
    patch.setattr(HostDevice, "reset", lambda self: setattr(self, "generation", self.generation + 1))


def any_pointer_will_do(patch: Patch) -> None:
    right = _hook("memset")

    def memset(self: Any, dst: int, value: int, size: int, stream: int = 0) -> None:
        try:
            right(self, dst, value, size, stream)
        except InvalidPointer:
            return

    patch.setattr(HostDevice, "memset", memset)


DEVICE = [
    (short_upload, ["copies/htod-1-at-0", "copies/htod-4097-at-7", "copies/htod-on-stream", "memory/size-3"]),
    (short_copy, ["copies/dtod-1-at-0", "copies/dtod-65-at-1", "copies/chain"]),
    (long_fill, ["copies/memset-1-at-0", "copies/memset-255-at-33", "copies/memset-value-1"]),
    (
        free_that_does_nothing,
        ["memory/double-free", "memory/free-null", "memory/free-interior-8", "memory/free-random"],
    ),
    (one_alignment, ["memory/alignment-128", "memory/alignment-4096", "memory/alignment-3-refused"]),
    (blocks_that_overlap, ["memory/disjoint", "memory/independent", "memory/free-keeps-others"]),
    (waits_for_no_event, ["events/wait", "events/wait-default", "events/wait-chain", "events/fan-in"]),
    (waits_for_nothing, ["streams/synchronize-stream", "streams/synchronize-device"]),
    (one_stream_for_all, ["streams/memset-after-kernel"]),
    (swallows_failures, ["device/asynchronous-failure", "device/usable-after-failure"]),
    (time_stands_still, ["events/elapsed-plausible", "events/elapsed-grows", "events/elapsed-early-refused"]),
    (loads_anything, ["modules/text-refused", "modules/half-refused", "modules/empty-refused"]),
    (reset_that_keeps_memory, ["device/reset-memory", "device/reset-handles"]),
    (
        any_pointer_will_do,
        ["copies/memset-null-refused", "copies/memset-longer-refused", "copies/memset-freed-refused"],
    ),
]


@pytest.mark.parametrize(("plant", "catchers"), DEVICE, ids=[plant.__name__ for plant, _ in DEVICE])
def test_fault_of_the_device_is_caught(
    plant: Callable[[Patch], None], catchers: list[str], monkeypatch: Patch
) -> None:
    names = [f"runtime/{name}" for name in catchers]
    assert failing("runtime", names) == []
    with monkeypatch.context() as patch:
        plant(patch)
        assert failing("runtime", names) == names
    driver.active.device.synchronize()


# --- faults of the launch path -----------------------------------------------------------------------------

Launch = Callable[..., None]


def wrapped(change: Callable[[list[Any]], list[Any] | None]) -> Callable[[Patch], None]:
    """Plants launchers whose nine leading values, and arguments behind them, are changed; None: launch nothing."""

    def plant(patch: Patch) -> None:
        right = CPUDriver.launcher_cls

        def launcher_cls(self: Any, source: Any, metadata: Any) -> Launch:
            launcher = right(self, source, metadata)

            def launch(*call: Any) -> None:
                changed = change(list(call))
                if changed is not None:
                    launcher(*changed)

            return launch

        patch.setattr(CPUDriver, "launcher_cls", launcher_cls)

    return plant


def _last_program_dropped(call: list[Any]) -> list[Any]:
    return [max(call[0] - 1, 0), *call[1:]]


def _axes_swapped(call: list[Any]) -> list[Any]:
    return [call[1], call[0], *call[2:]]


def _nothing_runs_once(call: list[Any]) -> list[Any]:
    return [*(max(count, 1) for count in call[:3]), *call[3:]]


def _grid_of_16_bits(call: list[Any]) -> list[Any]:
    return [*(count & 0xFFFF for count in call[:3]), *call[3:]]


def _no_enter_hook(call: list[Any]) -> list[Any]:
    return [*call[:7], None, *call[8:]]


def _hooks_swapped(call: list[Any]) -> list[Any]:
    return [*call[:7], call[8], call[7], *call[9:]]


def _default_stream(call: list[Any]) -> list[Any]:
    return [*call[:3], 0, *call[4:]]


def _ints_of_32_bits(call: list[Any]) -> list[Any]:
    cut = [(a + 2**31) % 2**32 - 2**31 if type(a) is int else a for a in call[9:]]
    return [*call[:9], *cut]


def _floats_through_fp16(call: list[Any]) -> list[Any]:
    with np.errstate(over="ignore"):
        return [*call[:9], *(float(np.float16(a)) if type(a) is float else a for a in call[9:])]


def _last_two_swapped(call: list[Any]) -> list[Any]:
    same = len(call) > 11 and type(call[-1]) is type(call[-2]) is int
    return [*call[:-2], call[-1], call[-2]] if same else call


def _lost_every_thousandth() -> Callable[[list[Any]], list[Any] | None]:
    count = iter(range(1 << 60))
    return lambda call: None if next(count) % 1000 == 999 else call


def _kept_for_ever() -> Callable[[list[Any]], list[Any]]:
    kept: list[Any] = []

    def change(call: list[Any]) -> list[Any]:
        kept.append((call, bytes(200)))
        return call

    return change


LAUNCHES = [
    (
        "last program dropped",
        _last_program_dropped,
        ["grids/7", "grids/1048576", "grids/3x5", "launches/threads"],
    ),
    ("axes swapped", _axes_swapped, ["grids/3x5", "grids/2x3x4", "grids/1x7"]),
    (
        "nothing runs once",
        _nothing_runs_once,
        ["grids/nothing-0", "grids/nothing-1x0x1", "grids/nothing-0x0x0"],
    ),
    ("a grid of 16 bits", _grid_of_16_bits, ["grids/65536", "grids/1000003", "grids/65537x3"]),
    (
        "no enter hook",
        _no_enter_hook,
        ["hooks/enter-and-exit", "hooks/before-and-after", "hooks/enter-raises"],
    ),
    ("hooks swapped", _hooks_swapped, ["hooks/enter-and-exit", "hooks/enter-raises", "hooks/exit-raises"]),
    ("the default stream", _default_stream, ["streams/asynchronous", "streams/overlap"]),
    (
        "ints of 32 bits",
        _ints_of_32_bits,
        ["arguments/i64", "arguments/u64", "arguments/inferred-int", "specialization/widths"],
    ),
    (
        "floats through fp16",
        _floats_through_fp16,
        ["arguments/fp32", "arguments/fp64", "arguments/inferred-float"],
    ),
    (
        "the last two swapped",
        _last_two_swapped,
        ["arguments/i32", "argument-counts/narrow-wide-64", "specialization/ones", "launches/interleaved"],
    ),
    ("every thousandth lost", _lost_every_thousandth(), ["launches/leak-host", "launches/leak-device"]),
    (
        "arguments kept",
        _kept_for_ever(),
        ["launches/leak-host", "launches/leak-references", "launches/leak-refused"],
    ),
]


@pytest.mark.parametrize(
    ("change", "catchers"), [row[1:] for row in LAUNCHES], ids=[row[0] for row in LAUNCHES]
)
@pytest.mark.usefixtures("fresh_launchers")
def test_fault_of_launches_is_caught(
    change: Callable[[list[Any]], list[Any] | None], catchers: list[str], monkeypatch: Patch
) -> None:
    names = [f"runtime/{name}" for name in catchers]
    with monkeypatch.context() as patch:
        wrapped(change)(patch)
        assert failing("runtime", names) == names
