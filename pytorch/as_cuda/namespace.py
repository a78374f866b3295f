"""What stands under ``torch.cuda`` afterwards: functions of the target, and errors for the rest."""

from __future__ import annotations

import inspect
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NoReturn

import torch

from triton_porting_kit.errors import CudaNotMapped
from triton_porting_kit.pytorch.as_cuda import host
from triton_porting_kit.pytorch.as_cuda.target import Target

_OF_DEVICES = (
    "Event", "Stream", "StreamContext", "current_stream", "default_stream", "set_stream", "stream", "synchronize",
    "empty_cache", "mem_get_info", "manual_seed", "manual_seed_all", "seed", "initial_seed", "get_rng_state",
    "set_rng_state", "get_rng_state_all", "set_rng_state_all", "default_generators",
)  # fmt: skip
"""Names that both the module of a torch device and `host` have."""
_OF_MEMORY = (
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_snapshot",
    "memory_stats", "memory_summary", "reset_peak_memory_stats",
)  # fmt: skip
"""Names that only a torch device has: PyTorch keeps no statistics of the CPU's memory."""
_KEPT = (
    "OutOfMemoryError",
    "CudaError",
    "DeferredCudaCallError",
    "AcceleratorError",
    "cudaStatus",
    "check_error",
)
"""Types of errors, which programs name in ``except``."""


_MOST_THREADS = 2048
"""The most threads that a multiprocessor of NVIDIA's holds at once (CUDA C++ Programming Guide, compute capabilities).

Packages divide work among as many programs as these threads are for. A CPU's core takes programs of a million threads,
but runs one of them at a time."""


@dataclass(frozen=True)
class Properties:
    """A device's properties by the names of ``torch.cuda.get_device_properties``; sizes in bytes."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_multi_processor: int
    max_threads_per_block: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    regs_per_multiprocessor: int = 65536
    L2_cache_size: int = 0
    is_integrated: bool = False
    gcnArchName: str = ""
    """Inductor reads it where torch was built without CUDA."""


def members(target: Target) -> dict[str, Any]:
    """The names of ``torch.cuda`` that are mapped."""
    own = host if target.on_cpu else getattr(torch, target.device)
    found = {name: getattr(own, name) for name in _OF_DEVICES}
    if not target.on_cpu:
        found |= {name: getattr(own, name) for name in _OF_MEMORY}
        own.Stream.cuda_stream = property(lambda stream: stream.stream_id)
    return found | _queries(target) | _nothing_to_do()


_LIBRARIES = ("torch", "triton", "triton_porting_kit")


def asked_by_library() -> bool:
    """Whether the function that calls this was called by torch or Triton, which ask for CUDA itself."""
    module = sys._getframe(2).f_globals.get("__name__", "")
    return str(module).partition(".")[0] in _LIBRARIES


def _queries(target: Target) -> dict[str, Any]:
    def index(device: Any) -> int:
        """Check that a device is the first one."""
        target.device_of(device)
        return 0

    class device(nullcontext[Any]):
        """A context in which a device is current. There is one."""

        def __init__(self, device: Any) -> None:
            super().__init__()
            self.idx = index(device)

    def set_device(device: Any) -> None:
        """Make a device current. There is one."""
        index(device)

    def get_device_properties(device: Any = None) -> Properties:
        """The properties of the device."""
        index(device)
        return _properties(target)

    def get_device_capability(device: Any = None) -> tuple[int, int]:
        """The compute capability, which is not the device's own."""
        index(device)
        return target.capability

    return {
        "device": device,
        "device_of": device,
        "is_available": lambda: not asked_by_library(),
        "is_initialized": lambda: True,
        "init": lambda: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": set_device,
        "get_device_properties": get_device_properties,
        "get_device_capability": get_device_capability,
        "get_device_name": lambda device=None: get_device_properties(device).name,
        "get_arch_list": lambda: ["sm_{}{}".format(*target.capability)],
        "is_bf16_supported": lambda including_emulation=True: True,
        "is_tf32_supported": lambda: True,
        "is_current_stream_capturing": lambda: False,
        "_is_in_bad_fork": lambda: False,
        "_lazy_init": lambda: None,
        "_exchange_device": lambda device: 0,
        "_maybe_exchange_device": lambda device: 0,
    }


def _nothing_to_do() -> dict[str, Any]:
    return {"ipc_collect": lambda: None, "reset_max_memory_allocated": lambda device=None: None}


def _properties(target: Target) -> Properties:
    found = target.driver.devices[0].properties()
    major, minor = target.capability
    return Properties(
        name=found.name,
        major=major,
        minor=minor,
        total_memory=found.memory_bytes,
        multi_processor_count=found.core_count,
        warp_size=found.warp_size,
        max_threads_per_multi_processor=min(found.max_threads_per_program, _MOST_THREADS),
        max_threads_per_block=found.max_threads_per_program,
        shared_memory_per_block=found.scratch_limit,
        shared_memory_per_block_optin=found.scratch_limit,
        shared_memory_per_multiprocessor=found.scratch_limit,
    )


def unmapped(module: ModuleType, mapped: dict[str, Any]) -> dict[str, Any]:
    """The public functions and classes of ``torch.cuda`` that have no meaning on the target: they raise."""
    found: dict[str, Any] = {}
    for name, value in vars(module).items():
        if name.startswith("_") or name in mapped or name in _KEPT or not _is_own(value):
            continue
        if inspect.isclass(value) and not issubclass(value, BaseException | torch.Tensor):
            if not isinstance(value, type(torch.Tensor)) and not name.endswith(("Tensor", "Storage")):
                found[name] = type(name, (), {"__init__": _refusing(name), "__module__": module.__name__})
        elif inspect.isroutine(value):
            found[name] = _refusing(name)
    return found


def _is_own(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).startswith(("torch.cuda", "torch._C"))


def _refusing(name: str) -> Any:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise CudaNotMapped(
            f"torch.cuda.{name}",
            "leave this call out where torch.version.cuda is None; docs/pytorch.md lists what as_cuda maps",
        )

    refuse.__name__ = name
    return refuse
