"""A device's native launch routine: its parameters, and the codes by which native code names the kit's errors."""

from __future__ import annotations

from enum import IntEnum

from triton_porting_kit import errors
from triton_porting_kit.errors import DeviceError, PortingKitError

DEVICE_INTERFACE = 2
"""The version of what compiled devices share with the kit: the launch routine, the codes below, and the C API of the
virtual NPU. A device that was built with another version is refused. Tests fail if one of them changes without it."""
BUILT_WITH = "tpk_built_with"
"""The attribute of a bound device class: the `DEVICE_INTERFACE` and the release of the kit that it was built with."""

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
"""The parameters of the routine and their C++ types. It returns a `std::int32_t`: 0 or one of `LAUNCH_ERRORS`."""


class Code(IntEnum):
    """Error codes, each with the name of its exception. A number is never reused for another error.

    A launch routine returns `Ok`, or a code up to `LAST_OF_LAUNCH`. The others are internal to native code.
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
        """The exception; `Ok` has none."""
        found: type[PortingKitError] = getattr(errors, self.name)
        return found


LAST_OF_LAUNCH = Code.MemoryAccessError
"""The last code that a launch routine returns. Any other failure of a launch is a `Code.LaunchError`."""

LAUNCH_ERRORS: dict[int, type[DeviceError]] = {
    int(code): code.error
    for code in Code
    if 0 < code <= LAST_OF_LAUNCH and issubclass(code.error, DeviceError)
}
"""The error for each code of a launch routine; any other code is a `LaunchError`."""
