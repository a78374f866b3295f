"""What is replaced in torch, because torch has no hook for it. Each function replaces one thing.

Triton in Inductor names its devices. The discussion of hooks: https://github.com/pytorch/pytorch/issues/171956 and
https://github.com/pytorch/pytorch/issues/189138.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

from triton_porting_kit.pytorch import profiling
from triton_porting_kit.pytorch.accelerator import accelerator

_SHORTEST_PIECE = 256
"""Elements that a piece of a reduction has at least."""


def separate_caches() -> None:
    """Let the keys of Inductor's caches of graphs depend on this package, which has a part in what they hold."""
    codecache: Any = importlib.import_module("torch._inductor.codecache")
    torch_key = codecache.torch_key
    ours = _digest()

    @functools.wraps(torch_key)
    def patched() -> bytes:
        key = bytes(torch_key())
        return key if key.endswith(ours) else key + ours  # compile workers are given this process's key

    codecache.torch_key = patched


def _digest() -> bytes:
    """A digest of the sources of this package."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


def accept_templates() -> None:
    """Let Inductor use Triton templates on the device.

    ``is_big_gpu`` allows them on GPUs of at least 68 cores (torch 2.13); the number is of NVIDIA's GPUs.
    """
    from torch._inductor import utils

    is_big_gpu = utils.is_big_gpu

    @functools.wraps(is_big_gpu)
    def patched(index_or_device: Any = 0) -> bool:
        if isinstance(index_or_device, torch.device) and index_or_device.type == accelerator().name:
            return True
        return bool(is_big_gpu(index_or_device))

    utils.is_big_gpu = patched  # type: ignore[assignment]


def copy_without_pinned_memory() -> None:
    """Let compiled copies between the device and the host wait.

    Inductor allocates pinned memory for others (2.13), for which PyTorch needs an allocator in C++.
    """
    from torch._inductor.ir import DeviceCopy

    create = DeviceCopy.create

    @functools.wraps(create)
    def patched(x: Any, device: torch.device, non_blocking: bool) -> Any:
        ours = accelerator().name in (device.type, x.get_device().type)
        return create(x, device, non_blocking and not ours)

    DeviceCopy.create = staticmethod(patched)  # type: ignore[method-assign]


def split_long_reductions() -> None:
    """Let Inductor split a reduction in pieces of some length only.

    On devices of few cores it splits short ones, too, unrolls the pieces, and fails on the assertion that a piece is a
    reduction (torch 2.13, ``_find_split_reduction`` in ir.py). `InductorChoices` could be derived from, but the setting
    that names the class is one of the thread that compiles.
    """
    from torch._inductor.choices import InductorChoices

    split_factor = InductorChoices.reduction_split_factor

    @functools.wraps(split_factor)
    def patched(
        device: torch.device, reduction_numel_hint: int, numel_hint: int, inner_reduction: bool
    ) -> int:
        split = split_factor(device, reduction_numel_hint, numel_hint, inner_reduction)
        short = device.type == accelerator().name and reduction_numel_hint < _SHORTEST_PIECE * split
        return 1 if short else int(split)

    InductorChoices.reduction_split_factor = staticmethod(patched)  # type: ignore[method-assign]


def select_drivers() -> None:
    """Select Triton's driver for each kernel by the device that the kernel is for.

    Inductor (2.13) selects a driver before it compiles a kernel, by asking every driver whether it is active, and
    selects none before it loads one. So the driver of another device loads the kernel if a program uses two devices,
    or if TRITON_DEFAULT_BACKEND names another one.
    """
    from torch._dynamo.device_interface import get_interface_for_device
    from torch._inductor.runtime import triton_helpers

    # Any: mypy finds GPUTarget in this module or not, depending on what is installed.
    triton_heuristics: Any = importlib.import_module("torch._inductor.runtime.triton_heuristics")
    compile_ = triton_heuristics.CachingAutotuner._precompile_config
    load = triton_heuristics.TritonCompileResult.make_launcher
    to_gpu = triton_helpers.set_driver_to_gpu

    @functools.wraps(compile_)
    def _precompile_config(self: Any, cfg: Any) -> Any:
        with _driver_for(self.device_props.type):
            return compile_(self, cfg)

    @functools.wraps(load)
    def make_launcher(self: Any) -> Any:
        device_type = self.compile_meta["device_type"]
        with _driver_for(device_type):
            launcher = load(self)
        if device_type == accelerator().name:
            _launchers.add(launcher)
        profiling.note_kernel(self.kernel.function, of_device=device_type == accelerator().name)
        return launcher

    make_target = triton_heuristics.GPUTarget

    def target(backend: str, arch: Any, warp_size: int) -> Any:
        """A target of the backend's name: Inductor passes the type of the torch device."""
        ours = backend == accelerator().name
        return make_target(accelerator().backend if ours else backend, arch, warp_size)

    triton_heuristics.GPUTarget = target
    interface = triton_heuristics.CachingAutotuner.get_device_interface

    @functools.wraps(to_gpu)
    def set_driver_to_gpu() -> None:
        # Generated modules call this, too. It fails if no GPU of torch's own is there.
        if not _selected and (torch.cuda.is_available() or torch.xpu.is_available()):
            to_gpu()

    @functools.wraps(interface)
    def get_device_interface(self: Any) -> Any:
        # Inductor replaces "hip" by "cuda" in the name, also in that of an "acme-chip".
        ours = self.device_props.type == accelerator().name
        return get_interface_for_device(self.device_props.type) if ours else interface(self)

    triton_heuristics.CachingAutotuner.get_device_interface = get_device_interface

    triton_heuristics.CachingAutotuner._precompile_config = _precompile_config
    triton_heuristics.TritonCompileResult.make_launcher = make_launcher
    triton_helpers.set_driver_to_gpu = set_driver_to_gpu
    # Generated modules call this where they have code for the CPU, and leave that driver active: the next kernel that
    # the program launches itself would get the CPU's. Each kernel has its driver by the functions above.
    triton_helpers.set_driver_to_cpu = lambda: None
    accelerator().after_reset.append(_load_again)


_launchers: weakref.WeakSet[Any] = weakref.WeakSet()
"""The device's launchers, which Inductor generates: each has the handle of its loaded kernel among its globals."""


def _load_again() -> None:
    """Load all kernels after a reset of the device. Triton does so at the next launch; Inductor keeps the handles."""
    with _device_driver():
        for launcher in list(_launchers):
            scope = launcher.__globals__
            kernel = scope["bin"]
            kernel._init_handles()  # as Inductor does
            scope["function"], scope["runner"] = kernel.function, kernel.run
            profiling.note_kernel(kernel.function, of_device=True)


_selected: list[str] = []


def _driver_for(device_type: str) -> Any:
    if device_type == accelerator().name:
        return _device_driver()
    return _cpu_driver() if device_type == "cpu" else nullcontext()


@contextmanager
def _device_driver() -> Iterator[None]:
    with accelerator().active():
        _selected.append(accelerator().name)
        try:
            yield
        finally:
            _selected.pop()


@contextmanager
def _cpu_driver() -> Iterator[None]:
    from triton.backends import backends
    from triton.runtime import driver

    previous = driver.active
    if "cpu" in backends:
        driver.set_active(backends["cpu"].driver())
    try:
        yield
    finally:
        driver.set_active(previous)
