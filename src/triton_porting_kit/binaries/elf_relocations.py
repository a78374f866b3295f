"""The relocations of each machine, and the code of a jump through a pointer.

From the ELF supplements of the processors: "System V Application Binary Interface, AMD64 Architecture Processor
Supplement", table 4.9, and "ELF for the Arm 64-bit Architecture (AArch64)", section 5.7.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from triton_porting_kit.errors import InvalidModule

Apply = Callable[[bytearray, int, int, int], None]
"""Called with the contents, an offset in them, the address of the target, and the address of the place."""


@dataclass(frozen=True)
class Kind:
    """One type of relocation."""

    apply: Apply
    is_call: bool = False
    """Whether it may go through a jump, because the target is only called."""
    through_pointer: bool = False
    """Whether it refers to a pointer to the symbol instead of the symbol."""
    is_absolute: bool = False
    """Whether it is an absolute address, which only the loader knows."""


@dataclass(frozen=True)
class Machine:
    """A processor: its relocations, and the numbers of those that the loader applies."""

    name: str
    page: int
    """Bytes: the largest page size of systems on this processor."""
    kinds: Mapping[int, Kind]
    absolute: int
    pointer: int
    relative: int
    stub_bytes: int
    stub: Callable[[int, int], bytes]
    """``stub(address, pointer)``: the code at an address that jumps through the pointer at another address."""

    def kind(self, number: int) -> Kind:
        """The relocation with this number. Raises `InvalidModule` if position-independent code cannot have it."""
        if number not in self.kinds:
            raise InvalidModule(
                f"relocation {number} of {self.name} cannot be linked into a shared object: compile "
                "position-independently"
            )
        return self.kinds[number]


def machine(number: int) -> Machine:
    """The processor with this ELF number. Raises `InvalidModule` for an unknown one."""
    if number not in _MACHINES:
        known = ", ".join(found.name for found in _MACHINES.values())
        raise InvalidModule(f"objects of ELF machine {number} cannot be linked here, only those of {known}")
    return _MACHINES[number]


def _never(content: bytearray, offset: int, target: int, place: int) -> None:
    raise AssertionError("left to the loader")


def _difference(layout: str) -> Apply:
    """The distance from the place to the target, as a number."""

    def apply(content: bytearray, offset: int, target: int, place: int) -> None:
        try:
            struct.pack_into(layout, content, offset, target - place)
        except struct.error as error:
            raise InvalidModule(f"a relocation is out of reach ({target - place} bytes)") from error

    return apply


# --- x86-64 ------------------------------------------------------------------------------------------


def _x86_stub(address: int, pointer: int) -> bytes:
    return b"\xff\x25" + struct.pack("<i", pointer - (address + 6)) + b"\x66\x90"  # jmp *pointer(%rip); nop


_X86_64 = Machine(
    "x86-64",
    0x1000,
    {
        1: Kind(_never, is_absolute=True),  # R_X86_64_64
        2: Kind(_difference("<i")),  # R_X86_64_PC32
        4: Kind(_difference("<i"), is_call=True),  # R_X86_64_PLT32
        24: Kind(_difference("<q")),  # R_X86_64_PC64
        **{
            number: Kind(_difference("<i"), through_pointer=True) for number in (9, 41, 42)
        },  # ..._GOTPCREL[X]
    },
    absolute=1,
    pointer=6,
    relative=8,
    stub_bytes=8,
    stub=_x86_stub,
)

# --- AArch64 -----------------------------------------------------------------------------------------


def _in_instruction(change: Callable[[int, int, int], int]) -> Apply:
    """Fields of a 32-bit instruction: ``change(instruction, target, place)``."""

    def apply(content: bytearray, offset: int, target: int, place: int) -> None:
        (instruction,) = struct.unpack_from("<I", content, offset)
        struct.pack_into("<I", content, offset, change(instruction, target, place) & 0xFFFFFFFF)

    return apply


def _page(instruction: int, target: int, place: int) -> int:
    """The 4 KiB pages between place and target, for ADRP."""
    pages = (target >> 12) - (place >> 12)
    if not -(1 << 20) <= pages < 1 << 20:
        raise InvalidModule(f"a relocation is out of reach ({pages} pages)")
    return instruction & ~0x60FFFFE0 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5


def _low(scale: int) -> Callable[[int, int, int], int]:
    """The target's offset in its 4 KiB page in units of ``1 << scale`` bytes, for ADD, LDR and STR."""

    def change(instruction: int, target: int, place: int) -> int:
        return instruction & ~(0xFFF << 10) | ((target & 0xFFF) >> scale) << 10

    return change


def _branch(instruction: int, target: int, place: int) -> int:
    words = (target - place) >> 2
    if not -(1 << 25) <= words < 1 << 25:
        raise InvalidModule(f"a call is out of reach ({words * 4} bytes)")
    return instruction & ~0x3FFFFFF | words & 0x3FFFFFF


def _aarch64_stub(address: int, pointer: int) -> bytes:
    load = _page(0x90000010, pointer, address)  # adrp x16, pointer
    return struct.pack(
        "<4I", load, _low(3)(0xF9400211, pointer, 0), 0xD61F0220, 0xD503201F
    )  # ldr x17; br x17; nop


_AARCH64 = Machine(
    "AArch64",
    0x10000,
    {
        257: Kind(_never, is_absolute=True),  # R_AARCH64_ABS64
        260: Kind(_difference("<q")),  # ..._PREL64
        261: Kind(_difference("<i")),  # ..._PREL32
        275: Kind(_in_instruction(_page)),  # ..._ADR_PREL_PG_HI21
        277: Kind(_in_instruction(_low(0))),  # ..._ADD_ABS_LO12_NC
        278: Kind(_in_instruction(_low(0))),  # ..._LDST8_ABS_LO12_NC
        284: Kind(_in_instruction(_low(1))),
        285: Kind(_in_instruction(_low(2))),
        286: Kind(_in_instruction(_low(3))),
        299: Kind(_in_instruction(_low(4))),  # ..._LDST128_ABS_LO12_NC
        282: Kind(_in_instruction(_branch), is_call=True),  # ..._JUMP26
        283: Kind(_in_instruction(_branch), is_call=True),  # ..._CALL26
        311: Kind(_in_instruction(_page), through_pointer=True),  # ..._ADR_GOT_PAGE
        312: Kind(_in_instruction(_low(3)), through_pointer=True),  # ..._LD64_GOT_LO12_NC
    },
    absolute=257,
    pointer=1025,
    relative=1027,
    stub_bytes=16,
    stub=_aarch64_stub,
)

_MACHINES = {62: _X86_64, 183: _AARCH64}
