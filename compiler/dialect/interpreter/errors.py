"""Errors of interpreted kernels, with the operation and the kernel's line."""

from __future__ import annotations

from dataclasses import dataclass

from triton_porting_kit.errors import (
    AssertionFailed,
    CompilationError,
    LaunchError,
    LaunchTimeout,
    MemoryAccessError,
    SourceLocation,
)


@dataclass(frozen=True)
class At:
    """The operation, program and element that an error occurred at."""

    operation: str
    location: SourceLocation | None
    program: tuple[int, int, int]
    element: tuple[int, ...] | None = None
    """The element's index in the tile; None for a scalar."""

    def __str__(self) -> str:
        line = "an unknown line" if self.location is None else f"{self.location.file}:{self.location.line}"
        element = "" if self.element is None else f", element {self.element}"
        return f"{line}: {self.operation} in program {self.program}{element}"


class OutOfBounds(MemoryAccessError):
    """A kernel was about to access memory outside of all arrays that it was given.

    `at` says where; `address` is that of the element, `size` its bytes.
    """

    def __init__(self, at: At, address: int, size: int, nearest: str) -> None:
        self.at, self.address, self.size = at, address, size
        super().__init__(
            f"{at}: {size} bytes at {address:#x} are in no array: {nearest}\n"
            "  what to do: look at the mask or the bounds of this access, and at the sizes of the arguments"
        )


class KernelAssertion(AssertionFailed):
    """A `tl.device_assert` failed. `at` says where; `message` is the kernel's."""

    def __init__(self, at: At, message: str) -> None:
        self.at, self.message = at, message
        super().__init__(f"{at}: {message or 'an assertion does not hold'}")


class WaitsForOthers(LaunchTimeout):
    """All remaining programs wait, and none can continue."""

    def __init__(self, at: At) -> None:
        self.at = at
        super().__init__(
            f"{at}: every program that has not ended waits, and none of them can go on\n"
            "  what to do: look for the atomic operation or the store that should end the wait"
        )


class BrokenPromise(LaunchError):
    """Indices may overflow in this launch, but the kernel was compiled for launches in which they do not."""

    def __init__(self, kernel: str) -> None:
        super().__init__(
            f"{kernel} was compiled for launches whose indices stay within 32 bits, and in this one they may wrap "
            "around\n  what to do: compile it with `--option offsets_may_wrap=True`"
        )


class NotInterpreted(CompilationError):
    """The interpreter does not know an operation, a function or a type."""
