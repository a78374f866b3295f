"""Launches of whole kernels in the interpreter: what they leave, and the errors that mistakes raise."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from ttir_source import ttir_text

from triton_porting_kit.compiler.dialect.interpreter import (
    BrokenPromise,
    KernelAssertion,
    NotInterpreted,
    OutOfBounds,
    WaitsForOthers,
    interpret,
)
from triton_porting_kit.compiler.structured import import_ttir
from triton_porting_kit.errors import CompilationError, MemoryAccessError, SignatureError


def structured(kernel: Any, signature: dict[str, str], *, promises: bool = False, **constants: Any) -> str:
    """The text of a kernel's structured form, with the lines of this file."""
    module = import_ttir(ttir_text(kernel, signature, **constants), promises=promises)
    return str(module.operation.get_asm(enable_debug_info=True))


@triton.jit
def scale(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=inside) * factor, mask=inside)


SCALE = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "factor": "fp32"}


def test_arrays_are_read_and_written_where_they_are() -> None:
    x, out = np.arange(100, dtype=np.float32), np.full((10, 10), -1, np.float32)
    interpret(structured(scale, SCALE, BLOCK=32), (4,), [x, out, 99, 2.0])
    np.testing.assert_array_equal(out.ravel(), [*2 * x[:99], -1])


def test_the_same_array_may_be_given_twice() -> None:
    x = np.arange(64, dtype=np.float32)
    interpret(structured(scale, SCALE, BLOCK=64), (1,), [x, x, 64, 3.0])
    np.testing.assert_array_equal(x, 3 * np.arange(64))


def test_an_access_out_of_bounds_says_where() -> None:
    text = structured(scale, SCALE, BLOCK=32)
    x, out = np.ones(100, np.float32), np.zeros(90, np.float32)
    with pytest.raises(OutOfBounds) as caught:
        interpret(text, (4,), [x, out, 100, 2.0])
    error = caught.value
    assert isinstance(error, MemoryAccessError)
    assert (error.at.operation, error.at.program, error.at.element) == ("tpk.store", (2, 0, 0), (26,))
    assert error.at.location is not None
    assert error.at.location.file == __file__
    lines = Path(__file__).read_text().splitlines()
    assert "tl.store(out_ptr + offsets, tl.load" in lines[error.at.location.line - 1]
    assert "4 bytes" in str(error)
    assert "0 bytes behind the end of out_ptr, which has 360" in str(error)
    assert out[:64].all()  # by the programs before
    assert not out[64:].any()  # nothing is stored by an access that fails


def test_every_byte_is_its_own_arrays() -> None:
    """Between two arrays lies memory of none; a null pointer is near no array."""
    text = structured(scale, SCALE, BLOCK=32)
    with pytest.raises(OutOfBounds, match="load"):
        interpret(text, (1,), [None, np.zeros(32, np.float32), 32, 1.0])


@triton.jit
def shown(x_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))
    tl.device_print("x", x)


def test_prints_go_to_a_stream() -> None:
    output = io.StringIO()
    text = structured(shown, {"x_ptr": "*i32"}, BLOCK=16)
    interpret(text, (1, 2), [np.arange(-3, 29, dtype=np.int32)], output=output)
    lines = output.getvalue().splitlines()
    assert lines[0] == "pid (0, 0, 0) idx ( 0) x: -3"
    assert lines[31] == "pid (0, 1, 0) idx (15) x: 28"
    assert len(lines) == 32


ASSERTION = """
module attributes {tpk.structured = 1 : i32} {
  func.func public @checked(%arg0: !llvm.ptr {tpk.pointee = i32}) attributes {tpk.kernel} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %limit = arith.constant dense<40> : tensor<64xi32>
    %x = "tpk.load"(%arg0, %zero, %one) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>}
      : (!llvm.ptr, i64, i64) -> tensor<64xi32>
    %good = arith.cmpi slt, %x, %limit : tensor<64xi32>
    "tpk.assert"(%good) {message = "too large"} : (tensor<64xi1>) -> ()
    return
  }
}
"""


def test_an_assertion_names_the_first_element() -> None:
    with pytest.raises(KernelAssertion, match="too large") as caught:
        interpret(ASSERTION, (2,), [np.arange(64, dtype=np.int32)])
    assert caught.value.at.element == (40,)
    assert caught.value.at.program == (0, 0, 0)
    interpret(ASSERTION, (2,), [np.zeros(64, np.int32)])


@triton.jit
def chained(flags_ptr, out_ptr, LAST: tl.constexpr):
    """Each program waits for the one after it; the last one begins."""
    program = tl.program_id(0)
    if program < LAST:
        while tl.atomic_cas(flags_ptr + program + 1, 1, 1) != 1:
            pass
    tl.store(out_ptr + program, tl.load(out_ptr + program + 1) + 1)
    tl.atomic_xchg(flags_ptr + program, 1)


def test_programs_wait_for_later_ones() -> None:
    text = structured(chained, {"flags_ptr": "*i32", "out_ptr": "*i32"}, LAST=7)
    flags, out = np.zeros(9, np.int32), np.zeros(9, np.int32)
    interpret(text, (8,), [flags, out])
    assert out.tolist() == [8, 7, 6, 5, 4, 3, 2, 1, 0]


def test_waiting_in_vain_is_an_error() -> None:
    text = structured(chained, {"flags_ptr": "*i32", "out_ptr": "*i32"}, LAST=7)
    with pytest.raises(WaitsForOthers, match=r"scf\.while in program"):
        interpret(text, (4,), [np.zeros(9, np.int32), np.zeros(9, np.int32)])


@triton.jit
def followed(next_ptr, out_ptr):
    """Walks a chain in memory to its end."""
    at = tl.program_id(0)
    while tl.load(next_ptr + at) >= 0:
        at = tl.load(next_ptr + at)
    tl.store(out_ptr + tl.program_id(0), at)


def test_a_long_walk_is_no_wait() -> None:
    text = structured(followed, {"next_ptr": "*i32", "out_ptr": "*i32"})
    chain, out = np.arange(1, 1001, dtype=np.int32), np.zeros(2, np.int32)
    chain[-1] = -1
    interpret(text, (2,), [chain, out])
    assert out.tolist() == [999, 999]


@triton.jit
def strided(x_ptr, stride, BLOCK: tl.constexpr):
    offsets = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) * stride
    tl.store(x_ptr + offsets, 1)


def test_a_promise_that_is_not_kept_is_an_error() -> None:
    text = structured(strided, {"x_ptr": "*i8", "stride": "i32"}, promises=True, BLOCK=16)
    assert "tpk.promises" in text
    x = np.zeros(64, np.int8)
    interpret(text, (2,), [x, 2])
    assert x.sum() == 32
    with pytest.raises(BrokenPromise, match="offsets_may_wrap"):
        interpret(text, (2,), [x, 1 << 30])


def test_arguments_are_checked() -> None:
    text = structured(scale, SCALE, BLOCK=32)
    x = np.zeros(32, np.float32)
    for arguments, message in (
        ([x, x, 1], "4 parameters, and 3"),
        ([x, 1, 1, 1.0], "out_ptr points to f32: give a NumPy array"),
        ([x, x, x, 1.0], "n is of type i32: give a number"),
        ([x, x, 1 << 40, 1.0], "does not fit i32"),
        (
            [x, x.astype(np.float64), 1, 1.0],
            "out_ptr points to f32, whose elements are float32, and not float64",
        ),
        ([x[::2], x, 1, 1.0], "x_ptr is not contiguous"),
    ):
        with pytest.raises(SignatureError, match=message):
            interpret(text, (1,), arguments)


def test_what_is_not_known_is_named() -> None:
    call = '%x = "tpk.function"(%a) {name = "zeta"} : (f32) -> f32'
    text = "module { func.func @k(%a: f32) attributes {tpk.kernel} { " + call + " return } }"
    with pytest.raises(NotInterpreted, match="no function zeta"):
        interpret(text, (1,), [1.0])
    with pytest.raises(CompilationError, match="holds no function marked"):
        interpret("module {}", (1,), [])


BOUNDS = """
module attributes {tpk.structured = 1 : i32} {
  func.func public @k(%arg0: !llvm.ptr {tpk.pointee = i32}, %low: i64, %high: i64) attributes {tpk.kernel} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %x = "tpk.range"() : () -> tensor<8xi32>
    "tpk.store"(%arg0, %zero, %one, %low, %high, %x) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 1>}
      : (!llvm.ptr, i64, i64, i64, i64, tensor<8xi32>) -> ()
    return
  }
}
"""


def test_bounds_outside_of_the_tile_are_a_defect_of_the_form() -> None:
    x = np.zeros(8, np.int32)
    interpret(BOUNDS, (1,), [x, 2, 5])
    assert x.tolist() == [0, 0, 2, 3, 4, 0, 0, 0]
    with pytest.raises(NotInterpreted, match="bounds 0 and 9 of dimension 0"):
        interpret(BOUNDS, (1,), [x, 0, 9])
