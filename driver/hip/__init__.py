"""AMD GPUs as devices, through HIP's runtime library. It is opened with the first device."""

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
