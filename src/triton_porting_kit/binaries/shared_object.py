"""Links one relocatable object into an ELF shared object, without a linker program.

It is for chips whose runtime loads shared objects, and for machines without a linker. The object must be
position-independent code for x86-64 or AArch64. Undefined symbols are left to the dynamic linker that loads the result.
The rules are those of the System V ABI (generic and both processor supplements).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from triton_porting_kit.binaries import elf_relocations
from triton_porting_kit.binaries.elf import Object, Relocation, Symbol, read_object
from triton_porting_kit.errors import InvalidModule

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_DYNAMIC = struct.Struct("<qQ")

_SHARED = 3
_LOAD, _DYNAMIC_SEGMENT, _STACK = 1, 2, 0x6474E551
_EXECUTABLE, _WRITABLE, _READABLE = 1, 2, 4
_ALLOC, _WRITE, _CODE = 2, 1, 4
_HASH, _STRTAB, _SYMTAB, _RELA, _RELASZ, _RELAENT, _STRSZ, _SYMENT = 4, 5, 6, 7, 8, 9, 10, 11
_SONAME, _BIND_NOW = 14, 24
_GLOBAL_UNTYPED = 0x10
_DYNAMIC_ENTRIES = 11
_LIMIT = 1 << 28


@dataclass
class _Part:
    """Contents of the output that have the same permissions and are adjacent."""

    flags: int
    content: bytearray = field(default_factory=bytearray)
    address: int = 0

    def add(self, data: bytes, alignment: int) -> int:
        """Append data, and return its offset."""
        self.content.extend(bytes(-len(self.content) % max(alignment, 1)))
        if len(self.content) + len(data) > _LIMIT:
            raise InvalidModule(f"the shared object would have more than {_LIMIT:,} bytes")
        offset = len(self.content)
        self.content.extend(data)
        return offset


def link_shared_object(data: bytes, name: str = "kernel.so") -> bytes:
    """The shared object of one relocatable object, which exports every global symbol that the object defines.

    `name` becomes its DT_SONAME. Raises `InvalidModule` if `data` is not a relocatable object, and for relocations that
    position-independent code cannot have.
    """
    try:
        return _Linker(read_object(data), name).link()
    except (LookupError, ValueError, OverflowError, struct.error) as error:
        if isinstance(error, InvalidModule):
            raise
        raise InvalidModule(f"the parts of the object contradict each other: {error!r:.100}") from error


class _Linker:
    def __init__(self, source: Object, name: str) -> None:
        self._source, self._name = source, name
        self._machine = elf_relocations.machine(source.machine)
        self._code = _Part(_READABLE | _EXECUTABLE)
        self._constants = _Part(_READABLE)
        self._variables = _Part(_READABLE | _WRITABLE)
        self._places: dict[int, tuple[_Part, int]] = {}
        self._slots: dict[int, int] = {}  # by symbol: offset of its pointer among the variables
        self._stubs: dict[int, int] = {}  # by symbol: offset of the jump to it in the code
        self._dynamic_relocations: list[tuple[int, int, int]] = []  # address, info, addend
        self._exported = [i for i, symbol in enumerate(source.symbols) if symbol.is_exported]
        self._imported: list[int] = []

    def link(self) -> bytes:
        self._place_sections()
        self._reserve_pointers()
        numbers, names = self._number_symbols()
        self._place_parts(names)
        self._relocate(numbers)
        return self._write(numbers, names)

    # --- layout --------------------------------------------------------------------------------------------

    def _place_sections(self) -> None:
        for section in self._source.sections:
            if not section.flags & _ALLOC:
                continue
            if section.flags & _CODE:
                part = self._code
            else:
                part = self._variables if section.flags & _WRITE else self._constants
            self._places[section.index] = part, part.add(section.content, section.alignment)

    def _reserve_pointers(self) -> None:
        """Reserve a pointer for each symbol that code reaches through one, and a jump for each undefined one that is
        called.
        """
        for _, relocation in self._source.relocations():
            kind = self._machine.kind(relocation.type)
            symbol = self._source.symbols[relocation.symbol]
            if symbol.section == 0 and relocation.symbol not in self._imported and symbol.name:
                self._imported.append(relocation.symbol)
            pointer = kind.through_pointer or (kind.is_call and symbol.section == 0)
            if pointer and relocation.symbol not in self._slots:
                self._slots[relocation.symbol] = self._variables.add(bytes(8), 8)
            if kind.is_call and symbol.section == 0 and relocation.symbol not in self._stubs:
                self._stubs[relocation.symbol] = self._code.add(bytes(self._machine.stub_bytes), 16)

    def _number_symbols(self) -> tuple[dict[int, int], bytes]:
        """Dynamic symbols: their numbers by index in the object, and the table of their names."""
        names = bytearray(b"\0" + self._name.encode() + b"\0")
        numbers = {}
        self._name_offsets = {}
        for number, index in enumerate([*self._imported, *self._exported], 1):
            numbers[index] = number
            self._name_offsets[index] = len(names)
            names += self._source.symbols[index].name.encode() + b"\0"
        return numbers, bytes(names)

    def _place_parts(self, names: bytes) -> None:
        """Assign addresses to the parts, which are also their offsets in the file."""
        symbols = 1 + len(self._imported) + len(self._exported)
        relocations = len(self._slots)
        relocations += sum(self._machine.kind(r.type).is_absolute for _, r in self._source.relocations())
        self._dynamic = self._variables.add(bytes(_DYNAMIC_ENTRIES * _DYNAMIC.size), 8)
        size = _HEADER.size + 6 * _SEGMENT.size
        self._at = {}
        for table, length in (
            ("symbols", symbols * _SYMBOL.size),
            ("names", len(names)),
            ("hash", 4 * (2 + 1 + symbols)),
            ("relocations", relocations * _RELOCATION.size),
        ):
            size += -size % 8
            self._at[table] = size
            size += length
        self._table_bytes = size
        address = size
        for part in (self._code, self._constants, self._variables):
            part.address = address + -address % self._machine.page
            address = part.address + len(part.content)

    def _address(self, symbol: Symbol) -> int:
        if symbol.section >= 0xFF00:
            return symbol.value
        part, offset = self._places[symbol.section]
        return part.address + offset + symbol.value

    # --- relocations -------------------------------------------------------------------------------------

    def _relocate(self, numbers: dict[int, int]) -> None:
        for section, relocation in self._source.relocations():
            kind = self._machine.kind(relocation.type)
            part, start = self._places[section.index]
            offset = start + relocation.offset
            symbol = self._source.symbols[relocation.symbol]
            if kind.is_absolute:
                self._leave_to_loader(part.address + offset, relocation, symbol, numbers)
                continue
            if kind.through_pointer:
                target = self._variables.address + self._slots[relocation.symbol]
            elif symbol.section == 0:
                if relocation.symbol not in self._stubs:
                    raise InvalidModule(
                        f"{symbol.name!r} is not defined, and reached as if it lay in the same file (relocation "
                        f"{relocation.type}): compile position-independently"
                    )
                target = self._code.address + self._stubs[relocation.symbol]
            else:
                target = self._address(symbol)
            kind.apply(part.content, offset, target + relocation.addend, part.address + offset)
        for index, slot in self._slots.items():
            symbol = self._source.symbols[index]
            place = self._variables.address + slot
            if symbol.section == 0:
                self._dynamic_relocations.append((place, numbers[index] << 32 | self._machine.pointer, 0))
            else:
                self._dynamic_relocations.append((place, self._machine.relative, self._address(symbol)))
        for index, stub in self._stubs.items():
            place = self._variables.address + self._slots[index]
            code = self._machine.stub(self._code.address + stub, place)
            self._code.content[stub : stub + len(code)] = code

    def _leave_to_loader(
        self, place: int, relocation: Relocation, symbol: Symbol, numbers: dict[int, int]
    ) -> None:
        if symbol.section == 0:
            info = numbers[relocation.symbol] << 32 | self._machine.absolute
            self._dynamic_relocations.append((place, info, relocation.addend))
        else:
            value = self._address(symbol) + relocation.addend
            self._dynamic_relocations.append((place, self._machine.relative, value))

    # --- the file ----------------------------------------------------------------------------------------

    def _write(self, numbers: dict[int, int], names: bytes) -> bytes:
        self._write_dynamic(len(names))
        end = self._variables.address + len(self._variables.content)
        image = bytearray(end)
        tables = self._tables_content(numbers, names)
        image[: len(tables)] = tables
        for part in (self._code, self._constants, self._variables):
            image[part.address : part.address + len(part.content)] = part.content
        return bytes(image)

    def _write_dynamic(self, names_bytes: int) -> None:
        at = self._at
        entries = (
            (_SONAME, 1),
            (_HASH, at["hash"]),
            (_STRTAB, at["names"]),
            (_STRSZ, names_bytes),
            (_SYMTAB, at["symbols"]),
            (_SYMENT, _SYMBOL.size),
            (_RELA, at["relocations"]),
            (_RELASZ, len(self._dynamic_relocations) * _RELOCATION.size),
            (_RELAENT, _RELOCATION.size),
            (_BIND_NOW, 0),
            (0, 0),
        )
        content = b"".join(_DYNAMIC.pack(*entry) for entry in entries)
        self._variables.content[self._dynamic : self._dynamic + len(content)] = content

    def _tables_content(self, numbers: dict[int, int], names: bytes) -> bytes:
        image = bytearray(self._table_bytes)
        count = 1 + len(numbers)
        image[: _HEADER.size] = _HEADER.pack(
            b"\x7fELF\x02\x01\x01" + bytes(9), _SHARED, self._source.machine, 1, 0, _HEADER.size, 0, 0,
            _HEADER.size, _SEGMENT.size, 6, 0, 0, 0,
        )  # fmt: skip
        segments = self._segments()
        image[_HEADER.size : _HEADER.size + len(segments)] = segments
        symbols = bytearray(_SYMBOL.size)
        for index in numbers:
            symbol = self._source.symbols[index]
            name = self._name_offsets[index]
            if symbol.section == 0:
                symbols += _SYMBOL.pack(name, _GLOBAL_UNTYPED, 0, 0, 0, 0)
            else:  # defined in a section: the loader adds its base to the value
                symbols += _SYMBOL.pack(name, symbol.info, 0, 1, self._address(symbol), symbol.size)
        chains = [index + 1 if index + 1 < count else 0 for index in range(count)]
        # One hash bucket: a chain of all symbols.
        table = struct.pack(f"<{3 + count}I", 1, count, 1 if count > 1 else 0, 0, *chains[1:])
        relocations = b"".join(_RELOCATION.pack(*entry) for entry in self._dynamic_relocations)
        for place, content in (
            ("symbols", bytes(symbols)),
            ("names", names),
            ("hash", table),
            ("relocations", relocations),
        ):
            image[self._at[place] : self._at[place] + len(content)] = content
        return bytes(image)

    def _segments(self) -> bytes:
        page = self._machine.page
        loads = [(_READABLE, 0, self._table_bytes)]
        loads += [
            (part.flags, part.address, len(part.content))
            for part in (self._code, self._constants, self._variables)
        ]
        dynamic = self._variables.address + self._dynamic
        rows = [(_LOAD, flags, at, at, at, size, size, page) for flags, at, size in loads]
        size = _DYNAMIC_ENTRIES * _DYNAMIC.size
        rows.append((_DYNAMIC_SEGMENT, _READABLE | _WRITABLE, dynamic, dynamic, dynamic, size, size, 8))
        rows.append((_STACK, _READABLE | _WRITABLE, 0, 0, 0, 0, 0, 16))
        return b"".join(_SEGMENT.pack(*row) for row in rows)
