"""Buffers and what vector code keeps, in the same bytes at different times.

Vector code keeps values on a stack behind the buffers. If a memory is too small for both, the stack begins where the
memory does, and each buffer lies above what the stack takes up while that buffer is in use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triton_porting_kit.chips.description import ChipDescription
from triton_porting_kit.compiler.loops.ir.program import Operation, Program

from .lifetimes import Lifetime, Numbering
from .memories import vector_memory
from .place import planned
from .plan import Plan

Reaches = Mapping[Operation, int]
"""How many bytes of the stack each operation uses (`LoopsResult.reaches`)."""


def share(plan: Plan, chip: ChipDescription, reaches: Reaches) -> bool:
    """Place the buffers of a plan anew, above the stack. Returns whether they fit; if not, the plan is as it was."""
    memory = vector_memory(chip)
    lowest = _lowest(plan.program, reaches)
    found = planned(plan.program, chip, {memory.name: lowest})
    if max(found.used(memory.name), _highest(reaches)) > chip.local_bytes(memory):
        return False
    plan.buffers, plan.shares = found.buffers, True
    return True


def lies_above(plan: Plan, chip: ChipDescription, reaches: Reaches) -> bool:
    """Whether the buffers of a plan already lie above the stack."""
    memory, lowest = vector_memory(chip), _lowest(plan.program, reaches)
    mine = (placed for placed in plan.buffers if placed.lifetime.memory == memory.name)
    return _highest(reaches) <= chip.local_bytes(memory) and all(
        placed.address >= lowest(placed.lifetime) for placed in mine
    )


def _highest(reaches: Reaches) -> int:
    return max(reaches.values(), default=0)


def _lowest(program: Program, reaches: Reaches) -> Callable[[Lifetime], int]:
    """The lowest address that a buffer may have."""
    numbering = Numbering(program.body)
    reach = [0] * numbering.count
    for operation, size in reaches.items():
        for number in (numbering.first[operation], numbering.last[operation]):
            reach[number] = max(reach[number], size)
    return lambda life: max(reach[life.first : life.last + 1])
