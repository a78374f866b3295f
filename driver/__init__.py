"""The device hooks, device arrays, and the adapter to Triton's driver interface.

`HostDevice` is in `triton_porting_kit.driver.host`, the adapter `TritonDriver` in `triton_porting_kit.driver.adapter`.
A device can be used without Triton.
"""

from triton_porting_kit.driver.array import DeviceArray
from triton_porting_kit.driver.device import DEFAULT_ALIGNMENT, DEFAULT_STREAM, Buffer, Device, Exchange
from triton_porting_kit.driver.hooks import HOOKS, Hook, name_missing_hooks
from triton_porting_kit.driver.properties import DeviceProperties, NativeLaunchEntry
from triton_porting_kit.driver.symmetric import SymmetricHeap, shared_segment, whole_pages

__all__ = [
    "DEFAULT_ALIGNMENT",
    "DEFAULT_STREAM",
    "HOOKS",
    "Buffer",
    "Device",
    "DeviceArray",
    "DeviceProperties",
    "Exchange",
    "Hook",
    "NativeLaunchEntry",
    "SymmetricHeap",
    "name_missing_hooks",
    "shared_segment",
    "whole_pages",
]
