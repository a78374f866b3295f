"""A device's native launch routine: its parameters, and the codes by which native code names the kit's errors."""

from __future__ import annotations

from enum import IntEnum

from triton_porting_kit import errors
from triton_porting_kit.errors import DeviceError, PortingKitError

PARAMETERS = (
    ("context", "void *"),
    ("stream", "std::uint64_t"),
    ("function", "std::uint64_t"),
    ("grid_x", "std::uint32_t"),
    ("grid_y", "std::uint32_t"),
    ("grid_z", "std::uint32_t"),
    ("args", "const void *"),
    ("args_size", "std::uint64_t"),
    ("message", "char *"),
    ("message_size", "std::uint64_t"),
)
"""Of the routine, with their types in C++; it returns a `std::int32_t`, 0 or one of `LAUNCH_ERRORS`."""


class Code(IntEnum):
    """An error by number; each is called like its exception. Numbers are never given to another error.

    A launch routine returns `Ok`, or a code up to `LAST_OF_LAUNCH`. Native code uses the others within itself.
    """

    Ok = 0
    OutOfMemory = 1
    InvalidPointer = 2
    InvalidModule = 3
    LaunchError = 4
    DeviceLost = 5
    AssertionFailed = 6
    LaunchTimeout = 7
    MemoryAccessError = 8
    InvalidArgument = 9
    CopyError = 10
    ToolchainError = 11
    DeviceError = 12

    @property
    def error(self) -> type[PortingKitError]:
        """The exception. There is none for `Ok`."""
        found: type[PortingKitError] = getattr(errors, self.name)
        return found


LAST_OF_LAUNCH = Code.MemoryAccessError
"""The last code that a launch routine returns. What else a launch fails with is a `Code.LaunchError`."""

LAUNCH_ERRORS: dict[int, type[DeviceError]] = {
    int(code): code.error
    for code in Code
    if 0 < code <= LAST_OF_LAUNCH and issubclass(code.error, DeviceError)
}
"""The error that each code of a launch routine stands for; any other code is a `LaunchError`."""
