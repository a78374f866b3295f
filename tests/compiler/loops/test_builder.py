"""Where the builder places operations, what it folds, and what it writes once."""

from __future__ import annotations

import math
import struct

import pytest

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, float_literal
from triton_porting_kit.toolchain import mlir


def argument(builder: LoopBuilder, type: str = "i64") -> Value:
    return builder.fresh(type, level=0)


def lines(builder: LoopBuilder) -> list[str]:
    return [line.strip() for line in builder.text()]


def test_pure_operations_are_placed_outside_the_loops_they_do_not_depend_on() -> None:
    builder = LoopBuilder()
    a = argument(builder)
    with (
        builder.loop(builder.i64(0), builder.i64(8), builder.i64(1)) as outer,
        builder.loop(builder.i64(0), builder.i64(4), builder.i64(1)) as inner,
    ):
        outside = builder.mul(a, a)
        between = builder.add(outside, outer.induction)
        inside = builder.add(between, inner.induction)
    assert (outside.level, between.level, inside.level) == (0, 1, 2)
    text = lines(builder)
    places = [
        next(i for i, line in enumerate(text) if line.startswith(v.name + " =")) for v in (outside, between)
    ]
    loops = [i for i, line in enumerate(text) if line.startswith("scf.for")]
    assert places[0] < loops[0] < places[1] < loops[1]


def test_equal_operations_are_written_once_where_both_see_them() -> None:
    builder = LoopBuilder()
    a, b = argument(builder), argument(builder)
    assert builder.add(a, b) is builder.add(a, b)
    assert builder.add(a, b) is not builder.add(b, a)
    condition = builder.compare("slt", a, b)

    def branch() -> list[Value]:
        builder.effect("llvm.store %x, %y : i64, !llvm.ptr")
        return [builder.add(a, b)]

    builder.if_else(condition, branch, lambda: [a])
    assert sum("arith.addi" in line for line in lines(builder)) == 2


def test_floor_keeps_an_operation_in_its_branch() -> None:
    builder = LoopBuilder()
    a = argument(builder)
    condition = builder.compare("slt", a, builder.i64(3))

    def branch() -> list[Value]:
        return [builder.pure(f"arith.remsi {a.name}, {a.name} : i64", "i64", (a,), floor=builder.level)]

    builder.if_else(condition, branch, lambda: [a])
    text = lines(builder)
    start = next(i for i, line in enumerate(text) if "scf.if" in line)
    assert any("remsi" in line for line in text[start:])
    # A region that is closed is forgotten: its values cannot be used outside.
    assert builder.pure(f"arith.remsi {a.name}, {a.name} : i64", "i64", (a,)).level == 0


def test_reads_are_reused_until_memory_may_have_changed() -> None:
    builder = LoopBuilder()
    pointer = argument(builder, "!llvm.ptr")
    text = f"llvm.load {pointer.name} : !llvm.ptr -> f32"
    first = builder.read(text, "f32", (pointer,), floor=0)
    assert builder.read(text, "f32", (pointer,), floor=0) is first
    builder.forget_reads()
    assert builder.read(text, "f32", (pointer,), floor=0) is not first


def test_reads_do_not_rise_above_their_floor() -> None:
    builder = LoopBuilder()
    pointer = argument(builder, "!llvm.ptr")
    with builder.loop(builder.i64(0), builder.i64(8), builder.i64(1)):
        floor = builder.level
        with builder.loop(builder.i64(0), builder.i64(8), builder.i64(1)):
            value = builder.read(
                f"llvm.load {pointer.name} : !llvm.ptr -> f32", "f32", (pointer,), floor=floor
            )
    assert value.level == 1


@pytest.mark.parametrize(
    ("operation", "left", "right", "result"),
    [
        ("add", 3, 4, 7),
        ("mul", 3, 4, 12),
        ("sub", 3, 4, -1),
        ("mul", 0, 9, 0),
        ("add", 2**63 - 1, 1, -(2**63)),
    ],
)
def test_constants_fold_and_wrap(operation: str, left: int, right: int, result: int) -> None:
    builder = LoopBuilder()
    assert getattr(builder, operation)(builder.i64(left), builder.i64(right)).constant == result


def test_neutral_constants_vanish() -> None:
    builder = LoopBuilder()
    a, zero, one = argument(builder), builder.i64(0), builder.i64(1)
    assert builder.add(a, zero) is a
    assert builder.add(zero, a) is a
    assert builder.sub(a, zero) is a
    assert builder.mul(a, one) is a
    assert builder.mul(one, a) is a
    assert builder.mul(a, zero).constant == 0
    true = builder.constant(1, "i1")
    condition = builder.compare("slt", a, one)
    assert builder.logical_and(true, condition) is condition
    assert builder.select(true, a, one) is a
    assert builder.compare("sle", one, one).constant == 1


def test_constants_are_written_once_at_the_entry() -> None:
    builder = LoopBuilder()
    with builder.loop(builder.i64(0), builder.i64(8), builder.i64(1)):
        assert builder.constant(2.5, "f32").level == 0
        assert builder.constant(2.5, "f32") is builder.constant(2.5, "f32")
        assert builder.constant(2.5, "vector<4xf32>").type == "vector<4xf32>"
    assert sum("0x40200000" in line for line in lines(builder)) == 2


def test_conditions_known_at_compile_time_leave_one_branch() -> None:
    builder = LoopBuilder()
    a, b = argument(builder), argument(builder)
    assert builder.if_else(builder.constant(1, "i1"), lambda: [a], lambda: [b]) == [a]
    assert builder.if_else(builder.constant(0, "i1"), lambda: [a], lambda: [b]) == [b]
    assert builder.if_else(builder.constant(0, "i1"), lambda: [a]) == []


def test_loops_and_conditions_carry_values_in_valid_text() -> None:
    builder = LoopBuilder()
    zero, one, eight = (builder.i64(n) for n in (0, 1, 8))
    start = builder.constant(0.0, "f32")
    with builder.loop(zero, eight, one, [start, zero]) as loop:
        count = builder.add(loop.arguments[1], one)
        odd = builder.compare("eq", loop.induction, one)
        total = builder.binary("arith.addf", loop.arguments[0], builder.constant(1.5, "f32"))
        (chosen,) = builder.if_else(odd, lambda: [total], lambda: [loop.arguments[0]])
        loop.yields = [chosen, count]
    assert [value.type for value in loop.results] == ["f32", "i64"]
    body = "\n".join(builder.text())
    module = mlir.parse_module(f"llvm.func @f() {{\n{body}\nllvm.return\n}}")
    assert module.operation.verify()


def test_address_adds_invariant_terms_first() -> None:
    builder = LoopBuilder()
    base, offset = argument(builder, "!llvm.ptr"), argument(builder)
    with builder.loop(builder.i64(0), builder.i64(8), builder.i64(1)) as loop:
        pointer = builder.address(base, [loop.induction, builder.i64(0), offset], "f32")
    text = lines(builder)
    outer = next(line for line in text if "getelementptr" in line)
    assert offset.name in outer
    assert pointer.level == 1
    assert sum("getelementptr" in line for line in text) == 2


def test_low_bits_that_are_known_are_constants() -> None:
    builder = LoopBuilder()
    even = builder.mul(argument(builder), builder.i64(4))
    for index, mask, known in (
        (even, 1, 0),
        (even, 3, 0),
        (even, 7, None),
        (builder.add(even, builder.i64(3)), 1, 1),
    ):
        assert builder.binary("arith.andi", index, builder.i64(mask)).constant == known
    assert builder.binary("arith.andi", argument(builder), builder.i64(1)).constant is None


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, 1e-310, 3.4028234663852886e38])
@pytest.mark.parametrize(("type", "code"), [("f32", "<f"), ("f64", "<d")])
def test_float_literals_keep_every_bit(value: float, type: str, code: str) -> None:
    bits = int(float_literal(value, type), 16)
    packed = struct.pack(code, value)
    assert bits == int.from_bytes(packed, "little")


def test_text_needs_closed_regions() -> None:
    builder = LoopBuilder()
    builder.open()
    with pytest.raises(AssertionError, match="left open"):
        builder.text()
