"""The text of OpenCL C: what its readers find in it, address spaces, and what it refuses by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl
from opencl_clang import compile_opencl
from triton.language.extra.cpu import libdevice
from ttir_source import ttir_text

from triton_porting_kit.compiler import CpuTarget, cpp_pipeline, opencl_kernel_name, opencl_symbols
from triton_porting_kit.compiler.cpp.dialects import OPENCL
from triton_porting_kit.compiler.cpp.module import emit
from triton_porting_kit.errors import CompilationError


@triton.jit
def gammas(X, O, L, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=1.0)
    tl.store(O + i, libdevice.lgamma(x))
    tl.atomic_add(L + i, i, mask=i < n)
    tl.atomic_add(O + i, x.to(tl.float32))
    tl.atomic_cas(L, 0, 1)


@triton.jit
def wide_product(X, O, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    tl.store(O + i, tl.umulhi(x, x))


@triton.jit
def signed_product(X, O, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    tl.store(O + i, libdevice.mulhi(x, x))


@triton.jit
def chosen(X, O, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    tl.store(O + i, tl.where(i % 2 == 0, x, x * 3))


@triton.jit
def printing(X):
    tl.device_print("x", tl.load(X))


@triton.jit
def narrow_atomics(X, O):
    tl.store(O, tl.atomic_add(X, 1.0))


SIGNATURE = {"X": "*fp32", "O": "*fp32", "L": "*i32", "n": "i32"}


def opencl(kernel: Any, signature: dict[str, str], vector_bytes: int = 16, **constexprs: Any) -> str:
    pipeline = cpp_pipeline(CpuTarget.portable(vector_bytes), dialect="opencl").after("ttir").until("opencl")
    return str(pipeline.run(ttir_text(kernel, signature, **constexprs), {})["opencl"])


def test_what_a_driver_reads_from_a_text(tmp_path: Path) -> None:
    text = opencl(gammas, SIGNATURE, B=32)
    assert opencl_kernel_name(text) == "tpk_gammas"
    found = opencl_symbols(text)
    assert found["gammas__pointers"] == (3, 0, 8, 16)
    assert found["tpk_host_abi_version"] == (3,)
    assert len(found["gammas__scratch_bytes"]) == 2
    compile_opencl([text], tmp_path)


@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_frames_are_private_and_the_rest_is_global(vector_bytes: int) -> None:
    text = opencl(gammas, SIGNATURE, vector_bytes, B=32)
    assert "const private_ptr v" in text
    assert "static inline void tpk_math_lgamma_f32(u64 count, private_ptr result, private_ptr a)" in text
    assert "__generic" not in text
    assert "const ptr arg_X" in text


def test_atomic_operations_of_16_bits_use_the_32_around_them(tmp_path: Path) -> None:
    text = opencl(narrow_atomics, {"X": "*fp16", "O": "*fp16"})
    assert "atomic_cmpxchg(word" in text
    compile_opencl([text], tmp_path)


def test_what_opencl_c_has_no_word_for() -> None:
    with pytest.raises(CompilationError, match="OpenCL C emission cannot write the routine tpk_host_print"):
        opencl(printing, {"X": "*i32"})


@pytest.mark.parametrize(
    ("kernel", "expression"),
    [
        (wide_product, r"mul_hi\((v\d+), \1\)"),
        (signed_product, r"as_ulong4\(mul_hi\((as_long4\(v\d+\)), \1\)\)"),
    ],
)
def test_the_high_half_of_a_product_of_64_bits(kernel: Any, expression: str, tmp_path: Path) -> None:
    text = opencl(kernel, {"X": "*i64", "O": "*i64"}, B=8)
    assert re.search(expression, text)
    assert "128" not in text
    compile_opencl([text], tmp_path)


def test_choices_of_64_bits_ask_for_no_sign(tmp_path: Path) -> None:
    """Mesa 22.3 takes the sign of numbers that it widened to 64 bits for 0."""
    narrow, wide = (opencl(chosen, {"X": kind, "O": kind}, B=8) for kind in ("*i32", "*i64"))
    assert re.search(r"choose_u64x(\d)\(convert_long\1\(mask\) != 0, a, b\)", wide)
    assert "!= 0" not in narrow.split("static i32 programs")[0]
    compile_opencl([wide, narrow], tmp_path)


def test_a_pointer_in_one_of_two_spaces_is_refused() -> None:
    loops = """module {
  // kernel.py: /somewhere/kernel.py
  llvm.mlir.global external constant @k__scratch_bytes(dense<[0, 0]> : tensor<2xi64>) : !llvm.array<2 x i64>
  llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr, %c: i64, %d: i64, %e: i32, %f: i32, %g: i32) -> i32 {
    // tpk.load, kernel.py:12
    %size = arith.constant 64 : i64
    %frame = llvm.alloca %size x i8 {alignment = 64 : i64} : (i64) -> !llvm.ptr
    %which = arith.cmpi slt, %c, %d : i64
    %either = arith.select %which, %frame, %b : !llvm.ptr
    %x = llvm.load %either {alignment = 4 : i64} : !llvm.ptr -> i32
    llvm.return %x : i32
  }
}"""
    with pytest.raises(CompilationError, match="one of two address spaces"):
        emit(loops, OPENCL)


@triton.jit
def of_a_row(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=0.0)
    tl.store(O, tl.sum(x))
    tl.store(X + i, tl.cumsum(x, 0), mask=i < n)


def test_barriers_of_sub_groups(tmp_path: Path) -> None:
    """What is left of a reduction's tree once a sub-group can combine it needs no barrier of the work-group."""

    def text(sub_group: int) -> str:
        pipeline = cpp_pipeline(dialect="opencl", work_items=64, local_bytes=1 << 15, sub_group=sub_group)
        stages = pipeline.after("ttir").until("opencl")
        return str(
            stages.run(ttir_text(of_a_row, {"X": "*fp32", "O": "*fp32", "n": "i32"}, B=1024), {})["opencl"]
        )

    whole, shared = text(1), text(16)
    assert "sub_group" not in whole
    assert "intel_reqd_sub_group_size(16)" in shared
    assert opencl_symbols(shared)["of_a_row__work_group"] == (64, 1, 16)
    barriers = [each.count("  tpk_barrier();") for each in (whole, shared)]
    of_sub_groups = shared.count("  tpk_sub_group_barrier();")
    assert barriers[0] == barriers[1] + of_sub_groups
    assert of_sub_groups == 4  # trees of 64 shares have 6 levels; 4 of them combine at most 16
    compile_opencl([shared], tmp_path, ["CL3.0"])


def test_a_text_without_a_kernel() -> None:
    with pytest.raises(ValueError, match="no kernel function"):
        opencl_kernel_name("int x;")


def test_a_dialect_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="no dialect 'cuda'; there are cpp, c, opencl"):
        cpp_pipeline(dialect="cuda")
