"""What cannot be imported says so, with the operation, the kernel's line and a remedy."""

from __future__ import annotations

import inspect

import pytest
import triton
import triton.language as tl
from ttir_source import ttir_text

from triton_porting_kit.compiler.structured import import_ttir
from triton_porting_kit.errors import CompilationError


@triton.jit
def assembly_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    w = tl.inline_asm_elementwise(
        "ld.global.b32 $0, [$1];", "=r,r", [v], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(out + i, w)


def test_inline_assembly_is_refused_at_its_line() -> None:
    text = ttir_text(assembly_kernel, {"x": "*fp32", "out": "*fp32"}, B=64)
    with pytest.raises(CompilationError, match=r"the instruction `ld\.global\.b32` is not among") as caught:
        import_ttir(text)
    error = caught.value
    assert error.operation == "tt.elementwise_inline_asm"
    assert error.location is not None
    assert error.location.file == __file__
    lines, start = inspect.getsourcelines(assembly_kernel.fn)
    line = start + next(i for i, text in enumerate(lines) if "inline_asm" in text)
    assert error.location.line == line


@triton.jit
def copy_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i))


def test_an_unknown_operation_is_refused() -> None:
    text = ttir_text(copy_kernel, {"x": "*fp32", "out": "*fp32"}, B=32)
    with pytest.raises(CompilationError, match=r"tt\.of_tomorrow") as caught:
        import_ttir(text.replace('"tt.make_range"', '"tt.of_tomorrow"'))
    assert caught.value.remedy is not None
    assert "other operations of triton.language" in caught.value.remedy
