"""The kernel ABI symbols of a binary, read from the file without loading it."""

from __future__ import annotations

import struct

from triton_porting_kit.abi.kernel import POINTERS, VERSION_SYMBOL
from triton_porting_kit.binaries.elf import read_object
from triton_porting_kit.errors import InvalidModule

_RELOCATABLE, _SHARED = 1, 3
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_LOAD, _DYNAMIC = 1, 2
_HASH, _STRTAB, _SYMTAB = 4, 5, 6


def abi_version(binary: bytes) -> int | None:
    """The ABI version of an ELF object, relocatable or shared, that follows the kit's kernel ABI; otherwise None."""
    content = _after_symbol(binary, VERSION_SYMBOL)
    return int(struct.unpack_from("<i", content)[0]) if content is not None and len(content) >= 4 else None


def pointer_offsets(binary: bytes, kernel: str) -> list[int] | None:
    """The byte offsets of a kernel's pointers in the argument block; None if the binary does not contain them."""
    content = _after_symbol(binary, kernel + POINTERS)
    if content is None or len(content) < 4:
        return None
    count = struct.unpack_from("<i", content)[0]
    if not 0 <= count <= len(content) // 4 - 1:
        return None
    return list(struct.unpack_from(f"<{count}i", content, 4))


def _after_symbol(binary: bytes, name: str) -> bytes | None:
    """The content from a symbol on; None if there is no such symbol, or no readable ELF object."""
    if binary[:4] != b"\x7fELF" or len(binary) < _HEADER.size:
        return None
    kind = _HEADER.unpack_from(binary)[1]
    try:
        if kind == _RELOCATABLE:
            return _in_relocatable(binary, name)
        return _in_shared(binary, name.encode()) if kind == _SHARED else None
    except (InvalidModule, struct.error, ValueError, OverflowError, LookupError, StopIteration):
        return None


def _in_relocatable(binary: bytes, name: str) -> bytes | None:
    found = read_object(binary)
    for symbol in found.symbols:
        if symbol.name == name and symbol.section:
            return found.sections[symbol.section].content[symbol.value :]
    return None


def _in_shared(binary: bytes, name: bytes) -> bytes | None:
    header = _HEADER.unpack_from(binary)
    segments = [_SEGMENT.unpack_from(binary, header[5] + i * header[9]) for i in range(header[10])]

    def place(address: int) -> int:
        """The file offset of the content that is loaded at `address`."""
        for kind, _, offset, start, _, size, _, _ in segments:
            if kind == _LOAD and start <= address < start + size:
                return int(offset + address - start)
        raise ValueError(address)

    _, _, offset, _, _, size, _, _ = next(segment for segment in segments if segment[0] == _DYNAMIC)
    table = dict(struct.iter_unpack("<qQ", binary[offset : offset + size]))
    names, symbols = place(table[_STRTAB]), place(table[_SYMTAB])
    count = struct.unpack_from("<II", binary, place(table[_HASH]))[1]
    for i in range(count):
        at, _, _, section, value, _ = _SYMBOL.unpack_from(binary, symbols + i * _SYMBOL.size)
        if section and binary.startswith(name + b"\0", names + at):
            return binary[place(value) :]
    return None
