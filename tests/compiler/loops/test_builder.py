"""What the builder folds, and the text of loops and conditions."""

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


@pytest.mark.parametrize(("multiple", "divisor"), [(16, 16), (16, 4), (8, 8)])
def test_exact_divisions_are_multiplied_away(multiple: int, divisor: int) -> None:
    builder = LoopBuilder()
    a = argument(builder)
    builder.aligned(a, multiple)
    assert builder.binary("arith.remui", a, builder.i64(divisor)).constant == 0
    quotient = builder.binary("arith.divui", a, builder.i64(divisor))
    assert builder.mul(quotient, builder.i64(divisor)) is a
    tripled = builder.mul(quotient, builder.i64(3 * divisor))
    assert tripled is builder.mul(a, builder.i64(3))
    assert tripled is not builder.mul(quotient, builder.i64(3))


@pytest.mark.parametrize(("multiple", "divisor"), [(8, 16), (8, 24), (4, 0), (64, -8), (1, 2)])
def test_other_divisions_are_written(multiple: int, divisor: int) -> None:
    """A multiple of 64 is none of -8, which is 2**64 - 8 here."""
    builder = LoopBuilder()
    a = argument(builder)
    builder.aligned(a, multiple)
    assert builder.binary("arith.remui", a, builder.i64(divisor)).constant is None
    quotient = builder.binary("arith.divui", a, builder.i64(divisor))
    assert builder.mul(quotient, builder.i64(48)) is not builder.mul(a, builder.i64(48))


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, 1e-310, 3.4028234663852886e38])
@pytest.mark.parametrize(("type", "code"), [("f32", "<f"), ("f64", "<d")])
def test_float_literals_keep_every_bit(value: float, type: str, code: str) -> None:
    bits = int(float_literal(value, type), 16)
    packed = struct.pack(code, value)
    assert bits == int.from_bytes(packed, "little")
