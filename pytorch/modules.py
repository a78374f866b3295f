"""What ``torch.nn.Module`` does on torch's own devices, and not on others."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch

_moving = threading.local()


def keep_shared_parameters() -> None:
    """Keep parameters that several modules share, such as tied embeddings, when a module moves to the device.

    On torch's own devices a parameter stays the same object and gets other memory. Between the CPU and this device
    torch (2.13, `Module._apply`) makes a new one at each place, because their tensors have incompatible types.
    """
    modules: Any = torch.nn.Module
    apply = modules._apply

    @functools.wraps(apply)
    def _apply(self: torch.nn.Module, fn: Callable[..., Any], recurse: bool = True) -> Any:
        if getattr(_moving, "active", False):
            return apply(self, fn, recurse)
        shared = _shared(self)
        _moving.active = True
        try:
            result = apply(self, fn, recurse)
        finally:
            _moving.active = False
        for (first, name), *others in shared:
            for module, other in others:
                module._parameters[other] = first._parameters[name]
        return result

    modules._apply = _apply


def _shared(module: torch.nn.Module) -> list[list[tuple[torch.nn.Module, str]]]:
    """The places of each parameter that has several."""
    places: dict[int, list[tuple[torch.nn.Module, str]]] = {}
    for owner in module.modules():
        for name, parameter in owner._parameters.items():
            if parameter is not None:
                places.setdefault(id(parameter), []).append((owner, name))
    return [found for found in places.values() if len(found) > 1]
