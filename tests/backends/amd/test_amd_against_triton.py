"""Beside Triton's own AMD backend, which is the oracle: the same kernel and options give the same machine code."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from amd_compiling import ARCHITECTURES, compiled, forget, instructions, without_our_symbol
from amd_kernels import matmul_arguments

from triton_porting_kit.binaries.code_object import read_code_object
from triton_porting_kit.toolchain import compat

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("gfx942", {"num_warps": 8, "num_stages": 3}),
    ("gfx942", {"num_stages": 1, "waves_per_eu": 2}),
    ("gfx942", {"matrix_instr_nonkdim": 16, "kpack": 2}),
    ("gfx90a", {"enable_fp_fusion": False, "allow_flush_denorm": True}),
    ("gfx950", {"matrix_instr_nonkdim": 32, "num_stages": 4}),
    ("gfx1100", {"num_warps": 2}),
    # Triton's own has this option since 3.9.
    *([("gfx1100", {"wgp_cu_mode": "cu"})] if compat.release() >= (3, 9) else []),
]


def assert_same(ours: Any, theirs: Any) -> None:
    """The same assembly, apart from what this backend adds behind it."""
    assert instructions(ours.asm["amdgcn"]) == instructions(theirs.asm["amdgcn"])
    assert without_our_symbol(ours.asm["amdgcn"]).rstrip() == theirs.asm["amdgcn"].rstrip()
    assert ours.metadata.shared == theirs.metadata.shared
    (mine,) = read_code_object(ours.asm["hsaco"]).kernels.values()
    (other,) = read_code_object(theirs.asm["hsaco"]).kernels.values()
    assert mine.code == other.code
    # The file has a symbol more, so the code begins somewhere else.
    place = {"kernel_code_entry_byte_offset": 0}
    assert dataclasses.replace(mine.descriptor, **place) == dataclasses.replace(other.descriptor, **place)
    assert mine.arguments == other.arguments


def both(name: str, arch: str = "gfx942", **options: Any) -> tuple[Any, Any]:
    """A kernel by this backend and by Triton's own.

    Once in hundreds of times LLVM orders the same code otherwise, whoever asks for it: addresses in its process
    decide. Where the two differ they are compiled again, which a real difference outlives.
    """
    options = {"enable_fp_fusion": True, **options}
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(3):
            ours, theirs = (compiled(name, arch, backend=backend, **options) for backend in ("amdgpu", "hip"))
            if instructions(ours.asm["amdgcn"]) == instructions(theirs.asm["amdgcn"]):
                break
            forget()
            patch.setenv("TRITON_ALWAYS_COMPILE", "1")
    return ours, theirs


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", ["matmul", "softmax", "power"])
def test_each_architecture(name: str, arch: str) -> None:
    assert_same(*both(name, arch))


@pytest.mark.parametrize(("arch", "options"), OPTIONS, ids=str)
def test_options(arch: str, options: dict[str, Any]) -> None:
    assert_same(*both("matmul", arch, **options))


def test_types_of_operands() -> None:
    for operand, result in [("fp16", "fp32"), ("fp32", "fp32"), ("fp8e4b8", "fp32"), ("i8", "i32")]:
        assert_same(*both("matmul", arguments=matmul_arguments(operand, result)))


def test_descriptors_made_in_the_kernel() -> None:
    for arch in ("gfx942", ARCHITECTURES[-1]):
        assert_same(*both("gather_rows", arch))


@pytest.mark.parametrize(
    "setting",
    ["AMDGCN_USE_BUFFER_OPS=0", "TRITON_HIP_USE_BLOCK_PINGPONG=0", "TRITON_HIP_USE_IN_THREAD_TRANSPOSE=0"],
)
def test_settings_of_tritons(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, _, value = setting.partition("=")
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    forget()
    try:
        assert_same(*both("matmul"))
    finally:
        forget()
