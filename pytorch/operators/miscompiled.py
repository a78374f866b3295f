"""Arguments of operators that Inductor (2.11 to 2.13) compiles to code that is wrong, on any device."""

from __future__ import annotations

import torch

from triton_porting_kit.pytorch.accelerator import accelerator


def move_numbers(tensors: list[torch.Tensor]) -> None:
    """Move numbers on the host to the device if the other tensors have one element each.

    Inductor reads such a number on the host and passes it to the kernel, except for results of one element with
    dimensions: there it copies the number to a buffer on the host, and passes the buffer's address.
    """
    name = accelerator().name
    on_device = [t for t in tensors if t.device.type == name]
    if len(on_device) < len(tensors) and all(t.numel() == 1 and t.dim() for t in on_device):
        tensors[:] = [t if t.device.type == name else t.to(name) for t in tensors]
