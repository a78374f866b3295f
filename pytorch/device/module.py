"""The module ``torch.<name>``: the names and the meanings are those of ``torch.cuda``."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import torch

from triton_porting_kit.errors import InvalidArgument
from triton_porting_kit.pytorch.accelerator import accelerator
from triton_porting_kit.pytorch.device.random import (
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from triton_porting_kit.pytorch.device.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)
from triton_porting_kit.pytorch.operators.fallback import counts as fallbacks
from triton_porting_kit.pytorch.operators.fallback import reset_counts as reset_fallbacks
from triton_porting_kit.pytorch.operators.fallback import set_policy as set_fallback

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "fallbacks",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "reset",
    "reset_fallbacks",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_fallback",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]

# --- the device ------------------------------------------------------------------------------------------


def is_available() -> bool:
    """Whether the machine has such a device. It is not opened."""
    try:
        return accelerator().driver.is_available()
    except InvalidArgument:  # the backend is not installed
        return False


def is_initialized() -> bool:
    """Whether this process has opened the device."""
    return accelerator().is_open and not accelerator().in_forked_child


def init() -> None:
    """Open the device now instead of when it is first needed."""
    accelerator().check_process()
    _ = accelerator().device


_lazy_init = init


def _is_in_bad_fork() -> bool:
    return accelerator().in_forked_child


def device_count() -> int:
    """The number of devices that tensors can be on: PyTorch gives devices that are written in Python one."""
    return int(is_available())


def current_device() -> int:
    """The index of the current device."""
    return 0


def set_device(device: Any) -> None:
    """Make a device current. There is one."""
    _index(device)


class device:
    """A context in which a device is current."""

    def __init__(self, device: Any) -> None:
        self.idx = _index(device)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


def _exchange_device(device: int) -> int:
    return 0


_maybe_exchange_device = _exchange_device


def _index(device: Any) -> int:
    index = device if isinstance(device, int) or device is None else torch.device(device).index
    if index is None or index < 0:
        return 0
    if index >= device_count():
        raise RuntimeError(f"there is no device {accelerator().name}:{index} of {device_count()}")
    return int(index)


def synchronize(device: Any = None) -> None:
    """Wait for all work of the device, and raise what failed."""
    _index(device)
    accelerator().device.synchronize()


def reset(device: Any = None) -> None:
    """Restart the device, also one that was lost. All tensors and streams on it become invalid."""
    _index(device)
    accelerator().device.reset()


@dataclass(frozen=True)
class Properties:
    """The properties of a device by the names of ``torch.cuda.get_device_properties``."""

    name: str
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_block: int
    shared_memory_per_block: int
    arch: str


def get_device_properties(device: Any = None) -> Properties:
    """The properties of the device. Sizes are in bytes."""
    _index(device)
    found = accelerator().device.properties()
    return Properties(
        name=found.name,
        total_memory=found.memory_bytes,
        multi_processor_count=found.core_count,
        warp_size=found.warp_size,
        max_threads_per_block=found.max_threads_per_program,
        shared_memory_per_block=found.scratch_limit,
        arch=found.arch,
    )


def get_device_name(device: Any = None) -> str:
    """The name of the device, for people."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> str:
    """The architecture that kernels are compiled for."""
    _index(device)
    return str(accelerator().target.arch)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Triton's backends of the kit compile bfloat16, with or without instructions for it."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that autocast computes in."""
    return [torch.bfloat16, torch.float16]


# --- memory ----------------------------------------------------------------------------------------------


def empty_cache() -> None:
    """Return the memory of freed tensors to the device."""
    if is_initialized():
        accelerator().memory.empty_cache()


def memory_stats(device: Any = None) -> dict[str, int]:
    """Statistics of the allocator, by the names of ``torch.cuda.memory_stats``."""
    return accelerator().memory.statistics()


def memory_allocated(device: Any = None) -> int:
    """Bytes of live tensors."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Any = None) -> int:
    """The highest `memory_allocated` so far, or since `reset_peak_memory_stats`."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Any = None) -> int:
    """Bytes of live tensors and of the cache."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: Any = None) -> int:
    """The highest `memory_reserved` so far, or since `reset_peak_memory_stats`."""
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Set the peaks to the current values."""
    accelerator().memory.reset_peaks()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes that this process has not reserved, and all bytes of the device."""
    total = accelerator().device.properties().memory_bytes
    return total - memory_reserved(device), total


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A picture of the memory, for people."""
    return accelerator().memory.summary()


def memory_snapshot() -> list[dict[str, Any]]:
    """All blocks of the allocator."""
    return accelerator().memory.snapshot()


# --- Inductor ----------------------------------------------------------------------------------------------

_INDUCTOR = ("Scheduling", "PythonWrapperCodegen", "CppWrapperCodegen", "WrapperFxCodegen")
"""What Inductor asks of the module of a device: ``torch._inductor.codegen.common.init_backend_registration``."""


def __getattr__(name: str) -> Any:
    if name == "_initialized":  # torch.utils.checkpoint keeps random states only of devices that say so
        return is_initialized()
    if name in _INDUCTOR:
        return getattr(importlib.import_module("triton_porting_kit.pytorch.inductor.codegen"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
