"""The exceptions of the kit: one type per kind of error, all derived from `PortingKitError`.

Every message says what happened, with the values that matter, and what to do next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class PortingKitError(Exception):
    """Base of every error that the kit raises on purpose."""


# --- toolchain -----------------------------------------------------------------------------------


class ToolchainError(PortingKitError):
    """A library that the kit depends on is missing, or its release is not supported."""


class CodeObjectError(PortingKitError, ValueError):
    """A binary is not a usable AMDGPU code object: it is truncated, damaged, or inconsistent."""


# --- chips ---------------------------------------------------------------------------------------


class DescriptionError(PortingKitError, ValueError):
    """A description of a chip is wrong. `file` and `line` say where; `line` is 0 if it is not known."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        self.file, self.line, self.problem = file, line, problem
        super().__init__(f"{file}:{line}: {problem}" if line else f"{file}: {problem}")

    def __reduce__(self) -> Any:
        return (type(self), (self.file, self.line, self.problem))


class TraceError(PortingKitError, ValueError):
    """A file is not a trace of a simulated chip, or it is empty or damaged. The message names the line."""


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

    `operation` is the IR operation that failed, such as ``tt.elementwise_inline_asm``; `location` is its line in the
    kernel; `remedy` says what the author can do. `problem` is the text of the error without the remedy.
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
        # `super()` could call a base outside of the kit, whose arguments differ.
        Exception.__init__(self, f"{text}\n  what to do: {remedy}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without calling `__init__`, whose arguments are not in `args`."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(cls: type[CompilationError], args: tuple[Any, ...], state: dict[str, Any]) -> CompilationError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error


class CompilerDefect(CompilationError):
    """A verifier rejects the IR that a compiler stage produced. This is a defect of the kit, not of the kernel.

    `artefact` is the path of a file with the IR; None if it could not be written.
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
    """A compile option has an invalid value.

    Triton's own backends check options with assertions. Code that tries configurations and catches `AssertionError`
    catches this error, too.
    """


class ResourceError(CompilationError):
    """A kernel needs `required` of a chip's resource `name`, of which there is only `limit`.

    The kit raises a type that is also Triton's ``OutOfResources``, so that the autotuner tries the next configuration.
    """

    def __init__(self, required: int, limit: int, name: str, remedy: str) -> None:
        self.required, self.limit, self.name = required, limit, name
        super().__init__(f"the kernel needs {required} {name}, and there are {limit}", remedy=remedy)


def _source_line(location: SourceLocation) -> str:
    import linecache

    return linecache.getline(location.file, location.line).strip()


class InsecureCacheError(PortingKitError):
    """Other users can write to a folder whose files the kit would execute."""


class CacheError(PortingKitError):
    """Neither the folder for compiled code or dumps nor a temporary one can be written."""


class CacheWarning(UserWarning):
    """Compiled code is kept for this process only.

    The message says which folder cannot be used, why, and what to set.
    """


class CorruptCacheError(PortingKitError):
    """Cached files of a kernel are damaged, and cannot be rebuilt."""


class CorruptCacheWarning(UserWarning):
    """A cached file was not what the compiler had written. It was rebuilt, or the intact binary is used without it."""


# --- launcher ------------------------------------------------------------------------------------


class SignatureError(PortingKitError, TypeError):
    """Arguments do not match a kernel's signature in count or in type."""


class ArgumentMismatch(CodeObjectError):
    """A kernel's binary declares other arguments than the launcher packs.

    `kernel` is its name. `index` and `argument` are the number and the name of the first argument that differs. They
    are None if only the size of the block differs; `argument` is also None if it has no name.
    """

    def __init__(self, kernel: str, index: int | None, argument: str | None, difference: str) -> None:
        self.kernel, self.index, self.argument = kernel, index, argument
        which = (
            "the block" if index is None else f"argument {index}" + (f" ({argument!r})" if argument else "")
        )
        super().__init__(
            f"{which} of kernel {kernel!r}: {difference}; the kernel was compiled for a signature that differs from "
            f"the launch, or by a compiler that adds arguments: compile it again"
        )


class GridError(PortingKitError, ValueError):
    """A launch grid is not one to three counts between 0 and 2**31 - 1."""


class LauncherBuildError(PortingKitError):
    """Generated launch code could not be built."""


# --- driver --------------------------------------------------------------------------------------


class DeviceError(PortingKitError, RuntimeError):
    """A device hook failed. The message names the call, the device and the argument.

    It is a `RuntimeError`, like the errors of GPU runtimes in Python.
    """


class BuiltWithAnotherKit(PortingKitError):
    """A backend's compiled device does not fit this kit: `built_with` and `installed` are the kit's releases."""

    def __init__(self, module: str, interfaces: tuple[int, int], built_with: str, installed: str) -> None:
        self.module, self.interfaces = module, interfaces
        self.built_with, self.installed = built_with, installed
        super().__init__(
            f"{module} was built with triton-porting-kit {built_with} (device interface {interfaces[0]}), but "
            f"{installed} (device interface {interfaces[1]}) is installed. Build it again in the backend's repository: "
            "pip install --no-build-isolation --force-reinstall --no-deps -e ."
        )


class DTypeError(PortingKitError, TypeError):
    """An unknown element type, or one that does not fit the data."""


class MissingHook(DeviceError, NotImplementedError):
    """A device hook is not implemented. The message says what it must do and which documentation to read."""


class OutOfMemory(DeviceError, MemoryError):
    """The device has less free memory than was requested."""


class InvalidArgument(DeviceError, ValueError):
    """A size, byte value, alignment, or handle of a stream or event is invalid for a device call."""


class InvalidPointer(DeviceError, ValueError):
    """An address is NULL, freed or not on the device, or a range exceeds its allocation."""


class InvalidModule(DeviceError, ValueError):
    """A binary is truncated, of another machine, or was not made for this device."""


class CopyError(DeviceError):
    """The result of a copy differs from its source."""


class LaunchError(DeviceError):
    """A kernel launch was refused or failed while running."""


class AssertionFailed(LaunchError, AssertionError):
    """An assertion in a kernel failed. The message has the line, the program, the element and the assertion's text."""


class LaunchTimeout(LaunchError, TimeoutError):
    """A launch exceeded its time limit and was stopped between two programs. The message has the kernel and the number
    of finished programs."""


class MemoryAccessError(LaunchError):
    """In checked mode, a kernel was about to access memory outside of its arguments. The message has the line, whether
    it is a load or a store, the program, the element, the argument, its size, and the distance to it."""


class DeviceLost(DeviceError):
    """The device has failed or hangs. Reset it before the next call."""


# --- groups --------------------------------------------------------------------------------------


class GroupError(DeviceError):
    """A group of ranks cannot be opened, or a call does not fit the group that a device is in."""


class RendezvousError(GroupError):
    """The ranks of a group do not find each other: an address, a token or a rank is missing or wrong, or one is
    late."""


class RanksDisagree(GroupError):
    """Ranks of a group called something collective with different arguments. The message has those of each rank."""


class SymmetricHeapFull(OutOfMemory):
    """A rank's part of the symmetric heap has less free memory than was requested."""


class RankLost(DeviceLost):
    """A rank of the group has ended, failed, or keeps the others waiting. Close the group.

    `rank` is its number, or None if several ranks wait for each other.
    """

    def __init__(self, rank: int | None, reason: str) -> None:
        self.rank, self.reason = rank, reason
        super().__init__(reason)

    def __reduce__(self) -> Any:
        return (type(self), (self.rank, self.reason))


class UnorderedAccess(GroupError):
    """Two programs of a group access the same symmetric memory, and nothing orders the accesses: a race."""


class RanksStuck(GroupError):
    """No program of a group can go on. The message has what each of them waits for."""


class CudaNotMapped(PortingKitError, NotImplementedError):
    """A program that runs under ``as_cuda`` uses something of CUDA that has no meaning on the backend.

    `what` names it, and `remedy` says what to do instead.
    """

    def __init__(self, what: str, remedy: str) -> None:
        self.what, self.remedy = what, remedy
        super().__init__(f"as_cuda cannot map {what}\n  what to do: {remedy}")

    def __reduce__(self) -> Any:
        return (type(self), (self.what, self.remedy))


# --- porting -------------------------------------------------------------------------------------


class NamingError(PortingKitError, ValueError):
    """The name of a backend, a vendor or a chip is not allowed. `suggestion` is an allowed name, or empty."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        self.suggestion = suggestion
        super().__init__(f"{message}; try {suggestion!r}" if suggestion else message)


class TemplateError(PortingKitError):
    """The repository of a backend cannot be created from the template, or cannot be updated."""


class AnswersError(TemplateError):
    """The file that records how a repository was created is missing or was edited."""


class DirtyTreeError(TemplateError):
    """The repository has uncommitted changes, which an update would mix with its own."""


# --- capture and replay --------------------------------------------------------------------------


class CaptureError(PortingKitError):
    """A launch cannot be recorded, or a recorded launch cannot be read, trusted, run again, or written as C++."""


class CaptureWarning(UserWarning):
    """A launch was not recorded, or only without something that a replay needs."""
