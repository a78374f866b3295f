"""``torch.Generator(device=...)``: PyTorch makes generators of such devices by a function in C++.

A generator in the memory of the host takes its place, which the device's operators accept.
"""

from __future__ import annotations

from typing import Any

import torch

from triton_porting_kit.pytorch.accelerator import accelerator


def register() -> None:
    """Let ``torch.Generator`` accept the device. Only the type of the class can see its calls."""
    kind: Any = type(torch.Generator)
    construct = kind.__call__

    def __call__(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if cls is torch.Generator:
            device = args[0] if args else kwargs.get("device")
            if device is not None and torch.device(device).type == accelerator().name:
                args, kwargs = (), {}
        return construct(cls, *args, **kwargs)

    kind.__call__ = __call__
