"""PyTorch on the devices of a Triton backend: tensors, operators, ``torch.<name>`` and ``torch.compile``.

A backend's package calls `register_device` from an entry point of group ``torch.backends``, which ``import torch``
loads.
Nothing of the kit outside this package imports torch.
"""

from __future__ import annotations

__all__ = ["register_device"]

from triton_porting_kit.pytorch.registration import register_device
