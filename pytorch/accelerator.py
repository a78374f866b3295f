"""`Accelerator`: the torch device of this process, and the Triton backend that runs its kernels."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from triton_porting_kit.driver.adapter import TritonDriver
from triton_porting_kit.driver.device import Device
from triton_porting_kit.errors import InvalidArgument
from triton_porting_kit.pytorch.memory import Allocator


class Accelerator:
    """The first device of a Triton backend as a torch device. It is opened when it is first needed."""

    def __init__(self, name: str, backend: str) -> None:
        self.name = name
        """The type of the torch device."""
        self.backend = backend
        """The name of the Triton backend."""
        self.after_reset: list[Callable[[], None]] = []
        """Called before the first tensor is made after a reset of the device. Until then no kernel can run."""
        self._lock = threading.RLock()
        self._process: int | None = None

    @cached_property
    def driver(self) -> TritonDriver:
        """The backend's driver."""
        from triton.backends import backends

        if self.backend not in backends:
            raise InvalidArgument(
                f"torch.device({self.name!r}) needs the Triton backend {self.backend!r}, which is not installed; "
                f"installed are {', '.join(sorted(backends))}"
            )
        return backends[self.backend].driver()  # type: ignore[no-any-return]

    @property
    def device(self) -> Device:
        """The device. Raises RuntimeError as `check_process`."""
        self.check_process()
        return self._device

    @cached_property
    def _device(self) -> Device:
        with self._lock:
            self._process = os.getpid()
            return self.driver.devices[0]

    @property
    def memory(self) -> Allocator:
        """The memory of its tensors. Raises RuntimeError as `check_process`."""
        self.check_process()
        return self._memory

    @cached_property
    def _memory(self) -> Allocator:
        with self._lock:
            return vars(self).get("_memory") or Allocator(self.device, self._was_reset)

    def _was_reset(self) -> None:
        for call in self.after_reset:
            call()

    @property
    def is_open(self) -> bool:
        """Whether this process has opened the device."""
        return self._process is not None

    @property
    def in_forked_child(self) -> bool:
        """Whether a parent process opened the device, and forked."""
        return self._process is not None and self._process != os.getpid()

    def check_process(self) -> None:
        """Raise RuntimeError if a parent process opened the device, which its children cannot use."""
        if self.in_forked_child:
            raise RuntimeError(
                f"Cannot re-initialize {self.name} in forked subprocess. To use {self.name} with multiprocessing, "
                "you must use the 'spawn' start method"
            )

    @contextmanager
    def active(self) -> Iterator[None]:
        """A context in which Triton launches kernels on the device."""
        from triton.runtime import driver

        previous = driver.active
        if previous is self.driver:
            yield
            return
        driver.set_active(self.driver)
        try:
            yield
        finally:
            driver.set_active(previous)

    @cached_property
    def target(self) -> Any:
        """The target that kernels for the device are compiled for: Triton's ``GPUTarget``."""
        return self.driver.make_target(self.device)

    def stream(self) -> int:
        """The handle of this thread's current stream."""
        return self.driver.get_current_stream(0)


_registered: list[Accelerator] = []


def accelerator() -> Accelerator:
    """The torch device of this process. Raises `InvalidArgument` if none is registered."""
    if not _registered:
        raise InvalidArgument(
            "no torch device is registered; call triton_porting_kit.pytorch.register_device"
        )
    return _registered[0]


def set_accelerator(name: str, backend: str) -> Accelerator:
    """Make a Triton backend the torch device `name` of this process, once."""
    _registered.append(Accelerator(name, backend))
    return _registered[0]


def registered_name() -> str | None:
    """The name of the registered torch device, if any."""
    return _registered[0].name if _registered else None
