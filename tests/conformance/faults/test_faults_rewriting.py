"""Changing the text of artefacts."""

from __future__ import annotations

from triton_porting_kit.conformance.faults.rewriting import (
    attributes,
    derived,
    dropped,
    each,
    renamed,
    replaced,
    swapped,
    written,
)

SUB = '    %r = "arith.subi"(%x, %y) <{overflowFlags = #arith.overflow<none>}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> loc(#loc1)'
DIV = '    %q = "arith.divsi"(%r, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> loc(#loc1)'
STORE = (
    '    "tpk.store"(%p, %c0, %c1, %c0, %c17, %m, %v) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 1, 1>} : '
    "(!llvm.ptr, i64, i64, i64, i64, tensor<4xi1>, tensor<4xi32>) -> () loc(#loc2)"
)
TEXT = f"module {{\n{SUB}\n{DIV}\n{STORE}\n}}"


def test_what_does_not_match_stays() -> None:
    assert renamed("arith.addi", "arith.subi")(TEXT) == TEXT


def test_renamed() -> None:
    assert renamed("arith.divsi", "arith.divui")(TEXT) == TEXT.replace("divsi", "divui")


def test_conditions() -> None:
    assert renamed("arith.divsi", "arith.divui", where="i64")(TEXT) == TEXT
    assert renamed("arith.divsi", "arith.divui", unless="i32")(TEXT) == TEXT


def test_swapped() -> None:
    assert swapped(r"arith\.subi")(TEXT) == TEXT.replace("(%x, %y)", "(%y, %x)")


def test_attributes_change_of_one_operation_only() -> None:
    changed = attributes(r"arith\.divsi", "loc1", "loc9")(TEXT)
    assert changed == TEXT.replace(DIV, DIV.replace("loc1", "loc9"))


def test_a_group_is_dropped_with_its_types() -> None:
    changed = dropped(r"tpk\.store", 7)(TEXT).split("\n")[3]
    assert changed == (
        '    "tpk.store"(%p, %c0, %c1, %c0, %c17, %v) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 1>} : '
        "(!llvm.ptr, i64, i64, i64, i64, tensor<4xi32>) -> () loc(#loc2)"
    )


def test_an_operand_is_computed_from_the_old_one() -> None:
    template = '    {y} = "arith.addi"({x}, {x}) : ({T}, {T}) -> {T}'
    lines = derived(r"tpk\.store", 4, template)(TEXT).split("\n")
    assert lines[3] == '    %fault_derived4_3 = "arith.addi"(%c17, %c17) : (i64, i64) -> i64'
    assert "(%p, %c0, %c1, %c0, %fault_derived4_3, %m, %v) {" in lines[4]


def test_written_knows_operands_and_types() -> None:
    template = """
        %a{n} = "arith.xori"({0}, {1}) : ({T0}, {T1}) -> {T}
        {r} = "arith.addi"(%a{n}, {0}) : ({T}, {T}) -> {T}"""
    lines = written(r"arith\.divsi", template)(TEXT).split("\n")
    assert lines[2] == '    %a2 = "arith.xori"(%r, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>'
    assert lines[3] == '    %q = "arith.addi"(%a2, %r) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>'


def test_replaced_works_on_lines() -> None:
    assert replaced("^module", "the module")(TEXT).startswith("the module {")


def test_each_may_remove() -> None:
    assert "tpk.store" not in each(r"tpk\.store", lambda operation: "")(TEXT)
