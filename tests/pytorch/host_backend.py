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

NAME = "test_chip"
BACKEND = "testchip2"


class TestCompiler(CPUBackend):
    __test__ = False
    name = BACKEND

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == BACKEND


class TestDriver(CPUDriver):
    __test__ = False
    backend_name = BACKEND
    torch_device = NAME
    fallback = True  # the CPU comes first by name, so other tests of the process have their driver

    def make_target(self, device: Device) -> GPUTarget:
        return GPUTarget(BACKEND, platform.machine(), 1)


def register() -> Any:
    """Register the backend and its torch device once, and return the module of the device."""
    import torch

    if BACKEND not in triton.backends.backends:
        triton.backends.backends[BACKEND] = triton.backends.Backend(compiler=TestCompiler, driver=TestDriver)
    assert register_device(BACKEND, NAME)
    return getattr(torch, NAME)
