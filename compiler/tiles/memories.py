"""What the passes ask of a chip's memories."""

from __future__ import annotations

from triton_porting_kit.chips.description import ChipDescription, Memory
from triton_porting_kit.compiler.caches import Caches

_L1 = 48 << 10

SCRATCH_ALIGNMENT = 64
"""Of what vector code keeps in local memory behind the buffers."""


def vector_memory(chip: ChipDescription) -> Memory:
    """The memory of vector code: the first one that the core accesses."""
    return next(memory for memory in chip.local_memories if memory.core_access)


def caches_of_core(chip: ChipDescription) -> Caches:
    """The caches that vector code is written for: its memory stands for L2, since what products pack has to lie there.

    They do not depend on the machine that plays the chip.
    """
    size = max(4 << 10, chip.local_bytes(vector_memory(chip)))
    return Caches(min(_L1, size), size)
