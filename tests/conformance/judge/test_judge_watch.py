"""What is seen of a candidate from within its process."""

from __future__ import annotations

import signal

import pytest
from triton.compiler.compiler import CompiledKernel
from triton.runtime.jit import KernelInterface

from triton_porting_kit.conformance.judge.watch import Originals, Timers
from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.driver.native_device import NativeDevice


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (KernelInterface, "__getitem__"),
        (CompiledKernel, "_init_handles"),
        (HostDevice, "elapsed_time"),
        (NativeDevice, "elapsed_time"),
    ],
)
def test_replaced_methods_are_named(owner: type, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    originals = Originals()
    assert originals.replaced() == []
    monkeypatch.setattr(owner, name, lambda *arguments: None)
    assert f"{owner.__module__}.{owner.__name__}.{name}" in originals.replaced()


def test_timers_and_handlers_are_named() -> None:
    timers = Timers()
    assert timers.started() == []
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1000)
        assert timers.started() == ["SIGALRM", "a timer"]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert timers.started() == []
