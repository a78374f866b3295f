"""Errors for operations that cannot be imported, with their kernel line."""

from __future__ import annotations

from typing import Any, NoReturn

from triton_porting_kit.compiler.locations import source_location
from triton_porting_kit.errors import CompilationError


def fail(operation: Any, message: str, remedy: str) -> NoReturn:
    """Raise `CompilationError` for an operation of the kernel."""
    raise CompilationError(
        message,
        operation=operation.operation.name,
        location=source_location(operation.location),
        remedy=remedy,
    )
