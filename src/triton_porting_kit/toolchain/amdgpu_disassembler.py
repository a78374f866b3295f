"""Disassembles AMD GPU code with AMD's own LLVM.

The library comes in the wheel `rocm-llvm-python`, whose Python modules are not imported: the few functions needed of
LLVM's C API are called directly. It can be loaded beside other LLVMs, such as Triton's, because its symbols stay local.

It is meant for code that a compiler has generated. LLVM aborts on some instructions that no assembler emits, such as
gfx9's long ones followed by a constant. Disassemble code that may be damaged in a process of its own.
"""

from __future__ import annotations

import ctypes
import importlib.util
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from triton_porting_kit.binaries.amdgpu_targets import ARCHITECTURES, Generation, generation_of
from triton_porting_kit.errors import ToolchainError

TRIPLE = b"amdgcn-amd-amdhsa"
#: The mnemonic of words that the disassembler does not know; the text then gives the word.
UNKNOWN = ".long"

_REMEDY = "install the kit with the extra `amd` (pip install 'triton-porting-kit[amd]'), which has `rocm-llvm-python`"
_WORD = 4
#: The longest instructions: image operations with addresses in many registers.
_LONGEST = 20
_TEXT = 512
#: The upper bits of the first word of long vector forms (VOP3, and VOP3P for packed numbers), and the positions of
#: their third and second operand in the second word.
_LONG_FORMS, _OPERANDS, _CONSTANT_ZERO = (0b110101, 0b110011), (18, 9), 0x80
#: First word of ``tensor_load_to_lds``, the bit that makes it ``tensor_store_from_lds``, and the null register.
_TILE_COPY, _STORES, _NULL = 0xD0710001, 0x4000, 0x7C
#: LLVM aborts if it is asked for an architecture that it does not know; it does not know these, no longer or not yet.
_UNKNOWN_ARCHITECTURES = frozenset({"gfx940", "gfx941", "gfx12-5-generic"})


class Instruction(NamedTuple):
    """One instruction: `offset` from the first one and `size`, in bytes."""

    offset: int
    size: int
    mnemonic: str
    """Its name with the suffix of its encoding, such as ``v_add_f32_e32``; `UNKNOWN` for invalid words."""
    text: str
    """Name and operands in assembler syntax."""


def disassemble(code: bytes, arch: str) -> list[Instruction]:
    """The instructions of a kernel for an architecture (``gfx942``), in order; together they cover `code`.

    Raises `ToolchainError` if the library is missing or does not know the architecture.
    """
    if arch in _UNKNOWN_ARCHITECTURES or arch not in ARCHITECTURES:
        known = ", ".join(sorted(set(ARCHITECTURES) - _UNKNOWN_ARCHITECTURES))
        raise ToolchainError(f"the disassembler does not know {arch!r}; it knows {known}")
    # Instructions on register halves are only distinguished by a feature of the assembler, not by their bits.
    halves = generation_of(arch) in (Generation.GFX11, Generation.GFX12, Generation.GFX125)
    library = _library()
    context = library.LLVMCreateDisasmCPUFeatures(
        TRIPLE, arch.encode(), b"+real-true16" if halves else b"", None, 0, None, None
    )
    if not context:
        raise ToolchainError(f"the disassembler does not start for {arch!r}; {_REMEDY}")
    try:
        return list(_instructions(library, context, code))
    finally:
        library.LLVMDisasmDispose(context)


def _instructions(library: Any, context: int, code: bytes) -> Iterator[Instruction]:
    text = ctypes.create_string_buffer(_TEXT)
    at = 0
    while at < len(code):
        left = min(len(code) - at, _LONGEST)
        # Pad with zeros: LLVM aborts if a required constant is missing after the end.
        piece = code[at : at + left].ljust(_LONGEST, b"\0")
        for attempt in (piece, *_older_encodings(piece)):
            size = library.LLVMDisasmInstruction(context, attempt, len(attempt), at, text, len(text))
            if 0 < size <= left:
                line = " ".join(text.value.decode(errors="replace").split())
                break
        else:
            size = min(_WORD, left)
            line = f"{UNKNOWN} {int.from_bytes(piece[:size], 'little'):#x}"
        yield Instruction(at, size, line.partition(" ")[0], line)
        at += size


def _older_encodings(piece: bytes) -> Iterator[bytes]:
    """An instruction with 0 for unused operands: in a long vector form (gfx10 and later), or a copy of a tile.

    Newer LLVMs encode the constant 0 (0x80), or the null register (0x7c), there. Older disassemblers do not accept that
    as an instruction.
    """
    low, high = struct.unpack_from("<II", piece)
    if low & ~_STORES == _TILE_COPY and high >> 24 == _NULL:
        yield struct.pack("<II", low, high & 0xFFFFFF) + piece[8:]
    if low >> 26 not in _LONG_FORMS:
        return
    for shift in _OPERANDS:
        if high >> shift & 0x1FF != _CONSTANT_ZERO:
            return
        high &= ~(0x1FF << shift)
        yield struct.pack("<II", low, high) + piece[8:]


def is_available() -> bool:
    """Whether the library is there."""
    return _path() is not None


def _path() -> Path | None:
    # `rocm` has no module of its own, so looking for its contents does not run any code.
    try:
        spec = importlib.util.find_spec("rocm.llvm")
    except ModuleNotFoundError:
        return None
    for folder in (spec and spec.submodule_search_locations) or ():
        if (path := Path(folder) / "librocmllvm.so").is_file():
            return path
    return None


@cache
def _library() -> Any:
    path = _path()
    if path is None:
        raise ToolchainError(f"no disassembler for AMD's GPUs; {_REMEDY}")
    try:
        library = ctypes.CDLL(str(path))
        for part in ("TargetInfo", "TargetMC", "Disassembler"):
            getattr(library, f"LLVMInitializeAMDGPU{part}")()
        text, pointer, size = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
        library.LLVMCreateDisasmCPUFeatures.restype = pointer
        library.LLVMCreateDisasmCPUFeatures.argtypes = [
            text,
            text,
            text,
            pointer,
            ctypes.c_int,
            pointer,
            pointer,
        ]
        library.LLVMDisasmDispose.argtypes = [pointer]
        library.LLVMDisasmInstruction.restype = size
        library.LLVMDisasmInstruction.argtypes = [
            pointer,
            text,
            ctypes.c_uint64,
            ctypes.c_uint64,
            pointer,
            size,
        ]
    except (OSError, AttributeError) as error:
        raise ToolchainError(
            f"{path} is not an LLVM with support for AMD GPUs: {error}; {_REMEDY}"
        ) from error
    return library
