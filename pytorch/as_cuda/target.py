"""What ``cuda`` stands for: a Triton backend of the kit, and the torch device of its tensors."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

import torch

from triton_porting_kit.driver.active import reports_active, selected_backend
from triton_porting_kit.driver.adapter import TritonDriver
from triton_porting_kit.errors import CudaNotMapped
from triton_porting_kit.pytorch.accelerator import registered_name
from triton_porting_kit.toolchain import compat

CAPABILITY_VARIABLE = "TPK_CUDA_CAPABILITY"
"""The environment variable with the compute capability that programs see, such as ``9.0``."""
DEFAULT_CAPABILITY = (8, 0)
"""The first one with bfloat16: programs that look at it choose their plain kernels."""


@dataclass(frozen=True)
class Target:
    """A Triton backend and the torch device of its tensors."""

    backend: str
    device: str
    """The type of the torch device: ``cpu``, or that of a package."""
    driver: TritonDriver

    @property
    def on_cpu(self) -> bool:
        return self.device == "cpu"

    def device_of(self, given: Any) -> Any:
        """A device as functions of torch take it, with ``cuda`` and device numbers replaced, and ``cpu:0`` if it is
        what programs see of the target.

        Raises `CudaNotMapped` for all but the first device.
        """
        if isinstance(given, bool) or not isinstance(given, str | int | torch.device):
            return given
        text = f"cuda:{given}" if isinstance(given, int) else str(given)
        name, _, index = text.partition(":")
        if name != "cuda" and (not self.on_cpu or text != "cpu:0"):
            return given
        if index not in ("", "0"):
            raise CudaNotMapped(f"the device {text}", "use cuda or cuda:0: there is one device")
        return torch.device(self.device)

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability that programs see."""
        text = os.environ.get(CAPABILITY_VARIABLE)
        if not text:
            return DEFAULT_CAPABILITY
        found = re.fullmatch(r"(\d+)\.(\d+)", text)
        if found is None:
            raise CudaNotMapped(f"{CAPABILITY_VARIABLE}={text}", "write it as MAJOR.MINOR, for example 9.0")
        return int(found[1]), int(found[2])


def choose() -> Target:
    """The backend that ``TRITON_DEFAULT_BACKEND`` names; otherwise the one of the registered torch device, or the
    active one. It becomes Triton's active driver.

    Raises `CudaNotMapped` if that is no backend of the kit, or if its torch device is not registered.
    """
    from triton.backends import backends

    own = {
        name: backend.driver for name, backend in backends.items() if issubclass(backend.driver, TritonDriver)
    }
    selected = selected_backend()
    if selected is None:
        registered = registered_name()
        active = [name for name, driver in own.items() if reports_active(driver)]
        named = [name for name, driver in own.items() if registered and driver.torch_device == registered]
        selected = next(iter(named or active), None)
    if selected is None or selected not in own:
        what = (
            f"the Triton backend {selected!r}"
            if selected
            else "a machine without an active backend of the kit"
        )
        raise CudaNotMapped(what, f"set TRITON_DEFAULT_BACKEND to one of {', '.join(sorted(own))}")
    driver = own[selected]()
    device = driver.torch_device
    if device not in ("cpu", registered_name()):
        raise CudaNotMapped(
            f"the torch device {device!r} of backend {selected!r}, which is not registered",
            "install the backend's package with its entry point of group torch.backends",
        )
    compat.select_driver(driver)
    return Target(selected, device, driver)
