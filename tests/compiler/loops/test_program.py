"""The structured form as Python objects."""

from __future__ import annotations

from typing import Any

import pytest
import sample_loops
from ttir_source import ttir_text

from triton_porting_kit.compiler.dialect.operations import Load
from triton_porting_kit.compiler.loops.ir.program import Operation, Program, Type, read_program, walk
from triton_porting_kit.compiler.structured import import_ttir
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain import mlir

SIGNATURE = {"X": "*fp32", "O": "*fp32", "n": "i32"}


def program_of(kernel: Any, **constexprs: Any) -> Program:
    return read_program(import_ttir(ttir_text(kernel, SIGNATURE, **constexprs)))


def named(program: Program, name: str) -> list[Operation]:
    return [operation for operation in walk(program.body) if operation.name == name]


def test_arguments_and_name() -> None:
    program = program_of(sample_loops.chain, B=64)
    assert program.name == "chain"
    assert [argument.type for argument in program.body.arguments] == [
        Type("!llvm.ptr", None),
        Type("!llvm.ptr", None),
        Type("i32", None),
    ]
    assert program.argument_names == ["X", "O", "n"]


def test_operands_are_known_by_name() -> None:
    program = program_of(sample_loops.chain, B=64)
    (load,) = named(program, "tpk.load")
    op = Load(load)
    assert (op.base, op.offset) == tuple(load.operands[:2])
    assert [*op.strides, *op.low, *op.high] == load.operands[2:]
    assert op.wrap_start == op.wrap_size == []
    assert op.mask is op.other is None
    assert load.results[0].type == Type("f32", (64,))
    assert load.results[0].type.is_tensor


def test_users_and_positions() -> None:
    program = program_of(sample_loops.chain, B=64)
    (load,) = named(program, "tpk.load")
    assert len(load.results[0].users) == 2
    assert all(user.position > load.position for user in load.results[0].users)
    assert load.results[0].owner is load
    assert load.results[0].block is program.body


def test_ancestors_of_nested_operations() -> None:
    program = program_of(sample_loops.used_in_a_loop, B=64)
    (loop,) = named(program, "scf.for")
    (store,) = named(program, "tpk.store")
    assert store.block is loop.regions[0]
    assert store.ancestor_in(program.body) is loop
    assert store.ancestor_in(loop.regions[0]) is store
    assert loop.ancestor_in(loop.regions[0]) is None


def test_attributes_and_locations() -> None:
    program = program_of(sample_loops.where_am_i)
    axes = {operation.integer("axis") for operation in named(program, "tpk.program_id")}
    assert axes == {0, 1, 2}
    first = named(program, "tpk.program_id")[0]
    assert first.integer("absent", 7) == 7
    assert first.string("absent") == ""
    assert first.integers("absent") == []
    with pytest.raises(KeyError, match="absent"):
        first.integer("absent")
    location = first.location
    assert location is not None
    assert location.file.endswith("sample_loops.py")
    error = first.unsupported("no", "do without")
    assert isinstance(error, CompilationError)
    assert (error.operation, error.remedy) == ("tpk.program_id", "do without")
    assert "sample_loops.py" in str(error)


def test_module_without_a_kernel() -> None:
    with pytest.raises(CompilationError, match="no function marked"):
        read_program(mlir.parse_module("module {}"))


def kernel_text(body: str) -> str:
    return f"module {{ func.func public @k(%p: !llvm.ptr) attributes {{tpk.kernel}} {{\n{body}\nreturn\n}} }}"


@pytest.mark.parametrize("element", ["f6E3M2FN", "tf32", "i128", "f80"])
def test_types_that_are_not_computed_with_are_named(element: str) -> None:
    text = kernel_text(
        f'%o = arith.constant 0 : i64\n%x = "tpk.load"(%p, %o) {{operandSegmentSizes = array<i32: 1,1,0,0,0,0,0,0,0>, '
        f"wrap_dims = array<i64>}} : (!llvm.ptr, i64) -> {element}"
    )
    with pytest.raises(CompilationError, match=element) as raised:
        read_program(mlir.parse_module(text))
    assert raised.value.operation == "tpk.load"
    assert raised.value.remedy
