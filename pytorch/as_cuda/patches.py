"""Replaces the functions of torch that take devices, ask for CUDA, or return its streams."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from triton_porting_kit.pytorch.as_cuda import host
from triton_porting_kit.pytorch.as_cuda.namespace import asked_by_library, members, unmapped
from triton_porting_kit.pytorch.as_cuda.target import Target

_LIKE = ("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like")
_OF_TENSORS = ("new_empty", "new_zeros", "new_ones", "new_full", "new_tensor", "new_empty_strided")
_OF_AUTOCAST = ("is_autocast_enabled", "set_autocast_enabled", "get_autocast_dtype", "set_autocast_dtype")
"""Functions of torch whose first argument is the type of a device."""


class Patches:
    """The functions that were replaced."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.count = 0

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute of a module or a class."""
        setattr(owner, name, value)
        self.count += 1

    def wrap(self, owner: Any, name: str, change: Callable[[tuple[Any, ...], dict[str, Any]], Any]) -> None:
        """Let a function see other arguments: `change` returns them."""
        original = getattr(owner, name)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = change(args, kwargs)
            return original(*args, **kwargs)

        self.put(owner, name, call)

    def keywords(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Map ``device=`` and ``map_location=``; memory is not pinned."""
        for name in ("device", "map_location"):
            if kwargs.get(name) is not None:
                kwargs[name] = self.target.device_of(kwargs[name])
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        return args, kwargs

    def nth(self, index: int) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
        """Map the argument of a position, too."""

        def change(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if len(args) > index:
                args = (*args[:index], self.target.device_of(args[index]), *args[index + 1 :])
            return self.keywords(args, kwargs)

        return change

    def type_of_device(
        self, index: int, name: str = "device_type"
    ) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
        """Map an argument that is the type of a device, as text."""

        def change(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            own = self.target.device
            if len(args) > index and args[index] == "cuda":
                args = (*args[:index], own, *args[index + 1 :])
            if kwargs.get(name) == "cuda":
                kwargs[name] = own
            return args, kwargs

        return change


def install(target: Target) -> int:
    """Map ``cuda`` onto a target in this process. Returns the number of functions that were replaced."""
    patches = Patches(target)
    _factories(patches)
    _tensors_and_modules(patches)
    _namespaces(patches)
    _autocast(patches)
    return patches.count


def _factories(patches: Patches) -> None:
    from torch.utils import _device

    # Cached before its members are replaced: `with torch.device(...)` compares the originals.
    constructors = _device._device_constructors()
    for owner in (torch, torch.fft):
        for name, value in list(vars(owner).items()):
            if callable(value) and not isinstance(value, type) and value in constructors:
                patches.wrap(owner, name, patches.keywords)
    for name in _LIKE:
        patches.wrap(torch, name, patches.keywords)
    patches.wrap(torch, "load", patches.nth(1))
    patches.wrap(torch, "set_default_device", patches.nth(0))
    patches.wrap(_device.DeviceContext, "__init__", patches.nth(1))
    _generators(patches)


def _generators(patches: Patches) -> None:
    """``torch.Generator(device="cuda")``. A generator of a torch device lives on the CPU."""
    original = torch.Generator

    class Kind(type(original)):  # type: ignore[misc]
        def __call__(cls, device: Any = "cpu") -> Any:
            mapped = torch.device(patches.target.device_of(device))
            return original("cpu" if mapped.type == patches.target.device else mapped)

        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, original)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, original)

    patches.put(torch, "Generator", Kind("Generator", (), {"__module__": "torch"}))


def _tensors_and_modules(patches: Patches) -> None:
    target = patches.target

    def cuda(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
        """The tensor on the target."""
        target.device_of(device)
        more = {} if memory_format is None else {"memory_format": memory_format}
        return self.to(target.device, non_blocking=non_blocking, **more)

    def is_cuda(self: Any) -> bool:
        """Whether the tensor is on the target, for the program: torch itself would use libraries of CUDA."""
        return bool(self.device.type == target.device) and not asked_by_library()

    patches.put(torch.Tensor, "cuda", cuda)
    patches.put(torch.Tensor, "is_cuda", property(is_cuda))
    patches.put(torch.Tensor, "pin_memory", lambda self, device=None: self)
    if target.on_cpu:
        _indices(patches)
    patches.wrap(torch.Tensor, "to", patches.nth(1))
    for name in _OF_TENSORS:
        patches.wrap(torch.Tensor, name, patches.keywords)
    patches.wrap(torch.nn.Module, "to", patches.nth(1))
    patches.wrap(torch.nn.Module, "to_empty", patches.keywords)


def _indices(patches: Patches) -> None:
    """Let programs see the device of a tensor with the index 0, which the CPU has not: they look things up by it."""
    whole, first = torch.Tensor.device, torch.device("cpu", 0)

    def device(self: Any) -> Any:
        """The device of the tensor; for the program it has an index, as a GPU has."""
        found = whole.__get__(self)
        return first if found.type == "cpu" and not asked_by_library() else found

    def get_device(self: Any) -> int:
        """The index of the device of the tensor; torch itself gets -1 for the CPU."""
        return -1 if asked_by_library() else 0

    patches.put(torch.Tensor, "device", property(device))
    patches.put(torch.Tensor, "get_device", get_device)


def _namespaces(patches: Patches) -> None:
    target = patches.target
    mapped = members(target)
    for name, value in (unmapped(torch.cuda, mapped) | mapped).items():
        patches.put(torch.cuda, name, value)
    for name in ("range_push", "range_pop", "mark"):
        patches.put(torch.cuda.nvtx, name, lambda *_, **__: 0)
    stream = host.raw_stream if target.on_cpu else lambda device: target.driver.get_current_stream(0)
    patches.put(torch._C, "_cuda_getCurrentRawStream", stream)
    patches.put(torch._C, "_cuda_getDevice", lambda: 0)
    if target.on_cpu:
        _accelerator(patches)


def _accelerator(patches: Patches) -> None:
    """``torch.accelerator``, which a torch device has from PyTorch."""
    cpu = torch.device("cpu")
    for name, value in {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_accelerator": lambda check_available=False: cpu,
        "current_device_index": lambda: 0,
        "current_device_idx": lambda: 0,
        "set_device_index": lambda device: None,
        # Not those of torch.cuda themselves: Dynamo refuses one function under two names.
        "synchronize": lambda device=None: host.synchronize(),
        "current_stream": lambda device=None: host.current_stream(),
        "set_stream": lambda stream: host.set_stream(stream),
        "empty_cache": lambda: host.empty_cache(),
    }.items():
        patches.put(torch.accelerator, name, value)
    patches.put(torch.cpu, "device", torch.cuda.device)
    patches.put(torch.cpu, "current_device", lambda: 0)


def _autocast(patches: Patches) -> None:
    """``torch.autocast("cuda")`` with the type that CUDA computes in, and loss scaling."""
    halves = torch.get_autocast_dtype("cuda")
    mapped = patches.type_of_device(1)

    def with_type(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if (
            "cuda" in (*args[1:2], kwargs.get("device_type"))
            and len(args) < 3
            and kwargs.get("dtype") is None
        ):
            kwargs["dtype"] = halves
        return mapped(args, kwargs)

    patches.wrap(torch.amp.autocast_mode.autocast, "__init__", with_type)
    patches.wrap(torch.amp.GradScaler, "__init__", patches.type_of_device(1, "device"))
    for name in _OF_AUTOCAST:
        original = getattr(torch, name)

        def call(*args: Any, _original: Any = original) -> Any:
            return _original(*(patches.target.device if arg == "cuda" else arg for arg in args))

        patches.put(torch, name, functools.wraps(original)(call))
    for name in ("custom_op", "register_kernel"):
        patches.wrap(torch.library, name, patches.type_of_device(1, "device_types"))
