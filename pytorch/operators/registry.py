"""Registration of the device's operators with torch's dispatcher."""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import product
from typing import Any, TypeVar

import torch

KEY = "PrivateUse1"
HOST = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
"""For `redispatch`: the CPU's implementations that touch no memory themselves serve any device."""

_Function = TypeVar("_Function", bound=Callable[..., Any])

OPERATORS: dict[str, Callable[..., Any]] = {}
"""Operators that the kit implements for the device: name with overload, and function."""

_COPIES = ("_copy_from", "_copy_from_and_resize")
"""Operators that handle the conjugate and negative bits of views. torch would do so by a copy, without end."""

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
        _library.impl(name, outside_dynamo(function), KEY)
    for name, key in product(_COPIES, ("Conjugate", "Negative")):
        _library.impl(name, torch.library.fallthrough_kernel, key)


def add_meta(functions: dict[str, Callable[..., Any]]) -> None:
    """Let these functions serve tensors without memory, too, where torch has nothing for them."""
    for name, function in functions.items():
        if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "Meta"):
            _library.impl(name, function, "Meta")


def outside_dynamo(function: _Function) -> _Function:
    """A function that Dynamo does not trace, nor what it calls.

    Programs call operators from frames that Dynamo has compiled. It would compile the implementation, too, for the
    tensors that came first. ``torch._dynamo.disable`` prevents this as well, but imports Dynamo.
    """
    set_eval_frame = torch._C._dynamo.eval_frame.set_eval_frame

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        previous = set_eval_frame(None)
        if previous is None:
            return function(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        finally:
            set_eval_frame(previous)

    return call  # type: ignore[return-value]
