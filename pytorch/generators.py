"""``torch.Generator(device=...)``: PyTorch makes generators of such devices by a function in C++.

A generator in the memory of the host takes its place, which the device's operators accept.
"""

from __future__ import annotations

from typing import Any

import torch

from triton_porting_kit.pytorch.accelerator import accelerator


def register() -> None:
    """Let ``torch.Generator`` accept the device: a subclass of it takes its name.

    Only the type of a class sees its calls, and in torch 2.11 the type of ``torch.Generator`` is ``type`` itself.
    """
    original: Any = torch._C.Generator

    class Calls(type(original)):  # type: ignore[misc]
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            device = args[0] if args else kwargs.get("device")
            if device is not None and torch.device(device).type == accelerator().name:
                return original()
            return original(*args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original)

    torch.Generator = Calls("Generator", (original,), {"__module__": "torch"})  # type: ignore[misc]
