"""Opens a session: selects the backend, and determines how its memory is accessed."""

from __future__ import annotations

import os
from typing import Any

from triton_porting_kit.conformance.context import Session
from triton_porting_kit.conformance.memory import Block, HostMemory, KitMemory, MemoryAccess, TorchMemory
from triton_porting_kit.conformance.profile import Profile
from triton_porting_kit.errors import PortingKitError


class BackendNotFound(PortingKitError):
    """The backend is not registered, not active, or its memory cannot be accessed."""


def open_session(
    backend: str, profile: Profile, *, seed: int = 0, target: str = "", scratch: str = ""
) -> Session:
    """Select `backend` for this process and create a session.

    `target`: ``BACKEND:ARCH:WARP`` to compile for, without a device. Raises `BackendNotFound`.
    """
    _check_registered(backend)
    os.environ["TRITON_DEFAULT_BACKEND"] = backend
    if target:
        from triton_porting_kit.conformance.compile_only import CompileOnlyDriver, parse_target

        CompileOnlyDriver.install(parse_target(target))
        memory: MemoryAccess = HostMemory()
    else:
        memory = _memory(backend, _active_driver(backend), profile.memory)
    _lend_memory(memory)
    return Session(backend, memory, seed, profile.capabilities, scratch)


class _Lent:
    """Memory that a kernel requests at its launch, for example for descriptors that it creates."""

    def __init__(self, block: Block, alignment: int) -> None:
        self._block = block
        self._start = block.address + -block.address % alignment

    def data_ptr(self) -> int:
        return self._start


def _lend_memory(memory: MemoryAccess) -> None:
    """Provide memory to kernels that request it, as `triton.set_allocator` does for users."""
    import triton

    def allocate(size: int, alignment: int, stream: int | None) -> _Lent:
        return _Lent(memory.allocate(size + alignment), alignment)

    triton.set_allocator(allocate)


def _check_registered(backend: str) -> None:
    from triton.backends import backends

    if backend not in backends:
        raise BackendNotFound(
            f"Triton knows no backend {backend!r}; the registered ones are "
            f"{', '.join(sorted(backends)) or 'none'}. Install the "
            "package that registers it under the entry point group triton.backends; `tpk doctor` shows more"
        )


def _active_driver(backend: str) -> Any:
    from triton.backends import backends
    from triton.runtime import driver

    try:
        active = driver.active
        active.get_current_target()
    except Exception as error:
        raise BackendNotFound(
            f"backend {backend!r} is registered, but Triton cannot activate it ({_causes(error)}). Is "
            "its device available? To compile without one, use --compile-only and --target"
        ) from error
    chosen = backends[backend].driver
    if not isinstance(active, chosen):
        raise BackendNotFound(
            f"Triton activated {type(active).__module__}.{type(active).__qualname__}, not backend {backend!r}: "
            "releases before 3.7 do not read TRITON_DEFAULT_BACKEND, and there every other driver must be inactive"
        )
    return active


def _causes(error: BaseException | None) -> str:
    """The error and those that it was raised for, as far as the first one."""
    texts = []
    while error is not None:
        texts.append(f"{type(error).__name__}: {error}")
        error = error.__cause__
    return ", because of ".join(texts)


def _memory(backend: str, driver: Any, wanted: str) -> MemoryAccess:
    if wanted.startswith("torch:"):
        return TorchMemory(wanted.removeprefix("torch:"))
    device = getattr(driver, "device", None)
    if device is not None and hasattr(device, "memalloc"):
        return KitMemory(device)
    if wanted == "kit":
        raise BackendNotFound(
            f'the profile declares memory = "kit", but the driver of backend {backend!r} has no kit device as `.device`'
        )
    try:
        return TorchMemory(str(driver.get_active_torch_device()))
    except Exception as error:
        raise BackendNotFound(
            f"memory of backend {backend!r} cannot be accessed: its driver has no kit device as `.device`, and torch's "
            f'cannot be used ({error}). Declare it in {"conformance.toml"}: memory = "torch:DEVICE"'
        ) from error
