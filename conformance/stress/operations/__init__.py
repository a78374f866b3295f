"""The operations of random programs, as a table."""

from __future__ import annotations

from triton_porting_kit.conformance.stress.operations import (
    addressing,
    elementwise,
    memory,
    reducing,
    scaled,
    shaping,
)
from triton_porting_kit.conformance.stress.operations.base import Operation

OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        *memory.OPERATIONS,
        *elementwise.OPERATIONS,
        *shaping.OPERATIONS,
        *reducing.OPERATIONS,
        *addressing.OPERATIONS,
        *scaled.OPERATIONS,
    )
}
"""The operations by name."""
