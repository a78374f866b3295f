"""OpenCL's loader: where it is, its functions by ctypes, and its error codes as the kit's errors."""

from __future__ import annotations

import ctypes
import glob
import os
from ctypes import POINTER, c_char_p, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache, cached_property
from typing import Any

from triton_porting_kit.abi.launching import Code
from triton_porting_kit.driver.opencl import _opencl
from triton_porting_kit.errors import (
    DeviceError,
    DeviceLost,
    InvalidArgument,
    InvalidModule,
    LaunchError,
    OutOfMemory,
    ToolchainError,
)

VARIABLE = "TPK_OPENCL_LIBRARY"
"""Environment variable: the path of the loader, or of a driver that is used without one."""

REMEDY = (
    "install the loader and a driver (Debian: `apt-get install ocl-icd-libopencl1 pocl-opencl-icd`), "
    f"or name the library in {VARIABLE}"
)

_NAME = "libOpenCL.so.1"
_FOLDERS = ("/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib", "/opt/*/lib", "/opt/*/lib64")
_VENDORS = "/etc/OpenCL/vendors"

_handle, _status, _count, _flags = c_void_p, POINTER(c_int32), c_uint32, c_uint64
_text, _handles = c_char_p, POINTER(c_void_p)
_EVENTS: tuple[Any, ...] = (_count, _handles, _handles)
"""The last parameters of what is enqueued: events to wait for, and the event that is made."""

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    # name: result, parameters
    "clGetPlatformIDs": (c_int32, _count, _handles, POINTER(_count)),
    "clGetPlatformInfo": (c_int32, _handle, _count, c_size_t, c_void_p, POINTER(c_size_t)),
    "clGetDeviceIDs": (c_int32, _handle, _flags, _count, _handles, POINTER(_count)),
    "clGetDeviceInfo": (c_int32, _handle, _count, c_size_t, c_void_p, POINTER(c_size_t)),
    "clCreateContext": (c_void_p, c_void_p, _count, _handles, c_void_p, c_void_p, _status),
    "clReleaseContext": (c_int32, _handle),
    "clCreateCommandQueue": (c_void_p, _handle, _handle, _flags, _status),
    "clRetainCommandQueue": (c_int32, _handle),
    "clReleaseCommandQueue": (c_int32, _handle),
    "clFlush": (c_int32, _handle),
    "clFinish": (c_int32, _handle),
    "clSVMAlloc": (c_void_p, _handle, _flags, c_size_t, _count),
    "clSVMFree": (None, _handle, c_void_p),
    "clEnqueueSVMMemcpy": (c_int32, _handle, _count, c_void_p, c_void_p, c_size_t, *_EVENTS),
    "clEnqueueSVMMemFill": (c_int32, _handle, c_void_p, c_void_p, c_size_t, c_size_t, *_EVENTS),
    "clCreateBuffer": (c_void_p, _handle, _flags, c_size_t, c_void_p, _status),
    "clReleaseMemObject": (c_int32, _handle),
    "clEnqueueReadBuffer": (c_int32, _handle, _handle, _count, c_size_t, c_size_t, c_void_p, *_EVENTS),
    "clEnqueueWriteBuffer": (c_int32, _handle, _handle, _count, c_size_t, c_size_t, c_void_p, *_EVENTS),
    "clEnqueueCopyBuffer": (
        c_int32, _handle, _handle, _handle, c_size_t, c_size_t, c_size_t, *_EVENTS,
    ),
    "clEnqueueFillBuffer": (
        c_int32, _handle, _handle, c_void_p, c_size_t, c_size_t, c_size_t, *_EVENTS,
    ),
    "clEnqueueMarkerWithWaitList": (c_int32, _handle, *_EVENTS),
    "clEnqueueBarrierWithWaitList": (c_int32, _handle, *_EVENTS),
    "clWaitForEvents": (c_int32, _count, _handles),
    "clRetainEvent": (c_int32, _handle),
    "clReleaseEvent": (c_int32, _handle),
    "clGetEventInfo": (c_int32, _handle, _count, c_size_t, c_void_p, POINTER(c_size_t)),
    "clGetEventProfilingInfo": (c_int32, _handle, _count, c_size_t, c_void_p, POINTER(c_size_t)),
    "clCreateProgramWithSource": (c_void_p, _handle, _count, POINTER(_text), POINTER(c_size_t), _status),
    "clCreateProgramWithBinary": (
        c_void_p, _handle, _count, _handles, POINTER(c_size_t), POINTER(_text), _status, _status,
    ),
    "clBuildProgram": (c_int32, _handle, _count, _handles, _text, c_void_p, c_void_p),
    "clGetProgramBuildInfo": (c_int32, _handle, _handle, _count, c_size_t, c_void_p, POINTER(c_size_t)),
    "clGetProgramInfo": (c_int32, _handle, _count, c_size_t, c_void_p, POINTER(c_size_t)),
    "clReleaseProgram": (c_int32, _handle),
    "clCreateKernel": (c_void_p, _handle, _text, _status),
    "clReleaseKernel": (c_int32, _handle),
    "clSetKernelArg": (c_int32, _handle, _count, c_size_t, c_void_p),
    "clSetKernelExecInfo": (c_int32, _handle, _count, c_size_t, c_void_p),
    "clEnqueueNDRangeKernel": (
        c_int32, _handle, _handle, _count, POINTER(c_size_t), POINTER(c_size_t), POINTER(c_size_t), *_EVENTS,
    ),
}  # fmt: skip

_CODES: dict[int, tuple[str, type[DeviceError]]] = {
    -2: ("CL_DEVICE_NOT_AVAILABLE", DeviceLost), -4: ("CL_MEM_OBJECT_ALLOCATION_FAILURE", OutOfMemory),
    -5: ("CL_OUT_OF_RESOURCES", OutOfMemory), -6: ("CL_OUT_OF_HOST_MEMORY", OutOfMemory),
    -7: ("CL_PROFILING_INFO_NOT_AVAILABLE", InvalidArgument), -11: ("CL_BUILD_PROGRAM_FAILURE", InvalidModule),
    -14: ("CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", LaunchError), -30: ("CL_INVALID_VALUE", InvalidArgument),
    -33: ("CL_INVALID_DEVICE", DeviceLost), -34: ("CL_INVALID_CONTEXT", DeviceLost),
    -36: ("CL_INVALID_COMMAND_QUEUE", InvalidArgument), -42: ("CL_INVALID_BINARY", InvalidModule),
    -44: ("CL_INVALID_PROGRAM", InvalidModule), -45: ("CL_INVALID_PROGRAM_EXECUTABLE", InvalidModule),
    -46: ("CL_INVALID_KERNEL_NAME", InvalidModule), -52: ("CL_INVALID_KERNEL_ARGS", LaunchError),
    -54: ("CL_INVALID_WORK_GROUP_SIZE", LaunchError), -61: ("CL_INVALID_BUFFER_SIZE", OutOfMemory),
    -63: ("CL_INVALID_GLOBAL_WORK_SIZE", LaunchError),
}  # fmt: skip
"""OpenCL's names of its codes, and the errors that they are."""


def find_library() -> str | None:
    """The path of the loader; None if there is none. No library is opened for this."""
    if named := os.environ.get(VARIABLE):
        return named if os.path.isfile(named) else None
    folders = [*filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")), *_FOLDERS]
    return next((path for folder in folders for path in sorted(glob.glob(f"{folder}/{_NAME}"))), None)


def has_platforms() -> bool:
    """Whether a loader and a driver are installed. It opens neither: a driver brings a compiler with it."""
    if find_library() is None:
        return False
    folder = os.environ.get("OCL_ICD_VENDORS", _VENDORS)
    return bool(os.environ.get(VARIABLE) or os.path.isfile(folder) or glob.glob(f"{folder}/*.icd"))


class Library:
    """OpenCL's functions. Each raises the error that its code stands for, with what was being done."""

    def __init__(self, path: str) -> None:
        try:
            self._library = ctypes.CDLL(path)
            for name, (result, *parameters) in _FUNCTIONS.items():
                function = getattr(self._library, name)
                function.restype, function.argtypes = result, parameters
                setattr(self, name, function)
        except (OSError, AttributeError) as error:
            raise ToolchainError(f"{path} is not OpenCL's loader: {error}. What to do: {REMEDY}") from None
        self.path = path

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"OpenCL's function {name} is not in the table of the kit")

    @cached_property
    def functions(self) -> _opencl.Functions:
        """The functions that native launches call."""
        addresses = {name: ctypes.cast(getattr(self, name), c_void_p).value or 0 for name in _FUNCTIONS}
        meanings = {code: (int(Code[kind.__name__]), name) for code, (name, kind) in _CODES.items()}
        return _opencl.Functions(addresses, meanings)

    def check(self, code: int, what: str) -> None:
        """Raise the error that a code stands for; 0 is none."""
        if code:
            name, kind = _CODES.get(code, (f"code {code}", DeviceError))
            raise kind(f"OpenCL: {what} failed: {name}")

    def create(self, name: str, what: str, *arguments: Any) -> int:
        """The handle that a function makes which reports its code by its last argument."""
        code = c_int32(0)
        handle = getattr(self, name)(*arguments, ctypes.byref(code))
        self.check(code.value if code.value else (0 if handle else -4), what)
        return int(handle)

    def info(self, name: str, *arguments: Any) -> bytes:
        """A property, by a ``clGet...Info`` function."""
        size = c_size_t(0)
        function = getattr(self, name)
        self.check(function(*arguments, 0, None, ctypes.byref(size)), name)
        data = ctypes.create_string_buffer(size.value)
        self.check(function(*arguments, size.value, data, None), name)
        return data.raw[: size.value]

    def number(self, name: str, *arguments: Any) -> int:
        """A property that is a number."""
        return int.from_bytes(self.info(name, *arguments), "little", signed=name == "clGetEventInfo")

    def string(self, name: str, *arguments: Any) -> str:
        """A property that is a text."""
        return self.info(name, *arguments).rstrip(b"\0").decode(errors="replace").strip()


@cache
def _open(path: str) -> Library:
    return Library(path)


def open_library() -> Library:
    """The loader, opened once. Raises `ToolchainError` where there is none."""
    path = find_library()
    if path is None:
        named = os.environ.get(VARIABLE)
        where = f"{VARIABLE} names {named}, which is not there" if named else f"no {_NAME} was found"
        raise ToolchainError(f"{where}. What to do: {REMEDY}")
    return _open(path)
