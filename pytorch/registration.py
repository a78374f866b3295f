"""Registration of a Triton backend as a torch device."""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

import torch
from torch.utils import backend_registration

from triton_porting_kit.driver.active import SELECTION_VARIABLE
from triton_porting_kit.errors import InvalidArgument
from triton_porting_kit.pytorch import (
    accelerator,
    generators,
    inductor,
    modules,
    operators,
    pinned,
    profiling,
    serialization,
    storages,
)
from triton_porting_kit.pytorch._storage import Answer
from triton_porting_kit.pytorch.device import module, streams

_UNNAMED = "privateuseone"


def register_device(backend: str, name: str) -> bool:
    """As `triton_porting_kit.pytorch.register_device`."""
    if not re.fullmatch(r"[a-z_]+", name):
        raise InvalidArgument(
            f"{name!r} cannot be a torch device: PyTorch accepts names of lower-case letters and underscores"
        )
    taken = accelerator.registered_name() or torch._C._get_privateuse1_backend_name()
    if taken == name:
        return True
    if taken != _UNNAMED:
        warnings.warn(
            f"torch.device({name!r}) is not available: this process has torch.device({taken!r}), and PyTorch gives one "
            f"device to packages. Set {SELECTION_VARIABLE}={backend} to have this one",
            stacklevel=2,
        )
        return False
    if _another_is_selected(backend):
        return False
    accelerator.set_accelerator(name, backend)
    backend_registration.rename_privateuse1_backend(name)
    backend_registration.generate_methods_for_privateuse1_backend(
        for_storage=True,
        unsupported_dtype=[torch.quint8, torch.quint4x2, torch.quint2x4, torch.qint32, torch.qint8],
    )
    torch._register_device_module(name, module)
    torch._C._acc.register_python_privateuseone_hook(_Hooks())
    torch._C._acc.register_python_privateuseone_device_guard(_Guard())
    torch.autograd.Variable._execution_engine = _Engine()
    operators.register()
    serialization.register()
    modules.keep_shared_parameters()
    storages.register()
    generators.register()
    pinned.register()
    profiling.register()
    inductor.register()
    return True


def _another_is_selected(backend: str) -> bool:
    """Whether the user selected another backend that is also a torch device."""
    selected = os.environ.get(SELECTION_VARIABLE)
    if not selected or selected == backend:
        return False
    from importlib.metadata import entry_points

    return selected in entry_points(group="torch.backends").names


class _Hooks(torch._C._acc.PrivateUse1Hooks):
    def is_available(self) -> bool:
        return module.is_available()

    def has_primary_context(self, dev_id: int) -> bool:
        return True

    def is_built(self) -> bool:
        return True


_DEVICE_TYPE = Answer(torch._C._autograd.DeviceType.PrivateUse1)


class _Guard(torch._C._acc.DeviceGuard):
    type_ = _DEVICE_TYPE


class _Engine(type(torch.autograd.Variable._execution_engine)):  # type: ignore[misc]
    """Torch's engine of gradients, in order with the device's streams.

    It raises the exception that the device guard had to put aside. Such exceptions are raised while torch traces a
    gradient, for instance if a result's size depends on values.
    """

    def run_backward(self, *args: Any, **kwargs: Any) -> Any:
        _DEVICE_TYPE.take()
        try:
            with streams.backward():
                return super().run_backward(*args, **kwargs)
        except SystemError:
            if exception := _DEVICE_TYPE.take():
                raise exception from None
            raise
