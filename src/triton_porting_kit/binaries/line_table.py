"""The source line of each instruction of an object, from DWARF's line table of one function.

It reads DWARF 4 and earlier, which LLVM writes by default (DWARF Debugging Information Format, Version 4, section 6.2).
The tables of folders and files are skipped: the source is one text.
"""

from __future__ import annotations

from collections.abc import Iterator

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2


def line_at(section: bytes, address: int) -> int | None:
    """The line of the instruction at an `address`, from the contents of ``.debug_line``; None if it has none.

    Addresses are relative to the start of the function, as in a relocatable object with one function before it is
    linked. Raises ValueError for an unknown line table.
    """
    found = None
    for start, line in _rows(_Reader(section)):
        if start > address:
            return found
        found = line
    return None


def lines_of(section: bytes) -> set[int]:
    """The lines that any instruction comes from, from the contents of ``.debug_line``."""
    return {line for _, line in _rows(_Reader(section)) if line is not None}


class _Reader:
    """Reads numbers of a table, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def bytes(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self._data):
            raise ValueError("the line table is truncated")
        taken, self.at = self._data[self.at : end], end
        return taken

    def unsigned(self, size: int) -> int:
        return int.from_bytes(self.bytes(size), "little")

    def signed(self, size: int) -> int:
        return int.from_bytes(self.bytes(size), "little", signed=True)

    def leb128(self, *, signed: bool = False) -> int:
        value = shift = 0
        while True:
            byte = self.unsigned(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value


def _rows(reader: _Reader) -> Iterator[tuple[int, int | None]]:
    """Rows in order: an address, and the line from there on; None: unknown from there on."""
    end = reader.unsigned(4) + 4
    version = reader.unsigned(2)
    if not 2 <= version <= 4:
        raise ValueError(f"a line table of DWARF {version}")
    program = reader.unsigned(4) + reader.at
    step = reader.unsigned(1)
    if version == 4:
        reader.bytes(1)  # operations of an instruction of a VLIW machine
    reader.bytes(1)  # whether instructions begin statements
    line_base, line_range, opcode_base = reader.signed(1), reader.unsigned(1), reader.unsigned(1)
    counts = [reader.unsigned(1) for _ in range(opcode_base - 1)]
    if not line_range:
        raise ValueError("a line table of no lines")
    reader.at = program
    address, line = 0, 1
    while reader.at < end:
        opcode = reader.unsigned(1)
        if opcode >= opcode_base:
            advance, more = divmod(opcode - opcode_base, line_range)
            address, line = address + advance * step, line + line_base + more
            yield address, line or None
        elif opcode == 0:
            length = reader.leb128()
            following = reader.at + length
            kind = reader.unsigned(1)
            if kind == _END_SEQUENCE:
                yield address, None
                address, line = 0, 1
            elif kind == _SET_ADDRESS:
                address = reader.unsigned(length - 1)
            reader.at = following
        elif opcode == _COPY:
            yield address, line or None
        elif opcode == _ADVANCE_PC:
            address += reader.leb128() * step
        elif opcode == _ADVANCE_LINE:
            line += reader.leb128(signed=True)
        elif opcode == _CONST_ADD_PC:
            address += (255 - opcode_base) // line_range * step
        elif opcode == _FIXED_ADVANCE_PC:
            address += reader.unsigned(2)
        else:
            for _ in range(counts[opcode - 1]):
                reader.leb128()
