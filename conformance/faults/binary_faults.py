"""Faults in compiled binaries, which compile-only runs must find in the code objects."""

from __future__ import annotations

import re
import struct
from typing import Any

from triton_porting_kit.conformance.faults.fault import Apply, Table, rewrite

TABLE = Table()

# One or a few lines per fault.
# fmt: off

ANY = "language/arithmetic/add-i32-tile_324"
BF16, FP8 = "language/matrix-products/dot-bf16-16x32x128", "language/matrix-products/dot-fp8e4b8-16x32x128"
_VGPRS, _KERNARG = 48, 8
"""Offsets in a kernel descriptor: of the word with the number of vector registers, and of the size of arguments."""


def _binary(change: Any) -> Apply:
    """Change the linker's output. `change` receives the binary and the metadata."""
    return lambda seams: seams.binaries.append(change)


def _text(pattern: str, with_: str, count: int = 0) -> Apply:
    """Replace matches of a regular expression in the assembly, including its metadata."""
    return rewrite("amdgcn", lambda text: re.sub(pattern, with_, text, count=count))


def _descriptor(offset: int, value: int) -> Any:
    """Change a word of the kernel descriptor, which is located in the binary by its contents."""
    def change(binary: bytes, metadata: Any) -> bytes:
        from triton_porting_kit.binaries.code_object import read_code_object
        (kernel,) = read_code_object(binary).kernels.values()
        d = kernel.descriptor
        head = struct.pack("<IIIIq", d.group_segment_fixed_size, d.private_segment_fixed_size, d.kernarg_size, 0, d.kernel_code_entry_byte_offset)
        at = binary.index(head) + offset
        return binary[:at] + struct.pack("<I", value) + binary[at + 4:]
    return change


def _renamed(binary: bytes, metadata: Any) -> bytes:
    metadata["name"] = "another"
    return binary


def _more_lds(binary: bytes, metadata: Any) -> bytes:
    metadata["shared"] += 1024
    return binary


def _retargeted(binary: bytes, metadata: Any) -> bytes:
    flags = struct.unpack_from("<I", binary, 48)[0] & ~0xFF | 0x3F  # gfx90a
    return (binary[:48] + struct.pack("<I", flags) + binary[52:]).replace(b"gfx942", b"gfx90a")


def _add(name: str, sentence: str, apply: Apply, *caught_by: str) -> None:
    TABLE.add("binary", name, sentence, apply, *caught_by or (ANY,))


_add("binary-empty", "the binary is empty", _binary(lambda binary, metadata: b""))
_add("binary-truncated", "the binary ends too early", _binary(lambda binary, metadata: binary[:len(binary) * 3 // 4]))
_add("binary-other-machine", "the binary is for another machine", _binary(lambda binary, metadata: binary[:18] + b"\x3e\x00" + binary[20:]))
_add("binary-other-architecture", "the binary is for another architecture", _binary(_retargeted))
_add("binary-other-name", "the kernel's name differs from the metadata", _binary(_renamed))
_add("binary-argument-size", "the metadata give a pointer argument 4 bytes", _text(r"\.size: +8", ".size: 4", 1))
_add("binary-argument-kind", "the metadata declare a pointer as a value", _text(r"\.value_kind: +global_buffer", ".value_kind: by_value", 1))
_add("binary-argument-place", "the metadata give the second argument a wrong offset", _text(r"\.offset: +8\n", ".offset: 12\n", 1))
_add("binary-argument-missing", "the metadata leave the first arguments out", _text(r"(\.args:\n)(?: {4}.*\n){3,}?(?= {6}- .*\n(?: {8}.*\n)+ {4}\.)", r"\1"))
_add("binary-kernarg-bytes", "the descriptor has fewer bytes of arguments", _binary(_descriptor(_KERNARG, 8)))
_add("binary-few-registers", "the descriptor allocates the least registers", _binary(_descriptor(_VGPRS, 0)))
_add("binary-threads", "the metadata allow other work-groups than are launched", _text(r"\.max_flat_workgroup_size: +\d+", ".max_flat_workgroup_size: 64"))
_add("binary-dynamic-lds", "the binary declares another size of dynamic on-chip memory than Triton's metadata", _binary(_more_lds), BF16)
_add("binary-unknown-instruction", "the code contains an invalid instruction", _text(r"\n\ts_endpgm", "\n\t.long 0xffffffff\n\ts_endpgm"))
_add("binary-no-end", "the code does not end", _text(r"\n\ts_endpgm", "\n\ts_nop 0"))
_add("binary-no-matrix-instructions", "a product has no matrix instruction", _text(r"\n\tv_mfma_\w+ .*", "\n\ts_nop 0"), BF16, "kernels/matmul/bf16-128x128x128", "kernels/attention/bf16-2x64x64")
_add("binary-bf16-as-fp16", "bf16 is multiplied by the instruction for fp16", _text(r"(v_mfma_f32_\d+x\d+x\d+)_bf16", r"\1_f16"), BF16)
_add("binary-fp8-as-bf8", "fp8 is multiplied by the instruction for the other 8-bit type", _text(r"(v_mfma_f32_\d+x\d+x\d+)_fp8_fp8", r"\1_bf8_bf8"), FP8)
