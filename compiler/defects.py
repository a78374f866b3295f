"""Errors for invalid IR: who has to fix it, and what a report must contain.

The output of each stage is verified. If a verifier rejects it, the kit is wrong and not the kernel, unless a file of
the user's overrides a stage: then that file is to blame.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from triton_porting_kit.compiler.locations import source_location
from triton_porting_kit.compiler.record import OVERRIDDEN
from triton_porting_kit.errors import CompilationError, CompilerDefect, SourceLocation

_LINE = re.compile(r'"-":(\d+):\d+|<string>:(\d+):\d+')
_OPERATION = re.compile(r"'([A-Za-z_]\w*(?:\.\w+)+)'")


class InvalidIR(CompilationError):
    """MLIR or LLVM rejects a `text`."""

    def __init__(self, message: str, text: str, *, place: str = "") -> None:
        self.text = text
        number = _LINE.search(f"{place} {message}")
        named = _OPERATION.search(message)
        location: SourceLocation | None = None
        operation = named[1] if named else None
        if (kernel := _kernel_line(place)) is not None:
            location = kernel
        elif number is not None:
            from triton_porting_kit.compiler.source_comments import SourceComments  # only to explain a defect

            comments, line = SourceComments(text), int(number[1] or number[2])
            location = comments.location_of_line(line)
            operation = comments.operation_of_line(line) or operation
        super().__init__(
            message,
            operation=operation,
            location=location,
            remedy="correct that text; if a stage of the kit made it, this is a defect: please report the kernel",
        )

    @classmethod
    def of_mlir(cls, what: str, error: Exception, text: str) -> InvalidIR:
        """The `InvalidIR` for an error of MLIR's bindings; `what` says what MLIR rejected."""
        said = next(iter(getattr(error, "error_diagnostics", ())), None)
        place = "" if said is None else str(said.location)
        number = None if _kernel_line(place) else _LINE.search(place)
        line = f", line {number[1]}" if number else ""
        return cls(f"{what}{line}: {error if said is None else said.message}", text, place=place)


def _kernel_line(place: str) -> SourceLocation | None:
    """The kernel's line in a location; None if it has positions in a text alone."""
    found = source_location(place)
    return None if found is None or found.file == "-" else found


@contextmanager
def blamed(stage: str, metadata: Mapping[str, Any]) -> Iterator[None]:
    """Convert `InvalidIR` that a stage raises about its own output into the error for the user.

    Raises `CompilerDefect`, with a file that holds the text. If a file of the user's overrides an earlier stage, raises
    a `CompilationError` that names that stage.
    """
    try:
        yield
    except InvalidIR as error:
        what = f"the stage {stage} made IR that is not valid: {error.message}"
        overridden = metadata.get(OVERRIDDEN)
        if overridden:
            raise CompilationError(
                f"{what}; its input comes from a file that overrides the stage {overridden[-1]}",
                operation=error.operation,
                location=error.location,
                remedy="correct that file, or remove it",
            ) from error
        raise CompilerDefect(
            what, _written(stage, error.text), operation=error.operation, location=error.location
        ) from error


def _written(stage: str, text: str) -> str | None:
    """The path of a new file with the text, readable only by this user; None if it cannot be written."""
    try:
        descriptor, path = tempfile.mkstemp(prefix="tpk-defect-", suffix=f".{stage}")
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
    except OSError:
        return None
    return path
