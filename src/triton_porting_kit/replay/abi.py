"""The version of the kernel ABI that a binary was made for, read from its file: nothing of it is loaded."""

from __future__ import annotations

import struct

from triton_porting_kit.errors import InvalidModule
from triton_porting_kit.toolchain.elf import read_object

VERSION_SYMBOL = "tpk_host_abi_version"

_RELOCATABLE, _SHARED = 1, 3
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_LOAD, _DYNAMIC = 1, 2
_HASH, _STRTAB, _SYMTAB = 4, 5, 6


def abi_version(binary: bytes) -> int | None:
    """Of an ELF object, relocatable or shared, that follows the kit's kernel ABI; None for anything else."""
    if binary[:4] != b"\x7fELF" or len(binary) < _HEADER.size:
        return None
    kind = _HEADER.unpack_from(binary)[1]
    try:
        if kind == _RELOCATABLE:
            return _of_relocatable(binary)
        return _of_shared(binary) if kind == _SHARED else None
    except (InvalidModule, struct.error, ValueError, IndexError, KeyError):
        return None


def _of_relocatable(binary: bytes) -> int | None:
    found = read_object(binary)
    for symbol in found.symbols:
        if symbol.name == VERSION_SYMBOL and symbol.section:
            content = found.sections[symbol.section].content
            return int(struct.unpack_from("<i", content, symbol.value)[0])
    return None


def _of_shared(binary: bytes) -> int | None:
    header = _HEADER.unpack_from(binary)
    segments = [_SEGMENT.unpack_from(binary, header[5] + i * header[9]) for i in range(header[10])]

    def place(address: int) -> int:
        """The offset in the file of what is loaded at `address`."""
        for kind, _, offset, start, _, size, _, _ in segments:
            if kind == _LOAD and start <= address < start + size:
                return int(offset + address - start)
        raise ValueError(address)

    _, _, offset, _, _, size, _, _ = next(segment for segment in segments if segment[0] == _DYNAMIC)
    table = dict(struct.iter_unpack("<qQ", binary[offset : offset + size]))
    names, symbols = place(table[_STRTAB]), place(table[_SYMTAB])
    count = struct.unpack_from("<II", binary, place(table[_HASH]))[1]
    for i in range(count):
        name, _, _, section, value, _ = _SYMBOL.unpack_from(binary, symbols + i * _SYMBOL.size)
        end = binary.index(b"\0", names + name)
        if section and binary[names + name : end] == VERSION_SYMBOL.encode():
            return int(struct.unpack_from("<i", binary, place(value))[0])
    return None
