"""What the checks of memory and streams use: the module of a torch device, as `torch.cuda` names its functions."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.torch import support


class Surface:
    """The module ``torch.NAME`` of the backend's torch device."""

    def __init__(self, context: Context) -> None:
        import torch

        self.name = support.device_of(context)
        self.module = torch.get_device_module(self.name)
        self._context = context

    def __getattr__(self, name: str) -> Any:
        """A function or class of the module. The check fails if it is missing."""
        there = hasattr(self.module, name)
        self._context.expect(there, f"torch.{self.name}.{name} exists", "the module has no such name")
        return getattr(self.module, name)

    def numbers(self, count: int) -> Any:
        """The float32 numbers from 0 to `count` - 1 on the device."""
        import torch

        return torch.arange(count, dtype=torch.float32).to(self.name)
