"""What tests of the suite share."""

from __future__ import annotations

from triton.runtime import driver

from triton_porting_kit.conformance.memory import KitMemory


def memory() -> KitMemory:
    """Memory of the active backend's device."""
    return KitMemory(driver.active.device)
