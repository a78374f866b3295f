"""Where pure operations, reads and constants are placed, and what is written once."""

from __future__ import annotations

import pytest

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value


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


def test_constants_are_written_once_at_the_entry() -> None:
    builder = LoopBuilder()
    with builder.loop(builder.i64(0), builder.i64(8), builder.i64(1)):
        assert builder.constant(2.5, "f32").level == 0
        assert builder.constant(2.5, "f32") is builder.constant(2.5, "f32")
        assert builder.constant(2.5, "vector<4xf32>").type == "vector<4xf32>"
    assert sum("0x40200000" in line for line in lines(builder)) == 2


def test_text_needs_closed_regions() -> None:
    builder = LoopBuilder()
    builder.open()
    with pytest.raises(AssertionError, match="left open"):
        builder.text()
