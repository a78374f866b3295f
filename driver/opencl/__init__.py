"""Devices of OpenCL's platforms, through the loader of drivers (ICD), which is opened with the first device."""

from triton_porting_kit.driver.opencl.container import Container
from triton_porting_kit.driver.opencl.device import OpenCLDevice, open_devices
from triton_porting_kit.driver.opencl.library import REMEDY, find_library, has_platforms, open_library
from triton_porting_kit.driver.opencl.platforms import DeviceInfo, device_infos
from triton_porting_kit.driver.opencl.programs import BuildFailure, build_source

__all__ = [
    "REMEDY",
    "BuildFailure",
    "Container",
    "DeviceInfo",
    "OpenCLDevice",
    "build_source",
    "device_infos",
    "find_library",
    "has_platforms",
    "open_devices",
    "open_library",
]
