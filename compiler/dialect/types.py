"""Types of values, both of MLIR's bindings and of `compiler.loops.ir.program`."""

from __future__ import annotations

from typing import Any


def shape_of(value: Any) -> tuple[int, ...] | None:
    """The sizes of a tensor; None for a scalar."""
    shape = getattr(value.type, "shape", None)
    return None if shape is None else tuple(shape)


def element_of(value: Any) -> str:
    """The type of a scalar, or of a tensor's elements, in MLIR's syntax."""
    kind = value.type
    if hasattr(kind, "element"):  # of `compiler.loops.ir.program`
        return str(kind.element)
    return str(getattr(kind, "element_type", kind))


def is_scalar(value: Any) -> bool:
    """Whether a value is a scalar."""
    return shape_of(value) is None
