"""What runs an operator that the device has no implementation of: code of Inductor, or the CPU with copies."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from contextlib import nullcontext
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from triton_porting_kit.errors import InvalidArgument
from triton_porting_kit.pytorch.accelerator import accelerator
from triton_porting_kit.pytorch.operators import eager, generators
from triton_porting_kit.pytorch.operators.arguments import NotCompiled, check_device
from triton_porting_kit.pytorch.operators.copies import to_device, to_host
from triton_porting_kit.pytorch.operators.registry import KEY, outside_dynamo

_log = logging.getLogger(__name__)
_library = torch.library.Library("_", "IMPL")
_lock = threading.Lock()

_counts: Counter[str] = Counter()
_policy = "warn"

POLICIES = ("silent", "warn", "raise")
"""What happens when an operator falls back: nothing, one line in the log for each operator, or an error."""


def counts() -> dict[str, int]:
    """The number of calls of each operator that ran on the CPU."""
    with _lock:
        return dict(_counts)


def reset_counts() -> None:
    """Start counting anew."""
    with _lock:
        _counts.clear()


def set_policy(policy: str) -> str:
    """Choose one of `POLICIES`; returns the one before."""
    global _policy
    if policy not in POLICIES:
        raise InvalidArgument(f"{policy!r} is not one of {', '.join(POLICIES)}")
    previous, _policy = _policy, policy
    return previous


def register() -> None:
    """Make the fallback the device's implementation of all operators that have none."""
    _library.fallback(outside_dynamo(run), KEY)
    for key in _NO_KERNELS:
        _library.fallback(_refuse, key)


_NO_KERNELS = (f"Sparse{KEY}", f"SparseCsr{KEY}", f"Quantized{KEY}")
"""Sparse and quantized tensors of the device."""


def _refuse(operator: object, *args: Any, **kwargs: Any) -> Any:
    device = accelerator().name
    raise NotImplementedError(
        f"{operator}: {device} has dense tensors only, and neither sparse nor quantized ones. Convert the tensor with "
        "to_dense() or dequantize(), or compute on the CPU"
    )


def run(operator: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Run an operator on the device if Inductor can compile it, and on the CPU otherwise.

    Where Python's part of the dispatcher is off, torch wants to know the shapes of results by an operator without meta
    kernel: code of Inductor does not run there, and the call is none of the program's.
    """
    if torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.Python):
        return _on_host(operator, args, kwargs)
    accelerator().check_process()  # a child has no thread that compiles
    try:
        return eager.call(operator, args, kwargs)
    except NotCompiled as reason:
        _log.debug("%s runs on the CPU: %s", operator, reason)
    return run_on_host(operator, *args, **kwargs)


def run_on_host(operator: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Call an operator on the CPU with copies of the arguments, and copy back what it returns and writes."""
    for value in tree_leaves((args, kwargs)):
        if isinstance(value, torch.Tensor):
            check_device(operator, value)
    _count(operator)
    return _on_host(operator, args, kwargs)


def _on_host(operator: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    call = _Call(operator)
    random = torch.Tag.nondeterministic_seeded in operator.tags
    with generators.as_default() if random else nullcontext():
        result = operator(*call.on_host(args), **call.on_host(kwargs))
    call.write_back(args, kwargs)
    return call.on_device(result)


def _count(operator: torch._ops.OpOverload) -> None:
    name = str(operator)
    with _lock:
        first = name not in _counts
        _counts[name] += 1
    device = accelerator().name
    if _policy == "raise":
        raise NotImplementedError(
            f"{name} has no implementation on {device}, and operators must not run on the CPU; "
            f"torch.{device}.set_fallback('warn') allows it"
        )
    if first and _policy == "warn":
        _log.warning("%s runs on the CPU: %s has no implementation of it", name, device)


class _Call:
    """The tensors of one call: those of the device with their copies on the host."""

    def __init__(self, operator: torch._ops.OpOverload) -> None:
        self._schema = operator._schema
        self._name = accelerator().name
        self._copies: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def on_host(self, values: Any) -> Any:
        return tree_map(self._host_value, values)

    def _host_value(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.device.type != self._name:
                return value
            if id(value) not in self._copies:
                self._copies[id(value)] = (value, to_host(value))
            return self._copies[id(value)][1]
        if isinstance(value, torch.device) and value.type == self._name:
            return torch.device("cpu")
        return value

    def write_back(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Copy the arguments that the operator writes to the device."""
        for argument, value in self._bound(args, kwargs):
            if argument.alias_info is not None and argument.alias_info.is_write:
                tree_map(self._write, value)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[Any, Any]]:
        found = list(zip(self._schema.arguments, args, strict=False))
        by_name = {argument.name: argument for argument in self._schema.arguments}
        return found + [(by_name[name], value) for name, value in kwargs.items()]

    def _write(self, value: Any) -> None:
        if id(value) not in self._copies:
            return
        target, copy = self._copies[id(value)]
        if target.shape != copy.shape:
            target.resize_(copy.shape)
        target.copy_(copy)

    def on_device(self, result: Any) -> Any:
        return tree_map(self._device_value, result)

    def _device_value(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if value.layout != torch.strided or value.is_quantized:
            _refuse(self._schema.name)
        for original, copy in self._copies.values():
            if value is copy:
                return original
            if value._is_view() and value.untyped_storage().data_ptr() == copy.untyped_storage().data_ptr():
                return self._view(value, original, copy)
        return to_device(value)

    def _view(self, value: torch.Tensor, original: torch.Tensor, copy: torch.Tensor) -> torch.Tensor:
        if original.stride() != copy.stride() or value.dtype != original.dtype:
            raise NotImplementedError(
                f"{self._schema.name} returns a view of an argument whose elements are not dense"
            )
        offset = original.storage_offset() + value.storage_offset()
        return original.as_strided(value.shape, value.stride(), offset)
