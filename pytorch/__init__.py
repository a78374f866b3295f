"""PyTorch on the devices of a Triton backend: tensors, operators, ``torch.<name>`` and ``torch.compile``.

A backend's package calls `register_device` from an entry point of group ``torch.backends``, which ``import torch``
loads.
Nothing of the kit outside this package imports torch.
"""

from __future__ import annotations

__all__ = ["register_device"]


def register_device(backend: str, name: str) -> bool:
    """Make the first device of a Triton backend ``torch.device(name)``; returns whether it is.

    `name` consists of lower-case letters and underscores, as PyTorch demands. The device is opened when it is first
    needed. PyTorch has one such device in a process: if several backends want to be it, the one that
    ``TRITON_DEFAULT_BACKEND`` names is, otherwise the first. The others warn.

    Raises `InvalidArgument` for a name that PyTorch does not accept.
    """
    # Imported here: importing torch calls this function, perhaps while this module is imported.
    from triton_porting_kit.pytorch import registration

    return registration.register_device(backend, name)
