"""What can be wrong with an assembly block."""

from __future__ import annotations


class AssemblyError(ValueError):
    """An assembly block cannot be translated. The importer adds the kernel's line, and a remedy."""


class UnknownInstruction(AssemblyError):
    """An instruction is not in the table. `opcode` is its name with all modifiers."""

    def __init__(self, opcode: str) -> None:
        self.opcode = opcode
        super().__init__(
            f"the instruction `{opcode}` is not among the PTX instructions that can be translated"
        )
