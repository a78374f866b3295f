"""Registration of the device's operators with torch's dispatcher."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

KEY = "PrivateUse1"

_Function = TypeVar("_Function", bound=Callable[..., Any])

OPERATORS: dict[str, Callable[..., Any]] = {}
"""Operators that the kit implements for the device: name with overload, and function."""

_library = torch.library.Library("aten", "IMPL")


def implements(*names: str) -> Callable[[_Function], _Function]:
    """Declare a function as the device's implementation of aten operators such as ``empty.memory_format``."""

    def declare(function: _Function) -> _Function:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return declare


def register() -> None:
    """Register all declared operators with the dispatcher."""
    for name, function in OPERATORS.items():
        _library.impl(name, function, KEY)
