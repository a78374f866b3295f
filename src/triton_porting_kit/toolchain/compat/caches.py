"""Triton's caches: files of compiled kernels, and the kernels that a function keeps."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .releases import internal


@internal
def cache_root() -> Path:
    """The folder of Triton's compile cache."""
    from triton import knobs

    return Path(knobs.cache.dir)


@internal
def kernel_cache_folder(key: str) -> Path | None:
    """The folder that holds the artefacts of the kernel with this hash; None where they are not in a folder."""
    from triton import knobs

    return _kernel_cache_folder(key, knobs.cache.dir, knobs.cache.manager_class)


@functools.lru_cache(maxsize=16)
def _kernel_cache_folder(key: str, *_settings: Any) -> Path | None:
    # A manager makes the folder anew, which takes as long as reading from it.
    from triton.runtime.cache import get_cache_manager

    manager = get_cache_manager(key)
    # A remote cache copies what it fetches to files.
    folder = getattr(getattr(manager, "_file_cache_manager", manager), "cache_dir", None)
    return None if folder is None else Path(folder)


@internal
def artefact_folder(metadata: Mapping[str, Any], name: str) -> Path | None:
    """Where Triton wrote an artefact of the compilation with this metadata; None where it did not."""
    from triton import knobs

    known = "hash" in metadata and (name == "source" or not knobs.compilation.store_binary_only)
    return kernel_cache_folder(metadata["hash"]) if known else None


def forget_cache_folders() -> None:
    """Ask anew where kernels are cached."""
    _kernel_cache_folder.cache_clear()


@functools.cache
@internal
def share_kernel_caches() -> None:
    """Let a function's compiled kernels be found under any name of the device, if its driver `has_one_device`.

    Triton keeps them by what the driver calls the current device. Drivers call it what torch calls a GPU, a number.
    Torch calls the only CPU "cpu", and programs look for kernels under that name, or under 0. For functions that
    were decorated before, only the driver's number works.
    """
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    by_triton = JITFunction.create_binder

    def create_binder(self: Any) -> Any:
        if getattr(driver.active, "has_one_device", False):
            target = driver.active.get_current_target()
            # Each entry holds the target that it is for.
            for caches in self.device_caches.values():
                if target in caches:
                    return caches
        return by_triton(self)

    JITFunction.create_binder = create_binder
