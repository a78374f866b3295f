"""AMD's GPUs as devices, through HIP's runtime library, which is opened when the first device is."""

from triton_porting_kit.driver.hip.device import HipDevice, KernelResources, open_devices
from triton_porting_kit.driver.hip.library import (
    REMEDY,
    LibrarySearch,
    Place,
    device_count,
    find_library,
    open_library,
)

__all__ = [
    "REMEDY",
    "HipDevice",
    "KernelResources",
    "LibrarySearch",
    "Place",
    "device_count",
    "find_library",
    "open_devices",
    "open_library",
]
