"""Inductor for the torch device: registered when Dynamo or Inductor is imported, since importing them is slow."""

from __future__ import annotations

import importlib

from triton_porting_kit.pytorch.importing import after_import

_PARTS = {
    "torch._dynamo.device_interface": "interface",
    "torch._inductor.utils": "device_types",
    "torch._inductor.runtime.benchmarking": "benchmarks",
    "torch._inductor.runtime.triton_heuristics": "triton_driver",
    "torch._inductor.choices": "choices",
    "torch._inductor.kernel.bmm": "products",
}
"""Modules of torch, and the module here whose function `register` is called after their import."""


def register() -> None:
    """Register with Dynamo and Inductor when they are imported, or now if they have been."""
    for name, part in _PARTS.items():
        after_import(name, lambda part=part: _register(part))  # type: ignore[misc]


def _register(part: str) -> None:
    importlib.import_module(f"{__name__}.{part}").register()
