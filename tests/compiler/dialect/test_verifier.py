"""The verifier of the dialect: every way in which a file that overrides the stage may be wrong is named, with its line."""

from __future__ import annotations

import re

import pytest
import triton
import triton.language as tl
from ttir_source import ttir_text

from triton_porting_kit.compiler import artefacts
from triton_porting_kit.compiler.defects import InvalidIR
from triton_porting_kit.compiler.dialect import verifier
from triton_porting_kit.compiler.structured import import_ttir


@triton.jit
def doubled(x, out):
    i = tl.arange(0, 16)
    tl.store(out + i, 2 * tl.load(x + i))


TEXT = """module attributes {tpk.structured = 1 : i32} {
  func.func @kernel(%p: !llvm.ptr {tpk.pointee = f32}) attributes {tpk.kernel} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %16 = arith.constant 16 : i64
    %m = arith.constant dense<true> : tensor<16xi1>
    %pid = "tpk.program_id"() {axis = 0 : i32} : () -> i32
    %x = "tpk.load"(%p, %0, %1, %0, %16) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0>} : (!llvm.ptr, i64, i64, i64, i64) -> tensor<16xf32>
    %s = "tpk.reduce"(%x) ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      "tpk.yield"(%c) : (f32) -> ()
    }) {axis = 0 : i32} : (tensor<16xf32>) -> f32
    %r = "tpk.range"() {start = 0 : i32} : () -> tensor<16xi32>
    %old = "tpk.atomic_rmw"(%p, %r, %x, %m) {kind = "fadd", operandSegmentSizes = array<i32: 1, 1, 1, 1>, scope = "gpu", sem = "acq_rel"} : (!llvm.ptr, tensor<16xi32>, tensor<16xf32>, tensor<16xi1>) -> tensor<16xf32>
    %y = "tpk.repeat"(%x) {dim = 0 : i64, times = 2 : i64} : (tensor<16xf32>) -> tensor<32xf32>
    "tpk.store"(%p, %0, %1, %x) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, tensor<16xf32>) -> ()
    return
  }
}
"""

#: What is changed: the text, its replacement; the operation that is named, and what is said of it.
BROKEN = {
    "another name": ('"tpk.load"', '"tpk.laod"', "tpk.laod", r"not an operation of the dialect \(tpk\.load is\)"),
    "no sizes": ("{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0>}", "", "tpk.load", "lacks the attribute operandSegmentSizes"),
    "sizes that do not add up": ("1, 1, 1, 1, 1, 0", "1, 1, 1, 1, 0, 0", "tpk.load", "its 5 operands are not the groups"),
    "two bases": ("1, 1, 1, 1, 1, 0", "2, 1, 1, 1, 0, 0", "tpk.load", "2 operands for `base`"),
    "one bound": ("1, 1, 1, 1, 1, 0", "1, 1, 1, 2, 0, 0", "tpk.load", "2 operands `low` for a tile of 1 dimensions"),
    "a stride too many": ("1, 1, 1, 1, 1, 0", "1, 1, 3, 0, 0, 0", "tpk.load", "3 strides for a tile of 1 dimensions"),
    "a dimension that is none": ("{axis = 0 : i32} : (tensor", "{axis = 1 : i32} : (tensor", "tpk.reduce", "1 dimensions has no dimension 1"),
    "no axis": ("{axis = 0 : i32} : () -> i32", ": () -> i32", "tpk.program_id", "lacks the attribute axis"),
    "an axis of no grid": ("{axis = 0 : i32} : () -> i32", "{axis = 3 : i32} : () -> i32", "tpk.program_id", "no axis 3"),
    "text for a number": ("{axis = 0 : i32} : () -> i32", '{axis = "x"} : () -> i32', "tpk.program_id", "attribute axis is \"x\", which has the wrong type"),
    "an unknown kind": ('kind = "fadd"', 'kind = "sub"', "tpk.atomic_rmw", "attribute kind is 'sub': it should be one of add, fadd"),
    "a misspelt attribute": ('sem = "acq_rel"', 'order = "acq_rel"', "tpk.atomic_rmw", "has no attribute order"),
    "another length": ("(tensor<16xf32>) -> tensor<32xf32>", "(tensor<16xf32>) -> tensor<48xf32>", "tpk.repeat", r"shape \[32\], not \[48\]"),
    "another terminator": ('"tpk.yield"(%c) : (f32) -> ()', '"acme.yield"(%c) : (f32) -> ()', "tpk.reduce", "does not end with tpk.yield"),
    "a result of a store": ('"tpk.store"(%p, %0, %1, %x)', '%z = "tpk.store"(%p, %0, %1, %x)', "tpk.store", "1 results instead of 0"),
    "a pointer for an offset": ('"tpk.store"(%p, %0, %1, %x)', '"tpk.store"(%p, %pid, %1, %x)', "tpk.store", "`offset` is i32: it should be i64"),
}  # fmt: skip


def test_what_is_right() -> None:
    artefacts.parse_structured(TEXT)


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong(name: str) -> None:
    before, after, operation, said = BROKEN[name]
    text = TEXT.replace(before, after, 1)
    if name == "a result of a store":
        text = text.replace("tensor<16xf32>) -> ()", "tensor<16xf32>) -> i64")
    if name == "a pointer for an offset":
        text = text.replace("(!llvm.ptr, i64, i64, tensor<16xf32>)", "(!llvm.ptr, i32, i64, tensor<16xf32>)")
    assert text != TEXT
    with pytest.raises(InvalidIR, match=said) as raised:
        artefacts.parse_structured(text)
    line = next(n for n, line in enumerate(text.splitlines(), 1) if f'"{operation}"' in line)
    assert f"line {line}:" in raised.value.message
    assert raised.value.operation == operation


def test_the_line_of_the_kernel_is_named() -> None:
    """Of a module that was built, and of a text whose operations keep their locations."""
    module = import_ttir(ttir_text(doubled, {"x": "*fp32", "out": "*fp32"}))
    verifier.verify(module)
    text = str(artefacts.mlir_artefact(module))
    broken, count = re.subn(r'"tpk\.store"\(', '"tpk.stores"(', text, count=1)
    assert count == 1
    with pytest.raises(InvalidIR, match=r"tpk\.store is") as raised:
        artefacts.parse_structured(broken)
    assert raised.value.location is not None
    assert raised.value.location.file.endswith("test_verifier.py")
