"""From loops to LLVM IR and code: the short way and the long one, and what has no way."""

from __future__ import annotations

import threading

import pytest

from triton_porting_kit.compiler import codegen
from triton_porting_kit.compiler.defects import InvalidIR
from triton_porting_kit.compiler.target import CpuTarget
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain import llvm, mlir

OPERATIONS = {
    **{
        f"math.{name}": f"math.{name} %f : vector<4xf32>"
        for name in ("absf", "ceil", "floor", "roundeven", "sqrt", "trunc")
    },
    **{f"math.{name}": f"math.{name} %i : vector<4xi32>" for name in ("absi", "ctlz", "ctpop", "cttz")},
    "math.copysign": "math.copysign %f, %f : vector<4xf32>",
    "math.fma": "math.fma %f, %f, %f : vector<4xf32>",
    "vector.bitcast": "vector.bitcast %f : vector<4xf32> to vector<8xi16>",
    "vector.broadcast": "vector.broadcast %s : f32 to vector<4xf32>",
    "vector.extract": "vector.extract %f[2] : f32 from vector<4xf32>",
    "vector.from_elements": "vector.from_elements %s, %s : vector<2xf32>",
    "vector.insert": "vector.insert %s, %f [1] : f32 into vector<4xf32>",
    "vector.interleave": "vector.interleave %f, %f : vector<4xf32> -> vector<8xf32>",
    "vector.reduction": "vector.reduction <maxsi>, %i : vector<4xi32> into i32",
    "vector.shuffle": "vector.shuffle %f, %f [2, 3, 6, 1] : vector<4xf32>, vector<4xf32>",
}


def module(line: str) -> str:
    result = line.partition(" from ")[0].rpartition(" ")[2]
    return f"""
        func.func @f(%f: vector<4xf32>, %i: vector<4xi32>, %s: f32, %place: !llvm.ptr) {{
          %r = {line}
          llvm.store %r, %place : {result}, !llvm.ptr
          return
        }}"""


def test_operations_that_need_no_pass_of_their_own() -> None:
    """Each is tried below."""
    assert set(OPERATIONS) == codegen._DIRECT


@pytest.mark.parametrize("name", OPERATIONS)
def test_both_ways_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = module(OPERATIONS[name])
    short = codegen.lower_to_llvm_ir(text)
    monkeypatch.setattr(codegen, "_DIRECT", frozenset())
    assert short == codegen.lower_to_llvm_ir(text)
    codegen.parse_llvm_ir(short, CpuTarget.host())


def test_the_long_way() -> None:
    text = codegen.lower_to_llvm_ir(module("math.erf %s : f32"))
    assert "@erff(float" in text


def test_what_has_no_counterpart_in_llvm_ir() -> None:
    with pytest.raises(CompilationError, match=r"vendor\.do, loc\(.*:3.*\), has no counterpart in LLVM IR"):
        codegen.lower_to_llvm_ir(module('"vendor.do"(%s) : (f32) -> f32'))


def test_a_text_that_is_damaged_is_an_error() -> None:
    text = codegen.lower_to_llvm_ir(module("math.sqrt %f : vector<4xf32>"))
    call = next(line for line in text.splitlines() if " = call <4 x float>" in line)
    damaged = text.replace(call, "").replace("  ret void", f"{call}\n  ret void")
    with pytest.raises(InvalidIR, match="does not dominate"):
        codegen.parse_llvm_ir(damaged, CpuTarget.host())


def test_pass_managers_are_made_once_for_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    original = mlir._pass_manager

    def counted(pipeline: str) -> object:
        made.append(pipeline)
        return original(pipeline)

    monkeypatch.setattr(mlir, "_pass_manager", counted)
    pipeline = "builtin.module(canonicalize,cse,cse)"
    for uses in (1, 1, 2):  # before the last the context is given up
        if uses == 2:
            mlir._thread_context._left = 0
        mlir.run_passes(mlir.parse_module("module {}"), pipeline)
        assert made == [pipeline] * uses
    own = mlir.make_context()
    for uses in (3, 4):
        mlir.run_passes(mlir.parse_module("module {}", own), pipeline)
        assert made == [pipeline] * uses


LOOP = """
define i64 @f(ptr %a, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %scaled = mul i64 %i, 24
  %place = getelementptr i8, ptr %a, i64 %scaled
  store i64 %i, ptr %place
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret i64 %next
}
"""


def test_other_users_of_llvmlite_keep_loop_strength_reduction() -> None:
    target = CpuTarget.host()
    machine = llvm.target_machine(target.triple, target.cpu, target.feature_string)

    def by_others() -> str:
        return str(machine.emit_assembly(llvm.parse(LOOP, target.triple)))

    before = by_others()
    ours: list[str] = []

    def compile_ours() -> None:
        ours.append(codegen.emit_assembly(LOOP, target))

    threads = [threading.Thread(target=compile_ours) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ours)) == 1
    assert ours[0] != before
    assert by_others() == before


def test_each_thread_has_its_own_code_generator() -> None:
    found: list[object] = [llvm.target_machine(), llvm.target_machine()]
    thread = threading.Thread(target=lambda: found.append(llvm.target_machine()))
    thread.start()
    thread.join()
    assert found[0] is found[1]
    assert found[2] is not found[0]


QUOTIENT = """
define i64 @quotient(i64 %a, i64 %b) {
  %c = sdiv i64 %a, %b
  ret i64 %c
}
"""


@pytest.mark.parametrize("cpu", ["skylake-avx512", "sapphirerapids", "znver4"])
def test_64_bits_are_divided_without_a_branch(cpu: str) -> None:
    text = codegen.emit_assembly(QUOTIENT, CpuTarget.named(cpu))
    assert "idivq" in text
    assert "divl" not in text
