"""Whether what vector code keeps besides buffers has room behind them."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.chips.description import ChipDescription

from .editing import bytes_of, functions, nested, shape_of
from .memories import SCRATCH_ALIGNMENT, vector_memory
from .plan import Plan


def room(plan: Plan, chip: ChipDescription) -> int:
    """Bytes of the vector memory behind the buffers of a plan; less than 0 if the buffers do not fit."""
    vector = vector_memory(chip)
    return chip.local_bytes(vector) - plan.used(vector.name, aligned=SCRATCH_ALIGNMENT)


def surely_fits(module: Any, plan: Plan, chip: ChipDescription) -> bool:
    """Whether all tensors of a module would have room, so that what vector code keeps of them has.

    If they would not, only writing the loops tells what it keeps.
    """
    return all_tensors(module) <= room(plan, chip)


def all_tensors(module: Any) -> int:
    """Bytes of all tensors of a module."""
    return sum(
        bytes_of(result)
        for function in functions(module)
        for operation in nested(function.regions[0].blocks[0])
        for result in operation.results
        if shape_of(result) is not None and operation.name != "tensor.empty"
    )
