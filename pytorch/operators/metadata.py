"""Operators that change how a tensor views its storage, and touch no memory.

The CPU's implementations read and write only sizes, strides and offsets, so they serve any device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from triton_porting_kit.pytorch.operators.registry import HOST, implements

_VIEWS = (
    "as_strided",
    "view",
    "_reshape_alias",
    "unfold",
    "view_as_real",
    "view_as_complex",
    "set_.source_Storage_storage_offset",
)
"""These overloads. The other views are made of them."""


def _redispatch(name: str) -> Callable[..., Any]:
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.aten, packet), overload or "default")

    def implementation(*args: Any, **kwargs: Any) -> Any:
        return operator.redispatch(HOST, *args, **kwargs)

    return implementation


for _name in _VIEWS:
    implements(_name)(_redispatch(_name))


@implements("set_.source_Storage")
def set_source_storage(self: torch.Tensor, source: torch.UntypedStorage) -> torch.Tensor:
    return self.set_(source, 0, (source.nbytes() // self.itemsize,), (1,))


@implements("set_.source_Tensor")
def set_source_tensor(self: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return self.set_(source.untyped_storage(), source.storage_offset(), source.shape, source.stride())


@implements("set_")
def set_nothing(self: torch.Tensor) -> torch.Tensor:
    fresh = torch.empty(0, dtype=self.dtype, device=self.device)
    return self.set_(fresh.untyped_storage(), 0, (0,), (1,))
