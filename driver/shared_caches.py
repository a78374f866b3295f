"""One cache of compiled kernels for all the names of a device that has no other beside it.

Triton keeps the compiled kernels of a function by what the driver calls the current device. Drivers of GPUs call it
what torch does, a number. Torch calls the only CPU "cpu", and programs look for kernels under that name, or under 0.
"""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def share_caches() -> None:
    """Let a function's caches for the one device of a backend of the kit be found under any name of the device.

    Of the functions that were decorated before, which keep Triton's own way, they are found by the driver's number.
    """
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    from triton_porting_kit.driver.adapter import TritonDriver

    by_triton = JITFunction.create_binder

    def create_binder(self: Any) -> Any:
        active = driver.active
        if isinstance(active, TritonDriver) and len(active.devices) == 1:
            target = active.get_current_target()
            for caches in self.device_caches.values():
                if target in caches:
                    return caches
        return by_triton(self)

    JITFunction.create_binder = create_binder
