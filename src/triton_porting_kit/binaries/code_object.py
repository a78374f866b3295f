"""Reads AMDGPU code objects (hsaco): the properties of kernels that a runtime needs, and their instructions.

Source: LLVM's "User Guide for AMDGPU Backend", section Code Object, versions 3 to 6. Every structure is checked before
it is used, and the different descriptions of a kernel in a file are compared.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit import untrusted
from triton_porting_kit.errors import CodeObjectError, InvalidModule

from . import elf, kernel_descriptor
from .amdgpu_targets import HSA, MACHINE, architecture_of, target_id_of
from .kernel_descriptor import KernelDescriptor, read_descriptor

#: Suffix of an absolute symbol whose value is the LDS, in bytes, that launches of a kernel must add.
DYNAMIC_LDS_SUFFIX = ".dynamic_group_segment_size"

_SHARED_OBJECT = 3
_NOTE, _SYMTAB, _DYNSYM = 7, 2, 11
_EXECUTABLE = 4
_METADATA_NOTE = 32
_ABSOLUTE, _FIRST_RESERVED = 0xFFF1, 0xFF00
_ENTRY_ALIGNMENT = 256
_ABI_VERSIONS = {1: 3, 2: 4, 3: 5, 4: 6}


@dataclass(frozen=True)
class KernelArgument:
    """One argument of a kernel: `offset` and `size` in bytes, within its argument block."""

    name: str | None
    offset: int
    size: int
    value_kind: str
    """As in the metadata: ``global_buffer`` or ``by_value``; ``hidden_...`` for arguments that the runtime fills in."""
    address_space: str | None

    @property
    def is_hidden(self) -> bool:
        """Whether the runtime fills it in, and not the caller."""
        return self.value_kind.startswith("hidden_")


@dataclass(frozen=True)
class Kernel:
    """One kernel of a code object; sizes in bytes, registers per thread or (SGPRs) per wavefront."""

    name: str
    arguments: tuple[KernelArgument, ...]
    kernarg_segment_size: int
    kernarg_segment_align: int
    group_segment_fixed_size: int
    """LDS that every launch gets."""
    dynamic_group_segment_size: int | None
    """LDS that launches must add, if the code object says so in an absolute symbol of the kit's."""
    private_segment_fixed_size: int
    wavefront_size: int
    max_flat_workgroup_size: int
    """The most threads of a work-group; Triton's kernels are launched with exactly that many."""
    sgpr_count: int
    vgpr_count: int
    """Vector registers, including accumulation registers."""
    agpr_count: int
    """The accumulation registers among them."""
    sgpr_spill_count: int
    vgpr_spill_count: int
    descriptor: KernelDescriptor
    code: bytes
    """Its instructions, without the padding after them."""

    @property
    def explicit_arguments(self) -> tuple[KernelArgument, ...]:
        """The arguments that the caller gives."""
        return tuple(argument for argument in self.arguments if not argument.is_hidden)

    @property
    def hidden_arguments(self) -> tuple[KernelArgument, ...]:
        """The arguments that the runtime fills in."""
        return tuple(argument for argument in self.arguments if argument.is_hidden)


@dataclass(frozen=True)
class CodeObject:
    """A linked AMDGPU code object."""

    arch: str
    """The architecture, such as ``gfx942``."""
    target_id: str
    """The architecture with the features that the code requires, such as ``gfx90a:sramecc+:xnack-``."""
    abi_version: int
    """The ELF file's ABI version: 1 to 4 for code objects of version 3 to 6."""
    kernels: Mapping[str, Kernel]

    @property
    def version(self) -> int:
        """The code object version, as in compilers' options: 3 to 6."""
        return _ABI_VERSIONS[self.abi_version]


def read_code_object(binary: bytes) -> CodeObject:
    """Read a linked code object for ROCm, and check that its parts are consistent.

    Raises `CodeObjectError` for anything else: files that are truncated or damaged, for another machine or of an
    unknown version, or in which the descriptor and the metadata of a kernel differ.
    """
    try:
        return _read(bytes(binary))
    except InvalidModule as error:
        raise CodeObjectError(f"not a usable AMDGPU code object: {error}") from None


def _read(data: bytes) -> CodeObject:
    header = elf.read_header(data)
    if header.machine != MACHINE:
        raise CodeObjectError(f"made for ELF machine {header.machine}; AMD's GPUs are {MACHINE}")
    if header.os_abi != HSA or header.abi_version not in _ABI_VERSIONS:
        raise CodeObjectError(
            f"ABI version {header.abi_version} of ELF's operating system ABI {header.os_abi}; supported are versions "
            f"{', '.join(map(str, _ABI_VERSIONS))} of {HSA}, the code objects 3 to 6 of ROCm"
        )
    if header.kind != _SHARED_OBJECT:
        raise CodeObjectError(
            f"not a linked code object (ELF type {header.kind}, expected {_SHARED_OBJECT}); link it first"
        )
    arch, target_id = architecture_of(header.flags), target_id_of(header.flags, header.abi_version)
    image = _Image(elf.read_sections(data, header))
    metadata = _Metadata(_unpack(image.metadata_note()), "the metadata")
    target = metadata.text("amdhsa.target", "")
    # The parts of the triple may be empty, and the processor's name may contain hyphens.
    if target and target.split("-", 4)[-1].partition(":")[0] != arch:
        raise CodeObjectError(f"the ELF file's flags say {target_id}, its metadata {target}")
    kernels: list[Kernel] = []
    code = 0
    for entry in metadata.maps("amdhsa.kernels"):
        kernels.append(_kernel(entry, image, arch))
        code += len(kernels[-1].code)
        if code > len(data):
            raise CodeObjectError(f"kernels have {code:,} bytes of code together, the file has {len(data):,}")
    by_name = {kernel.name: kernel for kernel in kernels}
    if len(by_name) != len(kernels):
        raise CodeObjectError(f"several kernels of one name: {', '.join(kernel.name for kernel in kernels)}")
    return CodeObject(arch, target_id, header.abi_version, by_name)


class _Image:
    """The sections and symbols of a code object, and the memory that they describe."""

    def __init__(self, sections: list[elf.Section]) -> None:
        self.sections = sections
        self.symbols: dict[str, elf.Symbol] = {}
        for section in sections:
            if section.type in (_SYMTAB, _DYNSYM):
                self.symbols.update((symbol.name, symbol) for symbol in elf.read_symbols(section, sections))

    def metadata_note(self) -> bytes:
        found = [
            content
            for section in self.sections
            if section.type == _NOTE
            for owner, kind, content in _notes(section.data)
            if (owner, kind) == (b"AMDGPU", _METADATA_NOTE)
        ]
        if len(found) != 1:
            raise CodeObjectError(f"{len(found)} notes of kernels' metadata, expected one")
        return found[0]

    def symbol(self, name: str) -> elf.Symbol:
        symbol = self.symbols.get(name)
        if symbol is None or not 0 < symbol.section < _FIRST_RESERVED:
            raise CodeObjectError(f"the metadata name the symbol {name!r}, which is not defined")
        return symbol

    def content(self, symbol: elf.Symbol) -> bytes:
        section = self.sections[symbol.section]
        start = symbol.value - section.address
        return section.part(start, symbol.size)

    def dynamic_lds(self, kernel: str) -> int | None:
        symbol = self.symbols.get(kernel + DYNAMIC_LDS_SUFFIX)
        if symbol is None:
            return None
        if symbol.section != _ABSOLUTE or symbol.value >= 1 << 32:
            raise CodeObjectError(f"{symbol.name} is not an absolute symbol whose value is a number of bytes")
        return symbol.value

    def code(self, kernel: str, address: int) -> bytes:
        """The code that begins at an address and belongs to the kernel's function."""
        symbol = self.symbol(kernel)
        section = self.sections[symbol.section]
        if not section.flags & _EXECUTABLE or symbol.value != address or address % _ENTRY_ALIGNMENT:
            raise CodeObjectError(
                f"kernel {kernel!r} begins at address {address:#x} by its descriptor, its function lies at "
                f"{symbol.value:#x}: expected the same, {_ENTRY_ALIGNMENT}-byte aligned, in executable code"
            )
        code = self.content(symbol)
        if not code or len(code) % 4:
            raise CodeObjectError(
                f"kernel {kernel!r} has {len(code)} bytes of instructions, which are words of 4"
            )
        return code


def _notes(data: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """The notes of a section: owner, type, content."""
    at = 0
    while at < len(data):
        if at + 12 > len(data):
            raise CodeObjectError("a note's header is cut off")
        name_size, size, kind = struct.unpack_from("<III", data, at)
        name_at, content_at = at + 12, at + 12 + _round_up(name_size)
        if content_at + size > len(data):
            raise CodeObjectError(
                f"a note ends at byte {content_at + size} of a section of {len(data)} bytes"
            )
        yield data[name_at : name_at + name_size].rstrip(b"\0"), kind, data[content_at : content_at + size]
        at = content_at + _round_up(size)


def _round_up(size: int) -> int:
    return -(-size // 4) * 4


def _unpack(note: bytes) -> Any:
    return untrusted.parse_message_pack(note, "the note of the kernels' metadata", CodeObjectError)


class _Metadata:
    """A map of the metadata, whose values are read with their expected types."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise CodeObjectError(f"{where}: expected a map, found {type(value).__name__}")
        self.value, self.where = value, where

    def text(self, key: str, default: str | None = None) -> str:
        found = self.value.get(key, default)
        if not isinstance(found, str):
            raise CodeObjectError(f"{self.where}: {key} should be text, is {found!r:.60}")
        return found

    def optional_text(self, key: str) -> str | None:
        return self.text(key) if key in self.value else None

    def count(self, key: str, default: int | None = None) -> int:
        found = self.value.get(key, default)
        if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < 1 << 32:
            raise CodeObjectError(f"{self.where}: {key} should be a count below 2**32, is {found!r:.60}")
        return found

    def maps(self, key: str) -> list[_Metadata]:
        found = self.value.get(key, [])
        if not isinstance(found, list):
            raise CodeObjectError(f"{self.where}: {key} should be a list, is {found!r:.60}")
        return [
            _Metadata(entry, f"{self.where}, entry {index} of {key}") for index, entry in enumerate(found)
        ]


def _kernel(entry: _Metadata, image: _Image, arch: str) -> Kernel:
    name = entry.text(".name")
    entry.where = f"the metadata of kernel {name!r}"
    symbol = image.symbol(entry.text(".symbol"))
    if symbol.value % kernel_descriptor.ALIGNMENT:
        raise CodeObjectError(
            f"the descriptor of kernel {name!r} lies at {symbol.value:#x}, which is not aligned"
        )
    try:
        descriptor = read_descriptor(image.content(symbol), arch)
    except CodeObjectError as error:
        raise CodeObjectError(f"kernel {name!r}: {error}") from None
    kernel = Kernel(
        name=name,
        arguments=tuple(
            KernelArgument(
                argument.optional_text(".name"),
                argument.count(".offset"),
                argument.count(".size"),
                argument.text(".value_kind"),
                argument.optional_text(".address_space"),
            )
            for argument in entry.maps(".args")
        ),
        kernarg_segment_size=entry.count(".kernarg_segment_size"),
        kernarg_segment_align=entry.count(".kernarg_segment_align"),
        group_segment_fixed_size=entry.count(".group_segment_fixed_size"),
        dynamic_group_segment_size=image.dynamic_lds(name),
        private_segment_fixed_size=entry.count(".private_segment_fixed_size"),
        wavefront_size=entry.count(".wavefront_size"),
        max_flat_workgroup_size=entry.count(".max_flat_workgroup_size"),
        sgpr_count=entry.count(".sgpr_count"),
        vgpr_count=entry.count(".vgpr_count"),
        agpr_count=entry.count(".agpr_count", 0),
        sgpr_spill_count=entry.count(".sgpr_spill_count", 0),
        vgpr_spill_count=entry.count(".vgpr_spill_count", 0),
        descriptor=descriptor,
        code=image.code(name, symbol.value + descriptor.kernel_code_entry_byte_offset),
    )
    _check(kernel)
    return kernel


def _check(kernel: Kernel) -> None:
    """Check that the metadata agree with the descriptor, and that the arguments lie in their block."""
    descriptor = kernel.descriptor
    for what, told, encoded in (
        ("bytes of arguments", kernel.kernarg_segment_size, descriptor.kernarg_size),
        ("bytes of LDS", kernel.group_segment_fixed_size, descriptor.group_segment_fixed_size),
        (
            "bytes of scratch per thread",
            kernel.private_segment_fixed_size,
            descriptor.private_segment_fixed_size,
        ),
        ("threads per wavefront", kernel.wavefront_size, descriptor.wavefront_size),
    ):
        if told != encoded:
            raise CodeObjectError(
                f"kernel {kernel.name!r}: {told} {what} by the metadata, {encoded} by the descriptor"
            )
    if kernel.vgpr_count > descriptor.allocated_vgprs:
        raise CodeObjectError(
            f"kernel {kernel.name!r}: uses {kernel.vgpr_count} vector registers by the metadata, the descriptor "
            f"allocates {descriptor.allocated_vgprs}"
        )
    align = kernel.kernarg_segment_align
    if align & (align - 1) or not align:
        raise CodeObjectError(
            f"kernel {kernel.name!r}: arguments aligned to {align}, which is not a power of two"
        )
    _check_arguments(kernel.name, kernel.arguments, kernel.kernarg_segment_size)


def _check_arguments(kernel: str, arguments: Sequence[KernelArgument], size: int) -> None:
    end = 0
    for index, argument in enumerate(arguments):
        if argument.offset < end or argument.offset + argument.size > size:
            raise CodeObjectError(
                f"kernel {kernel!r}: argument {index} has bytes {argument.offset} to "
                f"{argument.offset + argument.size} of a block of {size}, behind one that ends at {end}"
            )
        end = argument.offset + argument.size
