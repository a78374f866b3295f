"""The devices of OpenCL's platforms, and what is known about each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from ctypes import c_uint32, c_void_p
from dataclasses import dataclass
from functools import cache

from triton_porting_kit.driver.opencl import pocl
from triton_porting_kit.driver.opencl.library import Library, open_library
from triton_porting_kit.errors import ToolchainError

SELECTION = "TPK_OPENCL_DEVICE"
"""Environment variable: part of the platform's or device's name; only devices that have it are used."""

SHARING = "TPK_OPENCL_SVM"
"""Environment variable, read with the first device: 0 uses buffers also where there is shared virtual memory."""

_COARSE_SVM = 1
_ALL_DEVICES = 0xFFFFFFFF
_NO_DEVICES = (-1, -1001)
"""CL_DEVICE_NOT_FOUND and the loader's code for a machine without drivers."""

_NAME, _VERSION, _DRIVER = 0x102B, 0x102F, 0x102D
_UNITS, _CLOCK, _LARGEST, _MEMORY, _LOCAL = 0x1002, 0x100C, 0x1010, 0x101F, 0x1023
_ALIGNMENT, _FLOATS, _SVM, _EXTENSIONS = 0x1019, 0x101B, 0x1053, 0x1030
_TYPE, _LARGEST_GROUP, _GROUP_MULTIPLE, _SUB_GROUP_SIZES = 0x1000, 0x1004, 0x1067, 0x4108
_GPU = 1 << 2
_WARPS = {"cl_nv_device_attribute_query": 0x4003, "cl_amd_device_attribute_query": 0x4043}
"""By the extension that defines it: what asks for the work-items that run in lockstep."""
_WIDTH = 0x103A
"""CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT."""
_ROUNDED = 1 << 7
"""CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT."""


@dataclass(frozen=True)
class DeviceInfo:
    """One device of a platform. Sizes are in bytes, the clock in MHz."""

    handle: int
    platform: str
    name: str
    version: str
    driver: str
    compute_units: int
    clock: int
    memory_bytes: int
    largest_allocation: int
    local_memory_bytes: int
    alignment: int
    vector_bytes: int
    rounds_division: bool
    shares_memory: bool
    """Whether kernels get addresses, in shared virtual memory; otherwise buffers and offsets."""
    extensions: tuple[str, ...]
    is_gpu: bool
    largest_group: int
    """Work-items of the largest work-group."""
    warp_size: int
    """Work-items that run in lockstep; 1 if it is a CPU, or not known."""
    sub_group_sizes: tuple[int, ...]
    """Sizes of sub-groups that kernels may ask for; empty where the device does not tell."""

    @property
    def arch(self) -> str:
        """The name for `GPUTarget`: the device's in small letters, digits and dashes."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def build_options(self) -> str:
        """The options that kernels need. Newer devices build OpenCL C 3.0, others 1.2."""
        major = re.match(r"OpenCL (\d+)", self.version)
        options = ["-cl-std=CL3.0" if major and int(major[1]) >= 3 else "-cl-std=CL1.2"]
        return " ".join(options + ["-cl-fp32-correctly-rounded-divide-sqrt"] * self.rounds_division)


@cache
def _all() -> tuple[DeviceInfo, ...]:
    with pocl.prepared():
        return tuple(_found(open_library()))


def _found(library: Library) -> Iterator[DeviceInfo]:
    count = c_uint32(0)
    code = library.clGetPlatformIDs(0, None, count)
    if code not in _NO_DEVICES:
        library.check(code, "counting platforms")
    platforms = (c_void_p * count.value)()
    if count.value:
        library.check(library.clGetPlatformIDs(count.value, platforms, None), "listing platforms")
    for platform in platforms:
        name = library.string("clGetPlatformInfo", platform, 0x0902)
        if library.clGetDeviceIDs(platform, _ALL_DEVICES, 0, None, count) in _NO_DEVICES:
            continue
        devices = (c_void_p * count.value)()
        library.check(
            library.clGetDeviceIDs(platform, _ALL_DEVICES, count.value, devices, None),
            f"listing devices of {name}",
        )
        yield from (_info(device, name) for device in devices if device)


def _info(device: int, platform: str) -> DeviceInfo:
    library = open_library()

    def number(what: int) -> int:
        return library.number("clGetDeviceInfo", device, what)

    def text(what: int) -> str:
        return library.string("clGetDeviceInfo", device, what)

    version, extensions = text(_VERSION), tuple(text(_EXTENSIONS).split())
    has_sharing = not version.startswith("OpenCL 1") and bool(number(_SVM) & _COARSE_SVM)
    is_gpu = bool(number(_TYPE) & _GPU)
    sizes = _sub_group_sizes(library, device, extensions)
    return DeviceInfo(
        device, platform, text(_NAME), version, text(_DRIVER), number(_UNITS), number(_CLOCK), number(_MEMORY),
        number(_LARGEST), number(_LOCAL), number(_ALIGNMENT) // 8, number(_WIDTH) * 4,
        bool(number(_FLOATS) & _ROUNDED), has_sharing and os.environ.get(SHARING, "1") != "0", extensions,
        is_gpu, number(_LARGEST_GROUP),
        _warp_size(library, device, version, extensions, sizes) if is_gpu else 1, sizes,
    )  # fmt: skip


def _sub_group_sizes(library: Library, device: int, extensions: tuple[str, ...]) -> tuple[int, ...]:
    if "cl_intel_required_subgroup_size" not in extensions:
        return ()
    data = library.info("clGetDeviceInfo", device, _SUB_GROUP_SIZES)
    return tuple(int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8))


def _warp_size(
    library: Library, device: int, version: str, extensions: tuple[str, ...], sizes: tuple[int, ...]
) -> int:
    """What the vendor's extension says, or the multiple that work-groups are best of, a power of two."""
    for extension, what in _WARPS.items():
        if extension in extensions:
            return library.number("clGetDeviceInfo", device, what)
    if sizes:
        return sizes[-1]
    multiple = library.number("clGetDeviceInfo", device, _GROUP_MULTIPLE) if version >= "OpenCL 3" else 1
    return multiple & -multiple or 1


def device_infos() -> tuple[DeviceInfo, ...]:
    """The devices that are used: all of them, or those that ``TPK_OPENCL_DEVICE`` names.

    Raises `ToolchainError` without a loader, and if the variable names none of the devices.
    """
    wanted = os.environ.get(SELECTION, "").lower()
    found = tuple(info for info in _all() if wanted in f"{info.platform}: {info.name}".lower())
    if wanted and not found:
        names = ", ".join(f"{info.platform}: {info.name}" for info in _all()) or "none"
        raise ToolchainError(
            f"{SELECTION} is {wanted!r}, which no OpenCL device has in its name; there are {names}"
        )
    return found
