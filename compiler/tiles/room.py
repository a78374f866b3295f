"""Whether what vector code keeps besides buffers has room behind them."""

from __future__ import annotations

import math

from triton_porting_kit.chips.description import ChipDescription
from triton_porting_kit.compiler.loops.ir.program import Program, walk

from .editing import byte_size
from .memories import SCRATCH_ALIGNMENT, vector_memory
from .plan import Plan


def room(plan: Plan, chip: ChipDescription) -> int:
    """Bytes of the vector memory behind the buffers of a plan; less than 0 if the buffers do not fit."""
    vector = vector_memory(chip)
    return chip.local_bytes(vector) - plan.used(vector.name, aligned=SCRATCH_ALIGNMENT)


def surely_fits(plan: Plan, chip: ChipDescription) -> bool:
    """Whether all tensors of a planned kernel would have room, so that what vector code keeps of them has.

    If they would not, only writing the loops tells what it keeps.
    """
    return all_tensors(plan.program) <= room(plan, chip)


def all_tensors(program: Program) -> int:
    """Bytes of all tensors of a kernel."""
    return sum(
        math.prod(result.type.shape) * byte_size(result.type.element)
        for operation in walk(program.body)
        for result in operation.results
        if result.type.shape is not None and operation.name != "tensor.empty"
    )
