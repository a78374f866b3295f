"""Kernels that a test compiles for another backend than the rest of its process does.

Triton keeps what it compiled by the number of the device, and with it the backend.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

from triton import JITFunction

_KERNELS = [weakref.ref(found) for found in gc.get_objects() if isinstance(found, JITFunction)]
_create = JITFunction.__init__


def _created(self: Any, *args: Any, **kwargs: Any) -> None:
    _create(self, *args, **kwargs)
    _KERNELS.append(weakref.ref(self))


JITFunction.__init__ = _created


def forget() -> None:
    """Let Triton compile all kernels of this process again."""
    for reference in _KERNELS:
        kernel = reference()
        if kernel is not None and hasattr(kernel, "device_caches"):
            kernel.device_caches.clear()
