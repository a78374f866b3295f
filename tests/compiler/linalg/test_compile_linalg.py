"""Compiling the form's text to an object, as a program does that stands in for a vendor's compiler."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.runtime import driver
from ttir_source import ttir_text

from triton_porting_kit.compiler import CpuTarget, compile_linalg, cpu_pipeline, linalg_stage
from triton_porting_kit.driver import Device, DeviceArray
from triton_porting_kit.errors import CompilationError


@triton.jit
def widened(scalar: tl.bfloat16, out):
    tl.store(out, scalar.to(tl.float32))


@triton.jit
def copied(x, out):
    tl.store(out, tl.load(x))


def form(convention: str) -> str:
    stages = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    structured = stages.run(ttir_text(copied, {"x": "*fp32", "out": "*fp32"}), {})["structured"]
    return str(linalg_stage(convention).run(structured, {}))


def test_an_object_with_the_kernel_s_symbols() -> None:
    made = compile_linalg(form("triton-shared"), CpuTarget.host())
    assert made.startswith(b"\x7fELF")
    for symbol in (b"\0copied\0", b"\0copied__scratch_bytes\0", b"\0copied__pointers\0"):
        assert symbol in made


@pytest.mark.parametrize("convention", ["ascend", "iree"])
def test_a_kernel_of_another_convention_is_refused(convention: str) -> None:
    text = form(convention)
    with pytest.raises(CompilationError):
        compile_linalg(text, CpuTarget.host())


def test_several_kernels_are_refused() -> None:
    text = form("triton-shared")
    function = text[text.index("  func.func") : text.index("\n  }") + 4]
    twice = text.replace(function, function + " loc(#loc)\n" + function.replace("@copied", "@again"))
    with pytest.raises(CompilationError, match="the module has 2 kernels"):
        compile_linalg(twice, CpuTarget.host())


def test_a_text_that_is_no_mlir_is_refused() -> None:
    with pytest.raises(CompilationError, match="line 2"):
        compile_linalg("module {\n  nonsense\n}\n", CpuTarget.host())


def test_what_upstream_refuses_has_the_line_of_the_kernel() -> None:
    """An operation that is not in the form, whose location is in an expansion of the line's operation."""
    lines, first = inspect.getsourcelines(copied.fn)
    line = first + next(i for i, code in enumerate(lines) if "tl.store" in code)
    strange = f'    gpu.barrier loc(callsite("-":2:3 at "{__file__}":{line}:5))\n    return'
    with pytest.raises(CompilationError, match="unknown memory side effects") as caught:
        compile_linalg(form("triton-shared").replace("    return", strange, 1), CpuTarget.host())
    assert caught.value.location is not None
    assert (caught.value.location.file, caught.value.location.line) == (__file__, line)


@pytest.mark.usefixtures("through_linalg")
@pytest.mark.parametrize("value", [2.0**-133, -(2.0**-130), 1.5, -0.0])
def test_scalars_of_bf16_keep_their_bits(value: float) -> None:
    """Also the subnormal numbers, the first two, on CPUs that convert to bf16."""
    device = driver.active.device
    assert isinstance(device, Device)
    out = DeviceArray.zeros(1, "float32", device)
    widened[(1,)](value, out)
    assert out.numpy().view(np.uint32).item() == np.float32(value).view(np.uint32).item()
