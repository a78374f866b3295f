"""The description of a run in its report: the device, the driver, and the versions of packages."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triton_porting_kit.conformance.context import Session
    from triton_porting_kit.conformance.profile import Profile

TOOLCHAIN = ("numba-cuda-mlir", "llvmlite", "numpy", "torch", "rocm-llvm-python")
"""Packages whose versions affect results, if they are installed."""

_KIT_DRIVER = "triton_porting_kit.driver.adapter"
"""The module of the base class of drivers made with the kit."""


def versions() -> dict[str, str]:
    """The versions of the installed packages of `TOOLCHAIN`."""
    found = {}
    for package in TOOLCHAIN:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def describe(session: Session, profile: Profile) -> dict[str, Any]:
    """Describe a session with JSON types."""
    import triton
    from triton.backends import backends
    from triton.runtime import driver

    active = driver.active
    target = active.get_current_target()
    registered = backends[session.backend]
    return {
        "triton_version": triton.__version__,
        "driver": f"{type(active).__module__}.{type(active).__qualname__}",
        "compiler": f"{registered.compiler.__module__}.{registered.compiler.__qualname__}",
        "target": {"backend": target.backend, "arch": target.arch, "warp_size": target.warp_size},
        "device": session.memory.describe(),
        "kit_device": session.memory.kit_device is not None,
        "kit_driver": any(base.__module__ == _KIT_DRIVER for base in type(active).__mro__),
        "profile": profile.to_json(),
    }
