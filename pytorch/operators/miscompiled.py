"""Calls of operators that Inductor (2.11 to 2.13) compiles to code that is wrong, on any device."""

from __future__ import annotations

from typing import Any

import torch

from triton_porting_kit.pytorch.accelerator import accelerator

_aten = torch.ops.aten

_CEIL_MODE = "Inductor divides by the sizes of windows before they are clipped"
_WRONG: dict[torch._ops.OpOverloadPacket, tuple[str, str]] = {
    _aten.avg_pool2d_backward: ("ceil_mode", _CEIL_MODE),
    _aten.avg_pool3d_backward: ("ceil_mode", _CEIL_MODE),
}
"""Operators, the argument that is set in the calls, and what is wrong."""


def reason(operator: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Why the code of a call would be wrong; empty if it would not."""
    if operator.overloadpacket not in _WRONG:
        return ""
    name, why = _WRONG[operator.overloadpacket]
    names = [argument.name for argument in operator._schema.arguments]
    return why if dict(zip(names, args, strict=False)).get(name, kwargs.get(name)) else ""


def move_numbers(tensors: list[torch.Tensor]) -> None:
    """Move numbers on the host to the device if the other tensors have one element each.

    Inductor reads such a number on the host and passes it to the kernel, except for results of one element with
    dimensions: there it copies the number to a buffer on the host, and passes the buffer's address.
    """
    name = accelerator().name
    on_device = [t for t in tensors if t.device.type == name]
    if len(on_device) < len(tensors) and all(t.numel() == 1 and t.dim() for t in on_device):
        tensors[:] = [t if t.device.type == name else t.to(name) for t in tensors]
