"""Inductor with ``cpu_backend="triton"``: what it does otherwise for the kit's CPU backend than for a GPU.

``import torch`` calls `register` through the entry point of group ``torch.backends``. It only waits for the import of
Inductor, which is slow. Without it (``TORCH_DEVICE_BACKEND_AUTOLOAD=0``), programs take longer to compile and to run.
"""

from __future__ import annotations

import importlib
import warnings

from triton_porting_kit.toolchain.importing import after_import

_PARTS = {
    "torch._inductor.fx_passes.post_grad": "linear",
    "torch._inductor.lowering": "variance",
    "torch._inductor.runtime.triton_heuristics": "tuning",
}
"""Modules of torch, and the module here whose ``register`` is called after their import."""


def register() -> None:
    """Register with the parts of Inductor when they are imported, or now if they have been."""
    for name, part in _PARTS.items():
        after_import(name, lambda part=part: _call(part))  # type: ignore[misc]


def _call(part: str) -> None:
    try:
        importlib.import_module(f"{__name__}.{part}").register()
    except (
        ImportError,
        AttributeError,
        LookupError,
        TypeError,
    ) as error:  # another release of torch; importing it must not fail
        warnings.warn(
            f"this release of torch is not as the kit's {part}.py expects it ({error}): torch.compile for CPU tensors "
            "works, but slower; docs/pytorch.md lists the releases that were tested",
            stacklevel=2,
        )


def is_ours() -> bool:
    """Whether Triton's backend for CPUs is that of the kit."""
    from triton.backends import backends

    return "cpu" in backends and backends["cpu"].compiler.__module__.startswith("triton_porting_kit.")
