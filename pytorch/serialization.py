"""``torch.save`` and ``torch.load`` of tensors of the device: the bytes pass through the host."""

from __future__ import annotations

from typing import Any

import torch

from triton_porting_kit.pytorch.accelerator import accelerator

_PRIORITY = 15
"""Before torch's own functions for such devices, whose priority is 23: ``torch/serialization.py``."""


def register() -> None:
    """Register the device with ``torch.save`` and ``torch.load``."""
    torch.serialization.register_package(_PRIORITY, _tag, _restore)


def _tag(storage: Any) -> str | None:
    name = accelerator().name
    return f"{name}:0" if storage.device.type == name else None


def _restore(storage: Any, location: str) -> Any:
    if location.partition(":")[0] != accelerator().name:
        return None
    host = torch.empty(0, dtype=torch.uint8).set_(
        storage.untyped() if hasattr(storage, "untyped") else storage
    )
    return host.to(location).untyped_storage()  # which refuses devices that are not there
