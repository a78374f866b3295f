"""From an operation to the line of the kernel that it came from."""

from __future__ import annotations

import os
from typing import Any, NoReturn

from triton_porting_kit.errors import CompilationError, SourceLocation
from triton_porting_kit.toolchain.mlir import ir

_LIBRARY = f"{os.sep}triton{os.sep}language{os.sep}"


def source_location(location: Any) -> SourceLocation | None:
    """The kernel's own line behind a location; inlined functions of Triton's library count as their caller."""
    location = location.maybe_downcast() if hasattr(location, "maybe_downcast") else location
    if isinstance(location, ir.FileLineColLoc):
        return SourceLocation(str(location.filename), location.start_line, location.start_col)
    if isinstance(location, ir.NameLoc):
        return source_location(location.child_loc)
    if isinstance(location, ir.CallSiteLoc):
        callee = source_location(location.callee)
        if callee is None or _LIBRARY in callee.file:
            return source_location(location.caller) or callee
        return callee
    if isinstance(location, ir.FusedLoc):
        return next((found for part in location.locations if (found := source_location(part))), None)
    return None


def fail(operation: Any, message: str, remedy: str) -> NoReturn:
    """Raise `CompilationError` for an operation of the kernel."""
    raise CompilationError(
        message,
        operation=operation.operation.name,
        location=source_location(operation.location),
        remedy=remedy,
    )
