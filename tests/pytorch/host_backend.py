"""A Triton backend for tests whose device is the host, with a torch device of its own."""

from __future__ import annotations

import platform
from typing import Any

import triton.backends
from triton.backends.compiler import GPUTarget

from triton_porting_kit.backends.cpu.compiler import CPUBackend
from triton_porting_kit.backends.cpu.driver import CPUDriver
from triton_porting_kit.driver import Device
from triton_porting_kit.pytorch import register_device

NAME = "testchip"


class TestCompiler(CPUBackend):
    __test__ = False
    name = NAME

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == NAME


class TestDriver(CPUDriver):
    __test__ = False
    backend_name = NAME
    torch_device = NAME
    fallback = False

    @classmethod
    def is_active(cls) -> bool:
        return False  # other tests of the process have their own driver

    def make_target(self, device: Device) -> GPUTarget:
        return GPUTarget(NAME, platform.machine(), 1)


def register() -> Any:
    """Register the backend and its torch device once, and return the module of the device."""
    import torch

    if NAME not in triton.backends.backends:
        triton.backends.backends[NAME] = triton.backends.Backend(compiler=TestCompiler, driver=TestDriver)
    assert register_device(NAME)
    return getattr(torch, NAME)
