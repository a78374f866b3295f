"""Triton's passes by name, and LLVM modules of libtriton."""

from __future__ import annotations

from typing import Any

import pytest

from triton_porting_kit.compiler.gpu import GpuPass, argument_types, is_module, parse_module, run_passes
from triton_porting_kit.errors import CompilationError, ToolchainError
from triton_porting_kit.toolchain import amd_codegen

KERNEL = """
module {
  tt.func public @kernel(%p: !tt.ptr<f32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %same = arith.addi %n, %zero : i32
    %q = tt.addptr %p, %same : !tt.ptr<f32>, i32
    %x = tt.load %q : !tt.ptr<f32>
    tt.store %p, %x : !tt.ptr<f32>
    tt.return
  }
}
"""


@pytest.fixture
def module() -> Any:
    return parse_module(KERNEL, amd_codegen.load_dialects)


def test_passes_by_name(module: Any) -> None:
    assert is_module(module)
    run_passes(module, [GpuPass("common.canonicalizer"), GpuPass("ttir.combine")], "ttir")
    assert "arith.addi" not in str(module)
    run_passes(module, [GpuPass("ttir.convert_to_ttgpuir", ("hip:gfx942", 4, 64, 1))], "ttgir")
    run_passes(module, [GpuPass("amd.ttgpuir.canonicalize_pointers")], "ttgir")
    assert 'ttg.target = "hip:gfx942"' in str(module)


def test_argument_types(module: Any) -> None:
    assert argument_types(module) == ("*f32", "i32")


@pytest.mark.parametrize("name", ["common.nothing", "nobody.cse", "amd.ttgpuir.nothing", "cse"])
def test_passes_that_are_not_there(name: str, module: Any) -> None:
    with pytest.raises(ToolchainError, match=f"has no pass {name}"):
        run_passes(module, [GpuPass(name)], "ttir")


def test_arguments_that_a_pass_does_not_take(module: Any) -> None:
    with pytest.raises(ToolchainError, match=r"for the pass common\.cse"):
        run_passes(module, [GpuPass("common.cse", (1, 2))], "ttir")


def test_text_that_does_not_parse() -> None:
    with pytest.raises(CompilationError, match=r"line 3: operation being parsed"):
        parse_module('module {\n  // a comment\n  "nobody.knows"() : () -> ()\n}', amd_codegen.load_dialects)


def test_the_kernel_s_line_of_assembly() -> None:
    assembly = '\t.file\t1 "/src" "k.py"\n\t.loc\t1 7 3\n\tv_add\n\t.loc\t1 9 5 is_stmt 0\n\tv_mul\n'
    for line, wanted in [(3, ("/src/k.py", 7, 3)), (5, ("/src/k.py", 9, 5))]:
        found = amd_codegen.kernel_line(assembly, line)
        assert found is not None
        assert (found.file, found.line, found.column) == wanted
    assert amd_codegen.kernel_line("v_add\n", 1) is None
