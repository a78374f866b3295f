"""Programs: building them from source when a kernel is compiled, and from a binary when it is loaded."""

from __future__ import annotations

import ctypes
import threading
from ctypes import c_char_p, c_int32, c_size_t, c_void_p

from triton_porting_kit.driver.opencl.library import Library, open_library
from triton_porting_kit.driver.opencl.platforms import DeviceInfo
from triton_porting_kit.errors import InvalidModule

_BUILD_FAILED = -11
_BUILD_LOG, _BINARY_SIZES, _BINARIES = 0x1183, 0x1165, 0x1166


class BuildFailure(InvalidModule):
    """The driver's compiler refused a program. `log` is what it said."""

    def __init__(self, device: str, log: str) -> None:
        super().__init__(f"{device} cannot build the program: {log or 'its compiler says nothing'}")
        self.log = log


_CONTEXTS: dict[DeviceInfo, int] = {}
_lock = threading.Lock()


def context_of(info: DeviceInfo) -> int:
    """The context of a device, which lives until `renew_context`."""
    with _lock:
        if info not in _CONTEXTS:
            devices = (c_void_p * 1)(info.handle)
            _CONTEXTS[info] = open_library().create(
                "clCreateContext", f"opening {info.name}", None, 1, devices, None, None
            )
        return _CONTEXTS[info]


def renew_context(info: DeviceInfo) -> int:
    """A new context of a device: nothing of the old one can be used, as after a device was lost."""
    with _lock:
        old = _CONTEXTS.pop(info, None)
    if old is not None:
        open_library().clReleaseContext(old)  # what was made in it keeps it
    return context_of(info)


def program_of_source(info: DeviceInfo, source: str) -> int:
    """A program built from source. Raises `BuildFailure` with the compiler's log."""
    library, data = open_library(), source.encode()
    texts, sizes = (c_char_p * 1)(data), (c_size_t * 1)(len(data))
    program = library.create(
        "clCreateProgramWithSource", "reading a program", context_of(info), 1, texts, sizes
    )
    return _built(library, info, program)


def program_of_binary(info: DeviceInfo, binary: bytes) -> int:
    """A program of a binary that the same driver made for the same device. Raises `InvalidModule`."""
    library = open_library()
    devices, sizes, texts = (c_void_p * 1)(info.handle), (c_size_t * 1)(len(binary)), (c_char_p * 1)(binary)
    status = c_int32(0)
    program = library.create(
        "clCreateProgramWithBinary", "loading a program", context_of(info), 1, devices, sizes, texts, status
    )
    return _built(library, info, program)


def _built(library: Library, info: DeviceInfo, program: int) -> int:
    devices = (c_void_p * 1)(info.handle)
    code = library.clBuildProgram(program, 1, devices, info.build_options.encode(), None, None)
    if code == 0:
        return program
    try:
        if code != _BUILD_FAILED:
            library.check(code, f"building a program for {info.name}")
        log = library.string("clGetProgramBuildInfo", program, info.handle, _BUILD_LOG)
    finally:
        library.clReleaseProgram(program)
    raise BuildFailure(info.name, log)


def build_source(info: DeviceInfo, source: str) -> bytes:
    """The driver's binary of a program. Raises `BuildFailure` with the compiler's log."""
    library, program = open_library(), program_of_source(info, source)
    try:
        size = int.from_bytes(library.info("clGetProgramInfo", program, _BINARY_SIZES)[:8], "little")
        data = ctypes.create_string_buffer(size)
        places = (c_void_p * 1)(ctypes.addressof(data))
        library.check(
            library.clGetProgramInfo(program, _BINARIES, ctypes.sizeof(places), places, None),
            "reading a program's binary",
        )
        return data.raw
    finally:
        library.clReleaseProgram(program)
