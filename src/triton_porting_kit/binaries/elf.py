"""Reads ELF files and checks every structure, so that a linker only gets files that it cannot fail on.

Relocatable objects are read as a whole; of other ELF files, the header, the sections and the symbols.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from triton_porting_kit.errors import InvalidModule

_MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243}
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_RELOCATABLE = 1
_SYMTAB, _STRTAB, _RELA, _NOBITS = 2, 3, 4, 8
_FIRST_RESERVED_SECTION = 0xFF00
_UNDEFINED = 0
_ALLOC = 2
_ZEROS_LIMIT, _ALIGNMENT_LIMIT = 1 << 27, 1 << 16
_NAMES_LIMIT = 1 << 26
"""Most bytes of all names of a symbol table; many symbols may share the end of one long name."""


class Section:
    """One entry of the section table. Its contents are known to be inside the file."""

    def __init__(self, index: int, fields: tuple[int, ...], data: bytes) -> None:
        (
            self.name,
            self.type,
            self.flags,
            self.address,
            self.offset,
            self.size,
            self.link,
            self.info,
            align,
            self.entry_size,
        ) = fields
        self.index = index
        self.alignment = align
        occupied = 0 if self.type == _NOBITS else self.size
        if self.offset + occupied > len(data):
            raise InvalidModule(
                f"section {index} ends at byte {self.offset + occupied}, the file at {len(data)}: truncated?"
            )
        if self.size - occupied > _ZEROS_LIMIT or align > _ALIGNMENT_LIMIT or align & (align - 1):
            raise InvalidModule(f"section {index} has {self.size} bytes at alignment {align}")
        self.data = data[self.offset : self.offset + occupied]

    @property
    def content(self) -> bytes:
        """Its content in memory: its data, or zeros."""
        return bytes(self.size) if self.type == _NOBITS else self.data

    def part(self, start: int, size: int) -> bytes:
        """At most `size` bytes of `content`, starting at `start`."""
        if self.type == _NOBITS:
            return bytes(max(0, min(size, self.size - start)))
        return self.data[start : start + size]

    def entries(self, layout: struct.Struct) -> list[tuple[int, ...]]:
        if self.entry_size != layout.size or len(self.data) % layout.size:
            raise InvalidModule(f"section {self.index} is not a table of {layout.size}-byte entries")
        return list(layout.iter_unpack(self.data))


class Header(NamedTuple):
    """The header of an ELF file."""

    os_abi: int
    abi_version: int
    kind: int
    """1 for relocatable objects, 3 for shared ones."""
    machine: int
    """ELF's number of the machine."""
    flags: int
    """Flags; their meaning depends on the machine."""
    sections_at: int
    section_count: int
    section_names: int
    """Index of the section that holds the names of sections."""


class Symbol(NamedTuple):
    """An entry of the symbol table."""

    name: str
    info: int
    """Binding and type, as in the file."""
    visibility: int
    section: int
    """Index of its section; 0 if undefined."""
    value: int
    size: int

    @property
    def is_exported(self) -> bool:
        """Whether other objects may refer to it: global or weak, defined, and not hidden."""
        return self.info >> 4 in (1, 2) and self.section != _UNDEFINED and self.visibility & 3 in (0, 3)


class Relocation(NamedTuple):
    """An entry of a relocation table: a place in a section that depends on a symbol."""

    offset: int
    type: int
    symbol: int
    addend: int


@dataclass(frozen=True)
class Object:
    """A relocatable object."""

    machine: int
    """ELF's number of the machine."""
    sections: list[Section]
    symbols: list[Symbol]

    def relocations(self) -> Iterator[tuple[Section, Relocation]]:
        """Every relocation of loaded sections, with the section that it changes."""
        for table in self.sections:
            target = _section(self.sections, table.info) if table.type == _RELA else table
            if table.type == _RELA and target.flags & _ALLOC:
                for offset, info, addend in table.entries(_RELOCATION):
                    yield target, Relocation(offset, info & 0xFFFFFFFF, info >> 32, addend)


def read_object(data: bytes, machine: str | None = None) -> Object:
    """A relocatable object for a machine, by Python's name for it; by default for any known machine.

    Raises `InvalidModule` as `defined_symbols` does.
    """
    sections = _sections(data, machine)
    symbols: list[Symbol] = []
    for section in sections:
        if section.type == _SYMTAB:
            if symbols:
                raise InvalidModule("there are several symbol tables")
            symbols = _symbols(section, sections)
        elif section.type == _RELA:
            _check_relocations(section, sections)
    return Object(_HEADER.unpack_from(data)[2], sections, symbols)


def defined_symbols(data: bytes) -> set[str]:
    """The names that a relocatable ELF object for this machine defines.

    Raises `InvalidModule` if `data` is anything else, or if headers, sections, symbols, strings or relocations point
    outside of the file.
    """
    return {s.name for s in read_object(data, platform.machine()).symbols if s.section != _UNDEFINED}


def section_named(data: bytes, name: str) -> bytes | None:
    """The contents of a section of an ELF file; None if it has no section of that name.

    Raises `InvalidModule` as `read_header` and `read_sections` do.
    """
    header = read_header(data)
    sections = read_sections(data, header)
    names = _strings(sections, header.section_names)
    wanted = name.encode() + b"\0"
    return next(
        (section.data for section in sections if names[section.name : section.name + len(wanted)] == wanted),
        None,
    )


def read_header(data: bytes) -> Header:
    """The header of a 64-bit little-endian ELF file, whose section table is known to be inside the file.

    Raises `InvalidModule` if `data` is anything else.
    """
    if data[:4] != b"\x7fELF":
        raise InvalidModule(f"not an ELF object: it starts with {data[:4]!r}")
    if len(data) < _HEADER.size:
        raise InvalidModule(f"{len(data)} bytes are less than an ELF header: truncated?")
    (ident, kind, machine, _, _, _, table, flags, _, _, _, entry_size, count, names) = _HEADER.unpack_from(
        data
    )
    if ident[4] != 2 or ident[5] != 1:
        raise InvalidModule("not a 64-bit little-endian ELF object")
    if entry_size != _SECTION.size or count == 0:
        raise InvalidModule(f"no usable section table ({count} entries of {entry_size} bytes)")
    end = table + count * entry_size
    if end > len(data):
        raise InvalidModule(
            f"the section table ends at byte {end} of a file of {len(data)} bytes: truncated?"
        )
    return Header(ident[7], ident[8], kind, machine, flags, table, count, names)


def read_sections(data: bytes, header: Header) -> list[Section]:
    """The sections of a file with this header. The contents of each are known to be inside the file.

    Raises `InvalidModule` if they are not.
    """
    _check_overlaps(data, header)
    sections = [
        Section(index, _SECTION.unpack_from(data, header.sections_at + index * _SECTION.size), data)
        for index in range(header.section_count)
    ]
    _strings(sections, header.section_names)
    if sum(section.size for section in sections if section.type == _NOBITS) > _ZEROS_LIMIT:
        raise InvalidModule(f"there are more than {_ZEROS_LIMIT:,} bytes of zeros")
    return sections


def _check_overlaps(data: bytes, header: Header) -> None:
    """Check that sections share no bytes: otherwise a small file could have many large ones."""
    total = 0
    for index in range(header.section_count):
        _, kind, _, _, _, size, *_ = _SECTION.unpack_from(data, header.sections_at + index * _SECTION.size)
        total += 0 if kind == _NOBITS else size
    if total > len(data):
        raise InvalidModule(
            f"the sections have {total:,} bytes together, the file has {len(data):,}: truncated, or they overlap"
        )


def read_symbols(section: Section, sections: list[Section]) -> list[Symbol]:
    """The entries of a symbol table of a linked file, in which the values of symbols are addresses.

    Raises `InvalidModule` if a symbol or its name exceeds its section or string table.
    """
    return _symbols(section, sections, linked=True)


def _sections(data: bytes, wanted: str | None) -> list[Section]:
    header = read_header(data)
    expected = [_MACHINES.get(wanted)] if wanted else list(_MACHINES.values())
    if header.machine not in expected:
        known = f"this host is {wanted} ({expected[0]})" if wanted else f"known are {_MACHINES}"
        raise InvalidModule(f"made for ELF machine {header.machine}; {known}")
    if header.kind != _RELOCATABLE:
        raise InvalidModule(f"not a relocatable object (ELF type {header.kind}, expected {_RELOCATABLE})")
    return read_sections(data, header)


def _section(sections: list[Section], index: int) -> Section:
    if index >= len(sections):
        raise InvalidModule(f"section {index} is referred to, but there are only {len(sections)}")
    return sections[index]


def _strings(sections: list[Section], index: int) -> bytes:
    strings = _section(sections, index)
    if strings.type != _STRTAB or strings.data[-1:] != b"\0":
        raise InvalidModule(f"section {index} is not a string table")
    return strings.data


def _symbols(section: Section, sections: list[Section], linked: bool = False) -> list[Symbol]:
    strings = _strings(sections, section.link)
    found = []
    names = 0
    for name, info, other, place, value, size in section.entries(_SYMBOL):
        if name >= len(strings):
            raise InvalidModule(f"a symbol's name lies outside of its string table (offset {name})")
        if _UNDEFINED < place < _FIRST_RESERVED_SECTION:
            home = _section(sections, place)
            start = value - home.address if linked else value
            if start < 0 or start + size > home.size:
                raise InvalidModule(f"a symbol lies outside of its section {place}")
        text = strings[name : strings.index(b"\0", name)].decode(errors="replace")
        names += len(text)
        if names > _NAMES_LIMIT:
            raise InvalidModule(f"the names of symbols have more than {_NAMES_LIMIT:,} bytes together")
        found.append(Symbol(text, info, other, place, value, size))
    return found


def _check_relocations(section: Section, sections: list[Section]) -> None:
    symbols = _section(sections, section.link)
    count = len(symbols.data) // _SYMBOL.size
    target = _section(sections, section.info)
    for offset, info, _ in section.entries(_RELOCATION):
        if info >> 32 >= count or offset >= max(target.size, 1):
            raise InvalidModule(
                f"a relocation of section {section.info} points outside of it or of the symbols"
            )
