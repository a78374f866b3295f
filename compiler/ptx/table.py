"""All instructions that can be translated, and the look-up of one by its opcode."""

from __future__ import annotations

import functools

from . import conversions, floats, integers
from .errors import UnknownInstruction
from .instruction import Instruction

ROWS: tuple[Instruction, ...] = (*integers.ROWS, *floats.ROWS, *conversions.ROWS)


@functools.cache
def find(opcode: str) -> Instruction:
    """The row of an opcode. Raises `UnknownInstruction`."""
    for row in ROWS:
        if row.pattern.fullmatch(opcode):
            return row
    raise UnknownInstruction(opcode)
