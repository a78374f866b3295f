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
    w = tl.inline_asm_elementwise("mov.u32 $0, $1;", "=r,r", [v], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out + i, w)


def test_inline_assembly_is_refused_at_its_line() -> None:
    text = ttir_text(assembly_kernel, {"x": "*fp32", "out": "*fp32"}, B=64)
    with pytest.raises(CompilationError, match="inline assembly is for one chip only") as caught:
        import_ttir(text)
    error = caught.value
    assert error.operation == "tt.elementwise_inline_asm"
    assert error.location is not None
    assert error.location.file == __file__
    lines, start = inspect.getsourcelines(assembly_kernel.fn)
    line = start + next(i for i, text in enumerate(lines) if "inline_asm" in text)
    assert error.location.line == line


@triton.jit
def scaled_kernel(x, scale, out, B: tl.constexpr):
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    a, s = tl.load(x + at), tl.load(scale + i[:, None])
    tl.store(out + at, tl.dot_scaled(a, s, "e4m3", a, s, "e4m3"))


def test_an_unknown_operation_is_refused() -> None:
    text = ttir_text(scaled_kernel, {"x": "*fp8e4nv", "scale": "*i8", "out": "*fp32"}, B=32)
    with pytest.raises(CompilationError, match=r"tt\.dot_scaled") as caught:
        import_ttir(text)
    assert caught.value.remedy == "scale the operands in the kernel and use tl.dot"
