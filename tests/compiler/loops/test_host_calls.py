"""Calls of the host's routines, recorded by stand-ins for them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from native_functions import host

from triton_porting_kit.compiler import codegen
from triton_porting_kit.compiler.loops import lower_to_loops
from triton_porting_kit.toolchain import mlir
from triton_porting_kit.toolchain.llvm import LinkedObject

I32, I64, PTR = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
Fail = ctypes.CFUNCTYPE(None, ctypes.c_char_p, I32, I32, I32, I64, PTR)
Print = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, I32, PTR, PTR, I32, I32, I32)

KINDS = {"i1": np.dtype("u1"), "ptr": np.dtype("u8"), "bf16": np.dtype("u2"), "u32": np.dtype("u4")}
KINDS |= {"i32": np.dtype("i4"), "i64": np.dtype("i8"), "f32": np.dtype("f4")}


def numbers(address: int) -> list[int]:
    """A table: its first number says how many follow."""
    rank = I64.from_address(address).value
    return [I64.from_address(address + 8 * (1 + d)).value for d in range(rank)]


class Recorder:
    """Runs a kernel of one pointer for some programs, and notes what it tells the host.

    Here, the routine for failures returns: every assertion of the kernel is seen.
    """

    def __init__(self, body: str, threads: int = 1) -> None:
        text = (
            "module { func.func public @k(%p: !llvm.ptr {tpk.pointee = i32}) attributes {tpk.kernel} {\n"
            f"%zero = arith.constant 0 : i64 %one = arith.constant 1 : i64 {body}\n return }} }}"
        )
        self.result = lower_to_loops(mlir.parse_module(text), host(), threads=threads)
        self.failures: list[Any] = []
        self.prints: list[Any] = []

    def run(self, values: np.ndarray[Any, Any], programs: int = 1) -> None:
        @Fail
        def fail(text: bytes, x: int, y: int, z: int, element: int, shape: int) -> None:
            self.failures.append((text.decode(), (x, y, z), element, numbers(shape)))

        @Print
        def show(
            prefix: bytes, type: bytes | None, hex: int, shape: int | None, data: int, x: int, y: int, z: int
        ) -> None:
            if type is None or shape is None:
                self.prints.append((prefix.decode(), None, hex, None, None, (x, y, z)))
                return
            sizes = numbers(shape)
            kind = KINDS[type.decode()]
            raw = ctypes.string_at(data, int(np.prod(sizes)) * kind.itemsize)
            self.prints.append(
                (prefix.decode(), type.decode(), hex, sizes, np.frombuffer(raw, kind).tolist(), (x, y, z))
            )

        ir = codegen.lower_to_llvm_ir(self.result.text)
        routines = {
            "tpk_host_fail": ctypes.cast(fail, PTR).value or 0,
            "tpk_host_print": ctypes.cast(show, PTR).value or 0,
        }
        code = LinkedObject(codegen.emit_object(ir, host()), ["k"], routines)
        block = np.array([values.ctypes.data], np.uint64)
        scratch = np.zeros(self.result.scratch_bytes + 64, np.uint8)
        start = scratch.ctypes.data + -scratch.ctypes.data % 64
        function = ctypes.CFUNCTYPE(I32, PTR, PTR, I64, I64, I32, I32, I32)(code.addresses["k"])
        assert function(block.ctypes.data, start, 0, programs, programs, 1, 1) == 0


def load(size: int, element: str = "i32") -> str:
    """%x: a tile of that many elements."""
    return (
        '%x = "tpk.load"(%p, %zero, %one) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>, '
        f"wrap_dims = array<i64>}} : (!llvm.ptr, i64, i64) -> tensor<{size}x{element}>\n"
    )


def below(size: int, limit: int, message: str = "large") -> str:
    """An assertion that all elements of %x are below `limit`."""
    return (
        f"%limit = arith.constant dense<{limit}> : tensor<{size}xi32>\n"
        f"%holds = arith.cmpi slt, %x, %limit : tensor<{size}xi32>\n"
        f'"tpk.assert"(%holds) {{message = "{message}"}} : (tensor<{size}xi1>) -> () loc("kernel.py":7:3)'
    )


@pytest.mark.parametrize("size", [1, 2, 4, 16, 32, 256])
def test_first_failing_lane_of_each_step(size: int) -> None:
    values = np.arange(size, dtype=np.int32)
    recorder = Recorder(load(size) + below(size, size))
    recorder.run(values)
    assert recorder.failures == []
    wrong = size * 2 // 3
    values[wrong:] = size
    recorder.run(values)
    assert recorder.failures[0] == ("kernel.py:7: large", (0, 0, 0), wrong, [size])
    steps = [element for _, _, element, _ in recorder.failures]
    assert steps == sorted(set(steps))


def test_every_program_says_which_it_is() -> None:
    recorder = Recorder(load(4) + below(4, 0))
    recorder.run(np.zeros(4, np.int32), programs=3)
    assert [program for _, program, _, _ in recorder.failures] == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]


def test_splat_conditions() -> None:
    recorder = Recorder(
        '%pid = "tpk.program_id"() {axis = 0 : i32} : () -> i32\n'
        "%c1 = arith.constant 1 : i32\n%same = arith.cmpi ne, %pid, %c1 : i32\n"
        "%holds = tensor.splat %same : tensor<64xi1>\n"
        '"tpk.assert"(%holds) {message = ""} : (tensor<64xi1>) -> ()\n'
        '"tpk.assert"(%same) {message = "scalar"} : (i1) -> ()'
    )
    recorder.run(np.zeros(1, np.int32), programs=3)
    assert recorder.failures[0][1:] == ((1, 0, 0), 0, [64])
    assert recorder.failures[-1][0].endswith(": scalar")
    assert recorder.failures[-1][1:] == ((1, 0, 0), 0, [])


def test_assertions_that_always_hold_cost_nothing() -> None:
    recorder = Recorder('%true = arith.constant true "tpk.assert"(%true) {message = "no"} : (i1) -> ()')
    assert "scf.if" not in recorder.result.text
    assert "tpk_host_fail" not in recorder.result.text


def test_prints_hand_over_elements_type_and_shape() -> None:
    recorder = Recorder(
        load(4)
        + "%pair = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xi32> into tensor<2x2xi32>\n"
        "%c = arith.cmpi sgt, %x, %x : tensor<4xi32>\n"
        '"tpk.print"(%x, %pair, %c, %one, %one) {hex = true, isSigned = array<i32: 1, 0, 0, 1, 0>, '
        'pointers = array<i32: 0, 0, 0, 0, 1>, prefix = " v: "} : '
        "(tensor<4xi32>, tensor<2x2xi32>, tensor<4xi1>, i64, i64) -> ()"
    )
    recorder.run(np.array([1, -1, 2, 3], np.int32))
    here = (0, 0, 0)
    assert recorder.prints == [
        (" v: (operand 0) ", "i32", 1, [4], [1, -1, 2, 3], here),
        (" v: (operand 1) ", "u32", 1, [2, 2], [1, 2**32 - 1, 2, 3], here),
        (" v: (operand 2) ", "i1", 1, [4], [0, 0, 0, 0], here),
        (" v: (operand 3) ", "i64", 1, [], [1], here),
        (" v: (operand 4) ", "ptr", 1, [], [1], here),
    ]


@pytest.mark.parametrize(("prefix", "shown"), [(" at: ", " at: "), ("hi", " hi"), (": ", ": "), ("", " ")])
def test_prints_without_values_and_short_prefixes(prefix: str, shown: str) -> None:
    recorder = Recorder(
        f'"tpk.print"() {{hex = false, isSigned = array<i32>, prefix = "{prefix}"}} : () -> ()'
    )
    recorder.run(np.zeros(1, np.int32), programs=2)
    assert recorder.prints == [(shown, None, 0, None, None, (p, 0, 0)) for p in range(2)]


def test_bfloat_goes_as_its_bits() -> None:
    recorder = Recorder(
        load(2, "bf16")
        + '"tpk.print"(%x) {hex = false, isSigned = array<i32: 0>, prefix = " x: "} : (tensor<2xbf16>) -> ()'
    )
    recorder.run(np.array([0x3F80, 0xBF80], np.uint16))
    assert recorder.prints == [(" x: ", "bf16", 0, [2], [0x3F80, 0xBF80], (0, 0, 0))]


@pytest.mark.parametrize("threads", [1, 4])
def test_every_thread_prints_what_is_one_value(threads: int) -> None:
    body = (
        '"tpk.print"() {hex = false, isSigned = array<i32>, pointers = array<i32>, prefix = "here"} : () -> ()\n'
        '"tpk.print"(%one) {hex = false, isSigned = array<i32: 1>, pointers = array<i32: 0>, prefix = "one"} '
        ": (i64) -> ()\n"
        + load(2)
        + '"tpk.print"(%x) {hex = false, isSigned = array<i32: 1>, pointers = array<i32: 0>, prefix = "tile"} '
        ": (tensor<2xi32>) -> ()"
    )
    recorder = Recorder(body, threads=threads)
    recorder.run(np.array([5, 6], np.int32))
    shown = [(prefix.strip(), values) for prefix, _, _, _, values, _ in recorder.prints]
    assert shown == [("here", None)] * threads + [("one", [1])] * threads + [("tile", [5, 6])]
