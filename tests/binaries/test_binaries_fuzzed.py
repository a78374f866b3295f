"""ELF files that were damaged or forged: a typed error or a result, and no more memory than the file may ask for."""

from __future__ import annotations

import contextlib
import functools
import struct

import pytest
from code_object_files import CodeObjectFile
from fuzzing import BUDGETS, damaged, fuzz
from hypothesis import strategies as st
from test_shared_object import SOURCE, compile_object

from triton_porting_kit.binaries import elf
from triton_porting_kit.binaries.code_object import read_code_object
from triton_porting_kit.binaries.shared_object import link_shared_object
from triton_porting_kit.errors import CodeObjectError, InvalidModule
from triton_porting_kit.replay.abi import abi_version, pointer_offsets

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_FIELDS = ("<H", "<I", "<Q")


@functools.cache
def relocatable() -> bytes:
    return compile_object(SOURCE)


@functools.cache
def linked() -> bytes:
    return link_shared_object(relocatable())


def use(binary: bytes) -> None:
    """Every reader of binaries on one."""
    for reader in (link_shared_object, elf.defined_symbols, read_code_object):
        with contextlib.suppress(InvalidModule, CodeObjectError):
            reader(binary)
    abi_version(binary)
    pointer_offsets(binary, "kernel")


@pytest.mark.parametrize("times", BUDGETS)
@pytest.mark.parametrize("kind", ["relocatable", "linked", "code object"])
def test_binaries_that_were_damaged(kind: str, times: int) -> None:
    good = {"relocatable": relocatable, "linked": linked, "code object": lambda: bytes(CodeObjectFile())}[
        kind
    ]()
    header = _HEADER.unpack_from(good)
    tables = (0, header[6]) if header[6] else (0, header[5])

    def body(data: st.DataObject) -> None:
        binary = bytearray(good)
        for _ in range(
            data.draw(st.integers(1, 3))
        ):  # numbers of the header and of tables, where forging pays
            place = data.draw(st.sampled_from(tables)) + data.draw(st.integers(0, 40)) * 4
            layout = data.draw(st.sampled_from(_FIELDS))
            size = struct.calcsize(layout)
            if place + size <= len(binary):
                value = data.draw(
                    st.sampled_from([0, 1, 3, 16, 4096, 1 << 28, (1 << 31) - 1, 1 << 40, (1 << 64) - 1])
                )
                struct.pack_into(layout, binary, place, value & ((1 << (8 * size)) - 1))
        use(bytes(binary) if data.draw(st.booleans()) else damaged(data, bytes(binary)))

    fuzz(60 * times, body)


def forged(sections: list[tuple[int, int, int, int]], content: bytes = b"") -> bytes:
    """An object whose sections are (type, flags, size, alignment), all from the same byte on."""
    strings = b"\0names\0"
    at = _HEADER.size + len(strings) + len(content)
    table = bytes(64) + struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, _HEADER.size, len(strings), 0, 0, 1, 0)
    for kind, flags, size, alignment in sections:
        table += struct.pack("<IIQQQQIIQQ", 1, kind, flags, 0, _HEADER.size, size, 0, 0, alignment, 0)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = _HEADER.pack(ident, 1, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, len(sections) + 2, 1)
    return header + strings + content + table


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ([(8, 3, 1 << 30, 1)], "bytes at alignment"),
        ([(8, 3, 1 << 27, 1)] * 2, "bytes of zeros"),
        ([(1, 2, 50_000, 1)] * 2000, "or they overlap"),
        ([(8, 3, 0, 1 << 16), (8, 3, 1, 1)] * 4500, "would have more than"),
    ],
    ids=["zeros", "many zeros", "overlaps", "alignment"],
)
def test_a_small_file_is_no_large_object(sections: list[tuple[int, int, int, int]], message: str) -> None:
    with pytest.raises(InvalidModule, match=message):
        link_shared_object(forged(sections, bytes(50_000)))


def test_a_long_name_is_not_many_long_names() -> None:
    count, length = 2000, 50_000
    names = b"\0" + b"x" * length + b"\0"
    symbols = struct.pack("<IBBHQQ", 1, 0x10, 0, 0, 0, 0) * count
    content, start = names + symbols, _HEADER.size
    rows = [
        (1, 3, 0, 0, start, len(names), 0, 0, 1, 0),
        (1, 2, 0, 0, start + len(names), len(symbols), 1, 0, 1, 24),
    ]
    table = bytes(64) + b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in rows)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = _HEADER.pack(ident, 1, 62, 1, 0, 0, start + len(content), 0, 64, 0, 0, 64, 3, 1)
    with pytest.raises(InvalidModule, match="names of symbols have more than"):
        elf.read_object(header + content + table)
