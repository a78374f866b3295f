"""What the passes ask of a chip's memories."""

from __future__ import annotations

from triton_porting_kit.chips.description import ChipDescription, Memory

SCRATCH_ALIGNMENT = 64
"""Of what vector code keeps in local memory behind the buffers."""


def vector_memory(chip: ChipDescription) -> Memory:
    """The memory of vector code: the first one that the core accesses."""
    return next(memory for memory in chip.local_memories if memory.core_access)
