"""Code objects read: against the assembly that they were made of, against LLVM, and against files with errors."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import msgpack
import pytest
import triton_amd_kernels
import yaml
from code_object_files import (
    ABSOLUTE,
    END_PROGRAM,
    RODATA_AT,
    TEXT_AT,
    CodeObjectFile,
    descriptor,
    metadata_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from triton_porting_kit.binaries.code_object import CodeObject, Kernel, read_code_object
from triton_porting_kit.errors import CodeObjectError, PortingKitError

KERNELS = [("product", arch) for arch in triton_amd_kernels.ARCHITECTURES] + [
    ("scalars", "gfx90a"),
    ("talking", "gfx942"),
]
#: How the assembler's directives are called in the descriptor, where it is not by the same name.
FIELDS = {
    "reserve_": None,
    "next_free_": None,
    "accum_offset": None,
    "inst_pref_size": None,
    "group_segment_fixed_size": None,
    "private_segment_fixed_size": None,
    "kernarg_size": None,
    "user_sgpr_count": "user_sgpr_count",
    "user_sgpr_kernarg_preload_": "kernarg_preload_spec_",
    "user_sgpr_": "enable_sgpr_",
    "wavefront_size32": "enable_wavefront_size32",
    "wavefrontsize": "enable_wavefront_size",
    "system_sgpr_private_segment_wavefront_offset": "enable_private_segment",
    "system_sgpr_": "enable_sgpr_",
    "system_vgpr_": "enable_vgpr_",
    "dx10_clamp": "enable_dx10_clamp",
    "ieee_mode": "enable_ieee_mode",
    "fp16_overflow": "fp16_ovfl",
    "round_robin_scheduling": "enable_wg_rr_en",
    "workgroup_processor_mode": "wgp_mode",
    "memory_ordered": "mem_ordered",
    "forward_progress": "fwd_progress",
    "named_barrier_count": "named_bar_cnt",
    "exception_fp_ieee_div_zero": "enable_exception_ieee_754_fp_division_by_zero",
    "exception_fp_ieee_invalid_op": "enable_exception_ieee_754_fp_invalid_operation",
    "exception_fp_ieee_": "enable_exception_ieee_754_fp_",
    "exception_fp_denorm_src": "enable_exception_fp_denormal_source",
    "exception_int_div_zero": "enable_exception_int_divide_by_zero",
}


def kernel_of(binary: bytes) -> Kernel:
    (kernel,) = read_code_object(binary).kernels.values()
    return kernel


def field_of(directive: str) -> str | None:
    for prefix, field in FIELDS.items():
        if directive.startswith(prefix):
            return field and directive.replace(prefix, field, 1)
    return directive


@pytest.mark.parametrize(("name", "arch"), KERNELS)
def test_metadata_are_the_assembly_s(name: str, arch: str) -> None:
    asm = triton_amd_kernels.compiled(name, arch).asm
    (text,) = re.findall(r"\.amdgpu_metadata\n(.*?)\.end_amdgpu_metadata", asm["amdgcn"], re.DOTALL)
    told = next(yaml.safe_load_all(text))
    (entry,) = told["amdhsa.kernels"]
    found = read_code_object(asm["hsaco"])
    kernel = found.kernels[name]
    assert (found.arch, found.version) == (arch, 5)
    assert told["amdhsa.target"].endswith(found.target_id)
    assert [(a.offset, a.size, a.value_kind, a.address_space, a.name) for a in kernel.arguments] == [
        (a[".offset"], a[".size"], a[".value_kind"], a.get(".address_space"), a.get(".name"))
        for a in entry[".args"]
    ]
    counts = {key: value for key, value in entry.items() if type(value) is int and hasattr(kernel, key[1:])}
    assert {key: getattr(kernel, key[1:]) for key in counts} == counts
    assert {".sgpr_count", ".vgpr_count", ".max_flat_workgroup_size", ".kernarg_segment_size"} <= set(counts)
    assert kernel.dynamic_group_segment_size is None


@pytest.mark.parametrize(("name", "arch"), KERNELS)
def test_descriptor_is_what_the_directives_say(name: str, arch: str) -> None:
    asm = triton_amd_kernels.compiled(name, arch).asm
    directives = dict(re.findall(r"^\t\t\.amdhsa_(\w+) (\d+)$", asm["amdgcn"], re.MULTILINE))
    kernel = kernel_of(asm["hsaco"])
    found = kernel.descriptor
    told = {field: int(value) for key, value in directives.items() if (field := field_of(key))}
    if "enable_private_segment" in directives:
        told["enable_private_segment"] = int(directives["enable_private_segment"])
    assert {key: found.fields[key] for key in told} == told
    assert len(told) > 25
    # All that no directive names: the counts of granules, checked below, and what is always 0.
    others = set(found.fields) - set(told)
    assert {key for key in others if found.fields[key]} <= {
        "granulated_workitem_vgpr_count",
        "granulated_wavefront_sgpr_count",
        "accum_offset",
        "inst_pref_size",
    }
    assert found.group_segment_fixed_size == int(directives["group_segment_fixed_size"])
    assert found.private_segment_fixed_size == int(directives["private_segment_fixed_size"])
    assert found.kernarg_size == int(directives["kernarg_size"])
    assert found.wavefront_size == triton_amd_kernels.warp_size(arch)
    blocks = re.findall(r"^; VGPRBlocks: (\d+)$", asm["amdgcn"], re.MULTILINE)
    assert found.fields["granulated_workitem_vgpr_count"] == int(blocks[0])
    assert 0 <= found.allocated_vgprs - int(directives["next_free_vgpr"]) < 16
    if "accum_offset" in directives:
        assert found.first_accumulation_vgpr == int(directives["accum_offset"])
        blocks = re.findall(r"^; SGPRBlocks: (\d+)$", asm["amdgcn"], re.MULTILINE)
        assert found.fields["granulated_wavefront_sgpr_count"] == int(blocks[0])
        assert found.allocated_sgprs is not None
        assert found.allocated_sgprs % 16 == 0
        assert 0 <= found.allocated_sgprs - kernel.sgpr_count < 16
    else:
        assert found.first_accumulation_vgpr is None
        assert found.allocated_sgprs is None


@pytest.mark.parametrize(("name", "arch"), KERNELS)
def test_code_has_the_assembly_s_length(name: str, arch: str) -> None:
    asm = triton_amd_kernels.compiled(name, arch).asm
    (length,) = re.findall(r"^; codeLenInByte = (\d+)$", asm["amdgcn"], re.MULTILINE)
    kernel = kernel_of(asm["hsaco"])
    # The assembler pads behind the part that loads arguments into registers, which the compiler does not count.
    assert 0 <= len(kernel.code) - int(length) < 256
    assert kernel.code in asm["hsaco"]


def test_hidden_arguments_are_told_apart() -> None:
    kernel = kernel_of(triton_amd_kernels.compiled("talking", "gfx942").asm["hsaco"])
    assert [a.value_kind for a in kernel.explicit_arguments] == [
        "global_buffer",
        "by_value",
        *["global_buffer"] * 2,
    ]
    assert "hidden_hostcall_buffer" in [a.value_kind for a in kernel.hidden_arguments]
    assert kernel.explicit_arguments + kernel.hidden_arguments == kernel.arguments


def test_hand_made_file() -> None:
    found = read_code_object(bytes(CodeObjectFile()))
    assert (found.arch, found.target_id, found.abi_version, found.version) == ("gfx942", "gfx942", 3, 5)
    kernel = found.kernels["k"]
    assert kernel.code == END_PROGRAM
    assert [a.name for a in kernel.arguments] == ["p", None, None]
    assert (kernel.agpr_count, kernel.sgpr_spill_count, kernel.vgpr_spill_count) == (0, 0, 0)
    assert kernel.descriptor.kernel_code_entry_byte_offset == TEXT_AT - RODATA_AT


def test_several_kernels() -> None:
    second = metadata_of("other", **{".symbol": "k.kd"})
    symbols = {"other": (3, TEXT_AT, 4)}
    found = read_code_object(bytes(CodeObjectFile(kernels=[metadata_of("k"), second], symbols=symbols)))
    assert list(found.kernels) == ["k", "other"]
    with pytest.raises(CodeObjectError, match="several kernels of one name"):
        read_code_object(bytes(CodeObjectFile(kernels=[metadata_of("k"), metadata_of("k")])))


@pytest.mark.parametrize("size", [0, 65536])
def test_dynamic_lds_is_a_symbol_s_value(size: int) -> None:
    symbols = {"k.dynamic_group_segment_size": (ABSOLUTE, size, 0)}
    assert kernel_of(bytes(CodeObjectFile(symbols=symbols))).dynamic_group_segment_size == size


@pytest.mark.parametrize("name", ["product", "scalars"])
def test_dynamic_lds_of_the_kit_s_backend(name: str) -> None:
    """It is what Triton's own backend says in its metadata, beside the code object."""
    ours = kernel_of(triton_amd_kernels.compiled(name, "gfx942", "amdgpu").asm["hsaco"])
    assert ours.dynamic_group_segment_size == triton_amd_kernels.compiled(name, "gfx942").metadata.shared
    assert (ours.dynamic_group_segment_size != 0) == (name == "product")


@pytest.mark.parametrize(
    ("abi_version", "flags", "target_id"),
    [
        (3, 0x4C, "gfx942"),
        (3, 0x54C, "gfx942"),
        (2, 0xE4C, "gfx942:sramecc+:xnack-"),
        (3, 0xB4C, "gfx942:sramecc-:xnack+"),
        (1, 0x4C, "gfx942"),
        (1, 0x24C, "gfx942:sramecc+"),
        (1, 0x34C, "gfx942:sramecc+:xnack+"),
        (4, 0x0100054C, "gfx942"),
    ],
)
def test_target_id(abi_version: int, flags: int, target_id: str) -> None:
    found = read_code_object(bytes(CodeObjectFile(abi_version=abi_version, flags=flags)))
    assert (found.target_id, found.version) == (target_id, abi_version + 2)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "another machine": ({"machine": 62}, "ELF machine 62; AMD's GPUs are 224"),
    "another system": ({"os_abi": 0}, "operating system ABI 0"),
    "code object 2": ({"abi_version": 0}, "ABI version 0 .* supported are versions 1, 2, 3, 4"),
    "a newer version": ({"abi_version": 9}, "ABI version 9"),
    "not linked": ({"kind": 1}, "not a linked code object .*link it first"),
    "an unknown architecture": ({"flags": 0xFE}, "architecture 0xfe"),
    "an old architecture": ({"flags": 0x2A}, "architecture 0x2a"),
    "a target of another architecture": ({"flags": 0x3F}, "flags say gfx90a, its metadata amdgcn-amd-amdhsa--gfx942"),
    "no note": ({"notes": 0}, "0 notes"),
    "two notes": ({"notes": 2}, "2 notes"),
    "no MessagePack": ({"note": b"\xc1"}, "is not MessagePack"),
    "an empty note": ({"note": b""}, "is not MessagePack"),
    "bytes behind MessagePack": ({"note": b"\x80\x80"}, "is not MessagePack"),
    "deep nesting": ({"note": b"\x91" * 100_000}, "is not (MessagePack|read)"),
    "a list": ({"note": b"\x90"}, "expected a map, found list"),
    "a target that is no text": ({"target": 5}, "amdhsa.target should be text, is 5"),
    "kernels that are no list": ({"kernels": 5}, "amdhsa.kernels should be a list, is 5"),
    "a kernel that is no map": ({"kernels": [5]}, "entry 0 of amdhsa.kernels: expected a map, found int"),
    "a kernel without a name": ({"kernels": [metadata_of("k", **{".name": None})]}, ".name should be text"),
    "another kernel's name": ({"kernels": [metadata_of("j", **{".symbol": "k.kd"})]}, "symbol 'j', which is not"),
    "another symbol": ({"kernels": [metadata_of("k", **{".symbol": "j.kd"})]}, "symbol 'j.kd', which is not"),
    "no register count": ({"kernels": [metadata_of("k", **{".vgpr_count": None})]}, "kernel 'k': .vgpr_count"),
    "a negative count": ({"kernels": [metadata_of("k", **{".sgpr_count": -1})]}, "below 2\\*\\*32, is -1"),
    "a huge count": ({"kernels": [metadata_of("k", **{".sgpr_count": 1 << 32})]}, "below 2\\*\\*32"),
    "a boolean": ({"kernels": [metadata_of("k", **{".sgpr_count": True})]}, "is True"),
    "other LDS": ({"descriptor": descriptor(0x1000, lds=4)}, "0 bytes of LDS by the metadata, 4 by the descriptor"),
    "other scratch": ({"descriptor": descriptor(0x1000, scratch=4)}, "0 bytes of scratch per thread"),
    "other arguments": ({"descriptor": descriptor(0x1000, kernarg=8)}, "16 bytes of arguments"),
    "other wavefronts": ({"kernels": [metadata_of("k", **{".wavefront_size": 32})]}, "32 threads per wavefront"),
    "more registers": ({"kernels": [metadata_of("k", **{".vgpr_count": 9})]}, "uses 9 vector .* allocates 8"),
    "alignment": ({"kernels": [metadata_of("k", **{".kernarg_segment_align": 12})]}, "aligned to 12"),
    "no alignment": ({"kernels": [metadata_of("k", **{".kernarg_segment_align": 0})]}, "aligned to 0"),
    "arguments too long": (
        {"kernels": [metadata_of("k", **{".args": [{".offset": 12, ".size": 8, ".value_kind": "by_value"}]})]},
        "argument 0 has bytes 12 to 20 of a block of 16",
    ),
    "arguments that overlap": (
        {"kernels": [metadata_of("k", **{".args": [{".offset": 0, ".size": 8, ".value_kind": "by_value"}] * 2})]},
        "argument 1 has bytes 0 to 8 .* behind one that ends at 8",
    ),
    "an argument without a kind": (
        {"kernels": [metadata_of("k", **{".args": [{".offset": 0, ".size": 8}]})]},
        "kernel 'k', entry 0 of .args: .value_kind should be text",
    ),
    "a short descriptor": ({"descriptor": bytes(60)}, "kernel 'k': a kernel descriptor has 64 bytes, not 60"),
    "a descriptor off its place": (
        {"descriptor": bytes(16) + descriptor(0x1000), "symbols": {"k.kd": (2, RODATA_AT + 16, 64)}},
        "lies at 0x1010, which is not aligned",
    ),
    "reserved bytes": ({"descriptor": descriptor(0x1000)[:12] + b"\1" + descriptor(0x1000)[13:]}, "not 0: damaged"),
    "reserved bits": ({"descriptor": descriptor(0x1000, rsrc3=1 << 31)}, "compute_pgm_rsrc3 .* 0x80000000 set, which gfx942"),
    "wave32 of gfx9": ({"descriptor": descriptor(0x1000, properties=1 << 10)}, "kernel_code_properties .* 0x400"),
    "priority": ({"descriptor": descriptor(0x1000, rsrc1=1 << 10)}, "compute_pgm_rsrc1"),
    "LDS of the processor's": ({"descriptor": descriptor(0x1000, rsrc2=1 << 15)}, "compute_pgm_rsrc2"),
    "an entry elsewhere": ({"descriptor": descriptor(0x1100)}, "begins at address 0x2100 .* lies at 0x2000"),
    "an entry off alignment": (
        {"descriptor": descriptor(0x1004), "symbols": {"k": (3, TEXT_AT + 4, 4)}}, "256-byte aligned"
    ),
    "code that is data": ({"text_flags": 2}, "in executable code"),
    "no code": ({"code": b""}, "0 bytes of instructions"),
    "half an instruction": ({"code": b"\0" * 6}, "6 bytes of instructions, which are words of 4"),
    "a symbol outside": ({"symbols": {"x": (3, TEXT_AT + 60, 400)}}, "lies outside of its section 3"),
    "a symbol before": ({"symbols": {"x": (3, 0, 4)}}, "lies outside of its section 3"),
    "dynamic LDS in a section": ({"symbols": {"k.dynamic_group_segment_size": (3, TEXT_AT, 4)}}, "not an absolute symbol"),
    "too much dynamic LDS": ({"symbols": {"k.dynamic_group_segment_size": (ABSOLUTE, 1 << 40, 0)}}, "not an absolute symbol"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_wrong_files_are_refused(what: str) -> None:
    changes, message = WRONG[what]
    with pytest.raises(CodeObjectError, match=message):
        read_code_object(bytes(CodeObjectFile(**changes)))


def test_error_is_a_value_error_of_the_kit() -> None:
    for binary in (b"", b"\x7fELF", b"#!/bin/sh\n", bytes(1000)):
        with pytest.raises(CodeObjectError, match="not a usable AMDGPU code object") as caught:
            read_code_object(binary)
        assert isinstance(caught.value, PortingKitError)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("binary", ["hand-made", "compiled"])
def test_truncated_files_are_refused(binary: str) -> None:
    whole = (
        bytes(CodeObjectFile())
        if binary == "hand-made"
        else triton_amd_kernels.compiled("product", "gfx1201").asm["hsaco"]
    )
    for end in range(0, len(whole), 1 + len(whole) // 1000):
        with pytest.raises(CodeObjectError):
            read_code_object(whole[:end])


def read_or_refuse(binary: bytes) -> None:
    """Anything that is raised beside the one error fails the test."""
    with contextlib.suppress(CodeObjectError):
        assert isinstance(read_code_object(binary), CodeObject)


@settings(max_examples=400)
@given(data=st.data(), changes=st.integers(1, 4))
def test_changed_bytes_never_crash(data: st.DataObject, changes: int) -> None:
    whole = bytearray(bytes(CodeObjectFile(symbols={"k.dynamic_group_segment_size": (ABSOLUTE, 8, 0)})))
    for _ in range(changes):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    read_or_refuse(bytes(whole))


def test_every_byte_flipped_never_crashes() -> None:
    whole = bytes(CodeObjectFile())
    for at in range(len(whole)):
        for bits in (0x01, 0x80, 0xFF):
            read_or_refuse(whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :])


@settings(max_examples=200)
@given(
    note=st.one_of(
        st.binary(max_size=200),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from([*metadata_of("k"), "amdhsa.kernels", "amdhsa.target"]), inner, max_size=4
                )
            ),
        ).map(msgpack.packb),
    )
)
def test_any_metadata_never_crash(note: bytes) -> None:
    read_or_refuse(bytes(CodeObjectFile(note=note)))
