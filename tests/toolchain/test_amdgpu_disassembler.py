"""The disassembler against the assembly that kernels were made of, and what it says where it cannot be used."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import triton_amd_kernels
from hypothesis import given, settings
from hypothesis import strategies as st

from triton_porting_kit.binaries.amdgpu_targets import ARCHITECTURES, architecture_of, target_id_of
from triton_porting_kit.binaries.code_object import read_code_object
from triton_porting_kit.errors import ToolchainError
from triton_porting_kit.toolchain import amdgpu_disassembler
from triton_porting_kit.toolchain.amdgpu_disassembler import UNKNOWN, disassemble, is_available

KNOWN = [arch for arch in ARCHITECTURES if arch not in ("gfx940", "gfx941", "gfx12-5-generic")]


def assembled(text: str) -> list[str]:
    """The mnemonics of a kernel's assembly, without the instructions that only fill or wait."""
    (body,) = re.findall(r"^\.Lfunc_begin0:(.*?)^\.Lfunc_end0:", text, re.DOTALL | re.MULTILINE)
    found = re.findall(r"^\t([a-z]\w*)", body, re.MULTILINE)
    return [mnemonic for mnemonic in found if mnemonic != "s_nop"]


@pytest.mark.parametrize("arch", triton_amd_kernels.ARCHITECTURES)
@pytest.mark.parametrize("name", ["product", "scalars"])
def test_instructions_are_the_assembly_s(name: str, arch: str) -> None:
    asm = triton_amd_kernels.compiled(name, arch).asm
    code = read_code_object(asm["hsaco"]).kernels[name].code
    found = disassemble(code, arch)
    # What the assembler filled in to align the code is s_nop, too.
    assert [i.mnemonic for i in found if i.mnemonic != "s_nop"] == assembled(asm["amdgcn"])
    assert [i.offset for i in found] == [sum(i.size for i in found[:index]) for index in range(len(found))]
    assert sum(i.size for i in found) == len(code)
    assert all(i.text.split()[0] == i.mnemonic for i in found)


@pytest.mark.parametrize("arch", triton_amd_kernels.ARCHITECTURES)
def test_matrix_instructions_are_seen(arch: str) -> None:
    code = read_code_object(triton_amd_kernels.compiled("product", arch).asm["hsaco"]).kernels["product"].code
    wanted = "v_mfma_" if arch.startswith("gfx9") else "v_wmma_"
    assert any(i.mnemonic.startswith(wanted) and "bf16" in i.mnemonic for i in disassemble(code, arch))


def test_operands() -> None:
    code = bytes.fromhex("0202047e 000081bf")
    assert [(i.offset, i.size, i.text) for i in disassemble(code, "gfx90a")] == [
        (0, 4, "v_mov_b32_e32 v2, s2"),
        (4, 4, "s_endpgm"),
    ]


@pytest.mark.parametrize("arch", KNOWN)
def test_every_architecture_is_known(arch: str) -> None:
    assert disassemble(b"", arch) == []
    (nop,) = disassemble(bytes.fromhex("000080bf"), arch)
    assert nop.mnemonic == "s_nop"


@pytest.mark.parametrize("arch", ["gfx940", "gfx777", "sm_90", "", "gfx942,"])
def test_other_architectures_are_refused(arch: str) -> None:
    with pytest.raises(ToolchainError, match=f"does not know '{arch}'; it knows .*gfx942"):
        disassemble(b"", arch)


def test_what_is_no_instruction_is_kept_as_a_word() -> None:
    found = disassemble(bytes.fromhex("ffffffff 000081bf 0102"), "gfx90a")
    assert [(i.offset, i.size, i.mnemonic) for i in found] == [
        (0, 4, UNKNOWN),
        (4, 4, "s_endpgm"),
        (8, 2, UNKNOWN),
    ]
    assert [found[0].text, found[2].text] == [".long 0xffffffff", ".long 0x201"]


# Always the same bytes: of random ones, LLVM ends the process on some that no compiler makes, as gfx9's long
# instructions with a constant behind them.
@settings(max_examples=200, deadline=None, derandomize=True)
@given(code=st.binary(max_size=80), arch=st.sampled_from(["gfx1100", "gfx1201", "gfx1250"]))
def test_any_bytes_are_covered(code: bytes, arch: str) -> None:
    found = disassemble(code, arch)
    assert sum(i.size for i in found) == len(code)
    assert all(i.size > 0 and i.mnemonic for i in found)


def test_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    amdgpu_disassembler._library.cache_clear()
    assert not is_available()
    with pytest.raises(ToolchainError, match=r"no disassembler for AMD's GPUs; .*triton-porting-kit\[amd\]"):
        disassemble(b"", "gfx942")
    monkeypatch.undo()
    assert is_available()
    assert disassemble(b"", "gfx942") == []


@pytest.mark.parametrize("code", ["ff1ec78a", "3ea1b5be ff5ac4a3", "f2d35fd0"])
def test_missing_constants(code: str) -> None:
    """Instructions whose constant would be the word behind the end."""
    found = disassemble(bytes.fromhex(code), "gfx942")
    assert sum(i.size for i in found) == len(bytes.fromhex(code))


def test_damaged_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "librocmllvm.so").write_bytes(b"no library")
    spec = importlib.machinery.ModuleSpec("rocm.llvm", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)
    amdgpu_disassembler._library.cache_clear()
    with pytest.raises(ToolchainError, match=r"librocmllvm\.so is not an LLVM with support for AMD GPUs"):
        disassemble(b"", "gfx942")


def test_its_python_modules_stay_out() -> None:
    script = (
        "from triton_porting_kit.toolchain.amdgpu_disassembler import disassemble\n"
        "disassemble(b'', 'gfx942')\n"
        "import sys; assert not [m for m in sys.modules if m.startswith('rocm.')]"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


class Emitter:
    """LLVM's own code generator, which writes a file's flags for a processor."""

    def __init__(self) -> None:
        library = amdgpu_disassembler._library()
        for part in ("TargetInfo", "Target", "TargetMC", "AsmPrinter"):
            getattr(library, f"LLVMInitializeAMDGPU{part}")()
        self.library = library
        pointer = ctypes.c_void_p
        for name in ("LLVMCreateTargetMachine", "LLVMModuleCreateWithName", "LLVMGetBufferStart"):
            getattr(library, name).restype = pointer
        library.LLVMGetBufferSize.restype = ctypes.c_size_t
        self.target = pointer()
        triple = amdgpu_disassembler.TRIPLE
        assert (
            library.LLVMGetTargetFromTriple(triple, ctypes.byref(self.target), ctypes.byref(pointer())) == 0
        )

    def header(self, arch: str, features: str = "") -> tuple[int, int]:
        """The ABI version and the flags of an empty object file."""
        library, pointer = self.library, ctypes.c_void_p
        machine = library.LLVMCreateTargetMachine(
            self.target, amdgpu_disassembler.TRIPLE, arch.encode(), features.encode(), 0, 2, 0
        )
        module = library.LLVMModuleCreateWithName(b"empty")
        message, buffer = pointer(), pointer()
        assert not library.LLVMTargetMachineEmitToMemoryBuffer(
            pointer(machine), pointer(module), 1, ctypes.byref(message), ctypes.byref(buffer)
        )
        size = library.LLVMGetBufferSize(buffer)
        data = ctypes.string_at(library.LLVMGetBufferStart(buffer), size)
        return data[8], int.from_bytes(data[48:52], "little")


@pytest.fixture(scope="module")
def emitter() -> Emitter:
    return Emitter()


@pytest.mark.parametrize("arch", KNOWN)
def test_flags_are_llvm_s(emitter: Emitter, arch: str) -> None:
    abi_version, flags = emitter.header(arch)
    assert architecture_of(flags) == arch
    assert target_id_of(flags, abi_version) == arch


@pytest.mark.parametrize(
    ("features", "suffix"),
    [("+xnack", ":xnack+"), ("-xnack,+sramecc", ":sramecc+:xnack-"), ("-sramecc", ":sramecc-")],
)
def test_features_are_llvm_s(emitter: Emitter, features: str, suffix: str) -> None:
    abi_version, flags = emitter.header("gfx90a", features)
    assert target_id_of(flags, abi_version) == f"gfx90a{suffix}"


def test_packed_numbers_in_the_newer_encoding() -> None:
    """Assembled by Triton 3.9's LLVM, with the constant 0 for a third operand that there is not."""
    (found,) = disassemble(struct.pack("<II", 0xCC0C4001, 0x1A020B03), "gfx1250")
    assert found.text == "v_pk_max_u16 v1, v3, v5"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("010071d0 0000007c 00047c7c", "tensor_load_to_lds s[0:3], s[4:11]"),
        ("014071d0 0000007c 00040c10", "tensor_store_from_lds s[0:3], s[4:11], s[12:15], s[16:19]"),
    ],
)
def test_copies_of_tiles_in_the_newer_encoding(words: str, text: str) -> None:
    """The bytes are what the assembler of Triton 3.9 makes of the text."""
    (found,) = disassemble(bytes.fromhex(words), "gfx1250")
    assert (found.size, found.text) == (12, text)
