"""A device that was built with another version of the kit's device interface is refused before it is opened."""

from __future__ import annotations

import hashlib
import re
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from drivers import fresh_driver
from triton.backends.compiler import GPUTarget

import triton_porting_kit
from triton_porting_kit.abi import header
from triton_porting_kit.abi.launching import BUILT_WITH, DEVICE_INTERFACE
from triton_porting_kit.driver import Device
from triton_porting_kit.driver.adapter import TritonDriver
from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.errors import BuiltWithAnotherKit

VNPU = Path(__file__).resolve().parents[2] / "driver" / "virtual" / "include" / "vnpu.h"

INTERFACES = {1: "60a7e602c94de64c", 2: "dad7a85835886353"}
"""By `DEVICE_INTERFACE`, the digest of the declarations. If it differs, increase the number and add a line: programs that
were compiled against the old declarations do not fit the new ones."""


def declarations() -> str:
    """The declarations that compiled devices rely on, without comments, versions and spaces."""
    texts = header.HEADER.read_text() + VNPU.read_text()
    texts = re.sub(r"/\*.*?\*/|//[^\n]*", "", texts, flags=re.DOTALL)
    texts = re.sub(r"[^\n]*(KitRelease|DeviceInterface)[^\n]*", "", texts)
    return "".join(texts.split())


def test_the_number_changes_with_the_declarations() -> None:
    assert INTERFACES[DEVICE_INTERFACE] == hashlib.sha256(declarations().encode()).hexdigest()[:16]
    assert [*INTERFACES] == [*range(1, DEVICE_INTERFACE + 1)]


def test_bound_classes_say_what_they_were_built_with() -> None:
    bound = type(HostDevice()._native)
    assert getattr(bound, BUILT_WITH) == (DEVICE_INTERFACE, triton_porting_kit.__version__)


def driver_of(package: str) -> Any:
    """A driver that a vendor's package has, which opens no device."""

    class Driver(TritonDriver):
        backend_name = "old"
        launcher_cls = None

        def make_device(self) -> Device:
            raise AssertionError("the device was opened")

        def make_target(self, device: Device) -> GPUTarget:
            raise AssertionError

    driver = fresh_driver(Driver)
    type(driver).__module__ = f"{package}.driver"
    return driver


def compiled(name: str, mark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Load a module with a bound class, as far as Python sees."""
    module = ModuleType(name)
    module.__file__ = f"/somewhere/_native{EXTENSION_SUFFIXES[0]}"
    module.Device = type("Device", (), {BUILT_WITH: mark} if mark else {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, name, module)


def test_an_older_device_is_refused_with_both_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled("triton_old._native", (DEVICE_INTERFACE - 1, "0.0.9"), monkeypatch)
    with pytest.raises(BuiltWithAnotherKit) as caught:
        _ = driver_of("triton_old").devices
    assert (caught.value.built_with, caught.value.installed) == ("0.0.9", triton_porting_kit.__version__)
    for part in ("triton_old._native", "0.0.9", triton_porting_kit.__version__, "pip install"):
        assert part in str(caught.value)


@pytest.mark.parametrize("mark", [None, (DEVICE_INTERFACE, "0.0.9")])
def test_others_are_opened(mark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled("triton_old._native", mark, monkeypatch)
    compiled("triton_other._native", (DEVICE_INTERFACE + 1, "9.9"), monkeypatch)
    with pytest.raises(AssertionError, match="was opened"):
        _ = driver_of("triton_old").devices
