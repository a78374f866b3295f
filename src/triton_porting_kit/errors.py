"""The exceptions of the kit: one type per kind of mistake, all under `PortingKitError`.

Every message says what happened, with the values that matter, and what to do next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class PortingKitError(Exception):
    """Base of every error that the kit raises on purpose."""


# --- toolchain -----------------------------------------------------------------------------------


class ToolchainError(PortingKitError):
    """A library that the kit stands on is missing, or is of a release that it cannot use."""


class CodeObjectError(PortingKitError, ValueError):
    """A binary is no AMDGPU code object to run: truncated, damaged, or of parts that contradict each other."""


# --- compiler ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SourceLocation:
    """A place in the user's kernel source."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class CompilationError(PortingKitError):
    """A kernel cannot be compiled by this backend.

    `operation` is the IR operation that failed (e.g. ``tt.elementwise_inline_asm``), `location` the line of the kernel
    that it comes from, `remedy` what the author can do about it. `problem` is the text of the error without the remedy.
    """

    def __init__(
        self,
        message: str,
        *,
        remedy: str,
        operation: str | None = None,
        location: SourceLocation | None = None,
    ) -> None:
        self.message = message
        self.operation = operation
        self.location = location
        self.remedy = remedy
        text = f"{location}: {message}" if location else message
        if operation:
            text += f" [{operation}]"
        if location and (line := _source_line(location)):
            text += f"\n    {line}"
        self.problem = text
        # Not by `super()`: a derived type may have a base outside the kit, whose arguments differ.
        Exception.__init__(self, f"{text}\n  what to do: {remedy}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without calling `__init__`, whose arguments are not in `args`."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(cls: type[CompilationError], args: tuple[Any, ...], state: dict[str, Any]) -> CompilationError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error


class CompilerDefect(CompilationError):
    """A stage of the compiler made IR that its verifier refuses: the kit is wrong, and not the kernel.

    `artefact` is the path of a file that holds the IR, or None where it could not be written.
    """

    def __init__(
        self,
        message: str,
        artefact: str | None,
        *,
        operation: str | None = None,
        location: SourceLocation | None = None,
    ) -> None:
        self.artefact = artefact
        sent = "the IR could not be written to a file" if artefact is None else f"send {artefact} with it"
        super().__init__(
            message,
            operation=operation,
            location=location,
            remedy=f"this is a defect of the porting kit: please report the kernel; {sent}",
        )


class OptionError(CompilationError, AssertionError):
    """A compile option has a value that makes no sense.

    Triton's own backends state their options' limits with assertions: who tries configurations out and
    catches `AssertionError` catches this too.
    """


class ResourceError(CompilationError):
    """A kernel needs more of something on the chip than there is: `required` of `name`, and `limit` is the most.

    The kit raises a type that is also Triton's ``OutOfResources``, which makes the autotuner try the next
    configuration.
    """

    def __init__(self, required: int, limit: int, name: str, remedy: str) -> None:
        self.required, self.limit, self.name = required, limit, name
        super().__init__(f"the kernel needs {required} of {name}, and there are {limit}", remedy=remedy)


def _source_line(location: SourceLocation) -> str:
    import linecache

    return linecache.getline(location.file, location.line).strip()


class InsecureCacheError(PortingKitError):
    """A folder whose files the kit would execute can be written by others."""


class CacheError(PortingKitError):
    """A folder that compiled code or dumps are to be kept in cannot be written, and no temporary one either."""


class CacheWarning(UserWarning):
    """Compiled code is kept for this process only: which folder cannot be used, why, and what to set."""


class CorruptCacheError(PortingKitError):
    """Cached files of a kernel are damaged, and nothing is left to make them again from."""


class CorruptCacheWarning(UserWarning):
    """A cached file was not what the compiler had written: it was made again, or the intact binary is used without."""


# --- launcher ------------------------------------------------------------------------------------


class SignatureError(PortingKitError, TypeError):
    """Arguments do not match a kernel's signature in count or in type."""


class ArgumentMismatch(CodeObjectError):
    """A kernel's binary declares arguments other than the launcher packs.

    `kernel` is its name; `index` and `argument` say which argument is the first to differ, or are None where
    all are the same but the block's size is not. `argument` is None too where it has no name.
    """

    def __init__(self, kernel: str, index: int | None, argument: str | None, difference: str) -> None:
        self.kernel, self.index, self.argument = kernel, index, argument
        which = (
            "the block" if index is None else f"argument {index}" + (f" ({argument!r})" if argument else "")
        )
        super().__init__(
            f"{which} of kernel {kernel!r}: {difference}; it was compiled from another signature than it is launched "
            f"with, or by a compiler that adds arguments: compile it again"
        )


class GridError(PortingKitError, ValueError):
    """A launch grid is not one to three counts between 0 and 2**31 - 1."""


class LauncherBuildError(PortingKitError):
    """Generated launch code did not build."""


# --- driver --------------------------------------------------------------------------------------


class DeviceError(PortingKitError, RuntimeError):
    """A device hook failed. The message says which call, which device and which argument.

    A `RuntimeError`, as the errors of GPU runtimes are to Python: what catches those catches these.
    """


class DTypeError(PortingKitError, TypeError):
    """An element type that the kit does not know, or that does not fit the data it was given with."""


class MissingHook(DeviceError, NotImplementedError):
    """A hook of a device is not written: which, what it must do, and where to read on."""


class OutOfMemory(DeviceError, MemoryError):
    """The device has not as much free memory as was asked for."""


class InvalidArgument(DeviceError, ValueError):
    """A size, a byte value, an alignment, or the handle of a stream or event that no device call can take."""


class InvalidPointer(DeviceError, ValueError):
    """An address that is NULL, freed, not the device's, or a range that leaves its allocation."""


class InvalidModule(DeviceError, ValueError):
    """A binary is truncated, of another machine, or was not made for this device."""


class CopyError(DeviceError):
    """A copy did not arrive as it was sent."""


class LaunchError(DeviceError):
    """A kernel launch was refused or failed while running."""


class AssertionFailed(LaunchError, AssertionError):
    """An assertion in a kernel did not hold: where, in which program and for which element, and its text."""


class LaunchTimeout(LaunchError, TimeoutError):
    """A launch took longer than it may, and was stopped between two programs: which kernel, and how far it came."""


class MemoryAccessError(LaunchError):
    """In checked mode, a kernel was about to access memory outside of its arguments: the line, whether to load or to
    store, in which program and for which element, which argument, its size, and how far outside."""


class DeviceLost(DeviceError):
    """The device died or hangs. Reset it before the next call."""


# --- porting -------------------------------------------------------------------------------------


class NamingError(PortingKitError, ValueError):
    """A backend, a vendor or a chip cannot be called so. `suggestion` is a name that would do, or empty."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        self.suggestion = suggestion
        super().__init__(f"{message}; try {suggestion!r}" if suggestion else message)


class TemplateError(PortingKitError):
    """The repository of a backend cannot be made from the template, or not be brought up to date."""


class AnswersError(TemplateError):
    """The file that says what a repository was made from is missing, or was edited."""


class DirtyTreeError(TemplateError):
    """The repository has changes that are not committed, which an update would mix with its own."""


# --- capture and replay --------------------------------------------------------------------------


class CaptureError(PortingKitError):
    """A launch cannot be recorded, or a recorded one cannot be read, trusted, run again, or written as C++."""


class CaptureWarning(UserWarning):
    """A launch was not recorded, or something of it that a replay needs was not."""
