"""Storages of the device that programs make without a tensor, as ``copy.deepcopy`` and ``UntypedStorage.clone`` do.

PyTorch makes and resizes them in C++ by hooks that Python cannot give, and ends the process where they are missing. So
the class that Python programs see is patched.
"""

from __future__ import annotations

from typing import Any

import torch

from triton_porting_kit.pytorch.accelerator import accelerator


def register() -> None:
    """Patch the constructor and ``resize_`` of ``torch.UntypedStorage``; other devices' storages are as before."""
    storage: Any = torch.UntypedStorage
    make, resize = storage.__new__, storage.resize_

    def __new__(cls: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        if device is None or torch.device(device).type != accelerator().name:
            device = {} if device is None else {"device": device}
            return make(cls, *args, **device, **kwargs)
        size = args[0] if args else 0
        if not isinstance(size, int):
            raise TypeError(
                f"a storage of {accelerator().name} is made of a number of bytes, not {type(size).__name__}"
            )
        return torch.empty(size, dtype=torch.uint8, device=device).untyped_storage()

    def resize_(self: Any, size: int) -> Any:
        if self.device.type != accelerator().name:
            return resize(self, size)
        if size == self.nbytes():
            return self
        raise NotImplementedError(
            f"a storage of {self.device.type} keeps its size ({self.nbytes()} bytes): torch resizes storages of such "
            "devices by a function in C++. Tensor.resize_ and Tensor.set_ give a tensor another storage"
        )

    storage.__new__ = staticmethod(__new__)
    storage.resize_ = resize_
