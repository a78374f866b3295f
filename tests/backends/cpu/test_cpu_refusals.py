"""Bad input: a named error that says where and why; never a crash, never a hang."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_kernels import add_constant
from cpu_scripts import Script
from triton import knobs

from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.errors import (
    CompilationError,
    InvalidModule,
    InvalidPointer,
    OptionError,
    OutOfMemory,
)

Array = Callable[..., Any]


@triton.jit
def with_assembly(x):
    value = tl.load(x)
    value = tl.inline_asm_elementwise("mov $0, $1;", "=r,r", [value], tl.int32, True, 1)
    tl.store(x, value)


def line_of(kernel: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(kernel.fn)
    return next(first + i for i, line in enumerate(lines) if text in line)


def test_an_operation_that_cannot_be_compiled(array: Array) -> None:
    with pytest.raises(CompilationError) as caught:
        with_assembly[(1,)](array(np.zeros(1, np.int32)))
    error = caught.value
    assert error.operation == "tt.elementwise_inline_asm"
    assert error.location is not None
    assert error.location.file == __file__
    assert error.location.line == line_of(with_assembly, "inline_asm")
    assert 'tl.inline_asm_elementwise("mov' in str(error)
    assert error.remedy


@pytest.mark.parametrize("stage", ["structured", "loops"])
def test_a_defect_of_the_compiler_names_the_line(
    stage: str, array: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton_porting_kit.compiler.loops import handlers
    from triton_porting_kit.compiler.structured import importer

    def fail(*_: Any) -> None:
        raise KeyError("f1")

    if stage == "structured":
        monkeypatch.setitem(importer._HANDLERS, "tt.store", fail)
    else:
        monkeypatch.setitem(handlers.HANDLERS, "tpk.store", fail)
    with pytest.raises(CompilationError, match="failed with KeyError: 'f1'") as caught:
        add_constant[(1,)](array([0.0] * 8), 8, AMOUNT=1, BLOCK=8)
    assert caught.value.location is not None
    assert caught.value.location.line == line_of(add_constant, "tl.store")


def test_gluon(script: Script) -> None:
    result = script.run("""
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

@gluon.jit
def copy(x, y):
    gl.store(y, gl.load(x))

copy[(1,)](array([1.0]), array([2.0]))
""")
    assert result.returncode == 1
    assert "CompilationError: backend cpu compiles Triton kernels, not Gluon ones" in result.stderr


@pytest.mark.parametrize(
    "options",
    [
        {"num_warps": 3},
        {"num_warps": 0},
        {"num_warps": -4},
        {"num_warps": "4"},
        {"num_ctas": 0},
        {"num_stages": -1},
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], array: Array) -> None:
    (name,) = options
    with pytest.raises(CompilationError, match=name) as caught:
        add_constant[(1,)](array([0.0] * 8), 8, AMOUNT=1, BLOCK=8, **options)
    # As Triton's own backends raise it.
    assert isinstance(caught.value, AssertionError)
    with pytest.raises(AssertionError, match="must be a power of 2" if options == {"num_warps": 3} else name):
        add_constant.warmup(array([0.0] * 8), 8, AMOUNT=1, BLOCK=8, grid=(1,), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"num_warps": 1},
        {"num_warps": 32, "num_stages": 1},
        {"num_stages": 0},
        {"num_ctas": 2},
        {"maxnreg": 64},
        {"enable_fp_fusion": False},
        {"sanitize_overflow": False},
        {"launch_cooperative_grid": True},
        {"launch_pdl": True},
        {"waves_per_eu": 2, "matrix_instr_nonkdim": 16, "kpack": 2},
        {"extern_libs": {}},
        {"ir_override": None},
    ],
)
def test_tritons_own_options_are_taken(options: dict[str, Any], array: Array) -> None:
    x = array([0.0] * 8)
    add_constant[(1,)](x, 8, AMOUNT=1, BLOCK=8, **options)
    assert (x.numpy() == 1).all()


@pytest.mark.parametrize(("mode", "taken"), [("consan", True), ("iisan", True), ("fpsan", False)])
def test_tritons_sanitizers(mode: str, taken: bool, array: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INSTRUMENTATION_MODE", mode)
    monkeypatch.setattr(knobs.compilation, "instrumentation_mode", mode)
    x = array([0.0] * 8)
    if taken:
        add_constant[(1,)](x, 8, AMOUNT=1, BLOCK=8)
        assert (x.numpy() == 1).all()
        return
    # It would compute other floats, which nobody should take for the kernel's.
    with pytest.raises(OptionError, match="instrumentation_mode is 'fpsan'"):
        add_constant[(1,)](x, 8, AMOUNT=1, BLOCK=8)


@pytest.mark.parametrize("option", ["num_warp", "numwarps", "BLOCK_M", "stages"])
def test_a_misspelt_option(option: str, array: Array) -> None:
    with pytest.raises(KeyError, match=option):
        add_constant[(1,)](array([0.0] * 8), 8, AMOUNT=1, BLOCK=8, **{option: 4})


def test_argument_names_may_be_those_of_metadata(script: Script) -> None:
    script("""
@triton.jit
def kernel(name, shared, cpu, triple, arch_name):
    tl.store(name, shared + cpu + triple + arch_name)

x = array([0.0])
kernel[(1,)](name=x, shared=2, cpu=3, triple=4, arch_name=5)
assert x.numpy()[0] == 14
""")


def test_numpy_arrays_are_refused() -> None:
    with pytest.raises(TypeError, match="ndarray"):
        add_constant[(1,)](np.zeros(8, np.float32), 8, AMOUNT=1, BLOCK=8)


@pytest.mark.parametrize("value", ["text", object(), {"a": 1}, 1j, 2**64, -(2**63) - 1, b"bytes"])
def test_values_that_are_no_arguments(value: Any, array: Array) -> None:
    with pytest.raises((TypeError, OverflowError)):
        add_constant[(1,)](array([0.0] * 8), value, AMOUNT=1, BLOCK=8)


def test_a_wrong_element_type(array: Array, device: Any) -> None:
    from triton.compiler.errors import CompilationError as FrontEndError

    with pytest.raises((FrontEndError, CompilationError)):
        add_constant[(1,)](3.5, 8, AMOUNT=1, BLOCK=8)
    with pytest.raises(TypeError, match="complex"):
        DeviceArray.empty(3, "complex64", device)


# --- memory ------------------------------------------------------------------------------------------


def test_pointers_that_are_not_there(device: Any) -> None:
    live, freed = device.memalloc(64), device.memalloc(64)
    device.memfree(freed)
    for free in (0, freed, live + 8, 12345, 2**64 - 8):
        with pytest.raises(InvalidPointer, match="memfree"):
            device.memfree(free)
    copies: list[Callable[[], None]] = [
        lambda: device.memcpy_htod(0, bytearray(8)),
        lambda: device.memcpy_dtoh(bytearray(8), 0),
        lambda: device.memset(0, 0, 8),
        lambda: device.memcpy_dtod(0, live, 8),
        lambda: device.memcpy_dtod(live, 0, 8),
        # More than there is.
        lambda: device.memcpy_htod(live, bytearray(65)),
        lambda: device.memcpy_dtoh(bytearray(65), live),
        lambda: device.memset(live, 0, 65),
        lambda: device.memset(live, 0, 2**63),
        lambda: device.memcpy_dtod(live, live, 2**64 - 1),
    ]
    for copy in copies:
        with pytest.raises(InvalidPointer):
            copy()
    device.memfree(live)


def test_copies_to_freed_memory(script: Script) -> None:
    printed = script("""
device, names = driver.active.device, []
freed = device.memalloc(64)
device.memfree(freed)
for call in (lambda: device.memcpy_htod(freed, bytearray(64)), lambda: device.memset(freed, 0, 64),
             lambda: device.memcpy_dtoh(bytearray(64), freed), lambda: device.memcpy_dtod(freed, freed, 64)):
    try:
        call()
    except Exception as error:
        names.append(type(error).__name__)
print(names)
""")
    assert printed == f"{['InvalidPointer'] * 4}\n"


def test_too_much_memory(device: Any) -> None:
    for size in (1 << 50, 2**63 - 1):
        with pytest.raises(OutOfMemory):
            device.memalloc(size)
    with pytest.raises((OutOfMemory, ValueError)):
        DeviceArray.empty((2**40, 2**40), "float64", device)


def test_a_null_pointer_that_is_not_read(array: Array) -> None:
    add_constant[(1,)](array([0.0] * 8), 0, AMOUNT=1, BLOCK=8)
    kernel = add_constant.warmup(array([0.0] * 8), 7, AMOUNT=1, BLOCK=8, grid=(1,))
    kernel[(1, 1, 1)](0, 0, 1, 8)


def test_a_scratch_that_is_too_large(array: Array, device: Any) -> None:
    """A kernel whose buffers do not fit is refused before it runs."""
    kernel = add_constant.warmup(array([0.0] * 8), 8, AMOUNT=1, BLOCK=8, grid=(1,))
    from triton_porting_kit.toolchain import llvm

    text = kernel.asm["llir"]
    before, found, after = text.partition("@add_constant__scratch_bytes = ")
    assert found
    sizes = after.partition("\n")[0]
    assert sizes.startswith("constant [2 x i64] ")
    text = before + found + f"constant [2 x i64] [i64 {1 << 40}, i64 0]" + after[len(sizes) :]
    binary = llvm.emit_object(llvm.parse(text, llvm.host_triple()), llvm.target_machine())
    with pytest.raises(InvalidModule, match=f"{1 << 40} bytes of scratch"):
        device.load_module(binary, "add_constant")


# --- errors in kernels ------------------------------------------------------------------------------


def test_front_end_errors_name_the_line(script: Script) -> None:
    result = script.run("""
@triton.jit
def broken(x):
    y = tl.load(x)
    tl.store(x, y + undefined_name)

broken[(1,)](array([0.0]))
""")
    assert result.returncode == 1
    assert "undefined_name is not defined" in result.stderr
    assert "tl.store(x, y + undefined_name)" in result.stderr
