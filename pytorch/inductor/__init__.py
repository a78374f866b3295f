"""Inductor for the torch device: registered when Dynamo or Inductor is imported, since importing them is slow."""

from __future__ import annotations

import importlib

from triton_porting_kit.pytorch.accelerator import accelerator
from triton_porting_kit.toolchain.importing import after_import

_PARTS = {
    "torch._dynamo.device_interface": ("interface", "register"),
    "torch._inductor.choices": ("patches", "split_long_reductions"),
    "torch._inductor.codecache": ("patches", "separate_caches"),
    "torch._inductor.decomposition": ("decompositions", "register"),
    "torch._inductor.ir": ("patches", "copy_without_pinned_memory"),
    "torch._inductor.lowering": ("products", "register"),
    "torch._inductor.runtime.benchmarking": ("benchmarks", "register"),
    "torch._inductor.runtime.triton_heuristics": ("patches", "select_drivers"),
}
"""Modules of torch, and the function here that is called after their import, by its module."""


def register() -> None:
    """Register with Dynamo and Inductor when they are imported, or now if they have been."""
    after_import("torch._inductor.utils", _add_device_type)
    for name, part in _PARTS.items():
        after_import(name, lambda part=part: _call(*part))  # type: ignore[misc]


def _call(module: str, function: str) -> None:
    getattr(importlib.import_module(f"{__name__}.{module}"), function)()


def _add_device_type() -> None:
    """Add the device to the types that Inductor generates Triton kernels for."""
    from torch._inductor import utils

    utils.GPU_TYPES.append(accelerator().name)
    _call("patches", "accept_templates")
