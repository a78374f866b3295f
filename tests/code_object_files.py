"""Code objects written by hand, with anything in them that a test wants to be wrong."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import msgpack

NOTE_AT, RODATA_AT, TEXT_AT = 0x100, 0x1000, 0x2000
END_PROGRAM = struct.pack("<I", 0xBF810000)
ABSOLUTE = 0xFFF1


def metadata_of(name: str, **changes: Any) -> dict[str, Any]:
    """What the metadata say of a kernel of gfx942 with a pointer and two integers; None takes an entry out."""
    entry = {
        ".name": name,
        ".symbol": f"{name}.kd",
        ".args": [
            {
                ".offset": 0,
                ".size": 8,
                ".value_kind": "global_buffer",
                ".address_space": "global",
                ".name": "p",
            },
            {".offset": 8, ".size": 4, ".value_kind": "by_value"},
            {".offset": 12, ".size": 4, ".value_kind": "by_value"},
        ],
        ".kernarg_segment_size": 16,
        ".kernarg_segment_align": 8,
        ".group_segment_fixed_size": 0,
        ".private_segment_fixed_size": 0,
        ".wavefront_size": 64,
        ".max_flat_workgroup_size": 256,
        ".sgpr_count": 16,
        ".vgpr_count": 8,
    }
    return {key: value for key, value in {**entry, **changes}.items() if value is not None}


def descriptor(
    entry: int, *, lds: int = 0, scratch: int = 0, kernarg: int = 16, rsrc1: int = 0, **words: int
) -> bytes:
    """A kernel descriptor whose code begins `entry` bytes behind it."""
    return struct.pack(
        "<III4xq20xIIIHH4x",
        lds,
        scratch,
        kernarg,
        entry,
        words.get("rsrc3", 0),
        rsrc1,
        words.get("rsrc2", 0),
        words.get("properties", 0),
        words.get("preload", 0),
    )


@dataclass
class CodeObjectFile:
    """A file with one kernel, ``k``, for gfx942; `bytes(file)` is the file."""

    kernels: list[dict[str, Any]] = field(default_factory=lambda: [metadata_of("k")])
    target: Any = "amdgcn-amd-amdhsa--gfx942"
    note: bytes | None = None
    """The metadata's bytes, if they are to be others."""
    notes: int = 1
    descriptor: bytes = descriptor(TEXT_AT - RODATA_AT)
    descriptor_at: int = RODATA_AT
    code: bytes = END_PROGRAM
    code_at: int = TEXT_AT
    symbols: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Beside those of the kernel: section, value and size."""
    flags: int = 0x4C
    machine: int = 224
    os_abi: int = 64
    abi_version: int = 3
    kind: int = 3
    text_flags: int = 6

    def __bytes__(self) -> bytes:
        metadata = {"amdhsa.version": [1, 2], "amdhsa.target": self.target, "amdhsa.kernels": self.kernels}
        content = self.note if self.note is not None else msgpack.packb(metadata)
        note = struct.pack("<III8s", 7, len(content), 32, b"AMDGPU") + content + bytes(-len(content) % 4)
        symbols = {
            "": (0, 0, 0),
            "k": (3, self.code_at, len(self.code)),
            "k.kd": (2, self.descriptor_at, len(self.descriptor)),
            **self.symbols,
        }
        names, table = b"", b""
        for name, (section, value, size) in symbols.items():
            table += struct.pack("<IBBHQQ", len(names), 0x12, 0, section, value, size)
            names += name.encode() + b"\0"
        sections = [  # type, flags, address, contents, link, size of entries
            (0, 0, 0, b"", 0, 0),
            (7, 2, NOTE_AT, note * self.notes, 0, 0),
            (1, 2, RODATA_AT, self.descriptor, 0, 0),
            (1, self.text_flags, TEXT_AT, self.code + bytes(64), 0, 0),
            (2, 0, 0, table, 5, 24),
            (3, 0, 0, names, 0, 0),
        ]
        body, headers = b"", b""
        for kind, flags, address, data, link, entry_size in sections:
            at = 64 + len(body)
            headers += struct.pack(
                "<IIQQQQIIQQ", 0, kind, flags, address, at, len(data), link, 0, 1, entry_size
            )
            body += data
        ident = b"\x7fELF\x02\x01\x01" + bytes([self.os_abi, self.abi_version]) + bytes(7)
        header = struct.pack(
            "<16sHHIQQQIHHHHHH",
            *(
                ident,
                self.kind,
                self.machine,
                1,
                0,
                0,
                64 + len(body),
                self.flags,
                64,
                56,
                0,
                64,
                len(sections),
                5,
            ),
        )
        return header + body + headers
