"""What the passes ask of a chip's memories."""

from __future__ import annotations

from triton_porting_kit.chips.description import ChipDescription, Memory
from triton_porting_kit.compiler.caches import Caches

_L1 = 48 << 10

SCRATCH_ALIGNMENT = 64
"""Of what vector code keeps in local memory behind the buffers."""


def vector_memory(chip: ChipDescription) -> Memory:
    """The memory of vector code: of those that the core accesses and transfers connect with the global memory, the
    largest.
    """
    outside = chip.global_memory.name

    def fitness(memory: Memory) -> tuple[bool, int]:
        connected = chip.routed(outside, memory.name) and chip.routed(memory.name, outside)
        return bool(connected), memory.bytes

    return max((memory for memory in chip.local_memories if memory.core_access), key=fitness)


def caches_of_core(chip: ChipDescription) -> Caches:
    """The caches that vector code is written for: its memory stands for L2, since what products pack has to lie there.

    They do not depend on the machine that plays the chip.
    """
    size = max(4 << 10, chip.local_bytes(vector_memory(chip)))
    return Caches(min(_L1, size), size)
