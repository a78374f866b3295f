"""``tpk.atomic_poll``: wait until memory holds the expected value, or until a timeout."""

from __future__ import annotations

from collections.abc import Callable

from triton_porting_kit.abi.kernel import CLOCK
from triton_porting_kit.compiler.dialect.operations import AtomicPoll
from triton_porting_kit.compiler.loops.ir import element_types
from triton_porting_kit.compiler.loops.ir.program import Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory import atomics, ordered

Read = Callable[[Value, str], Value]
"""Reads an element: its address, and the type that it has in memory."""


def poll(lowering: Lowering, operation: Operation) -> None:
    """Poll element by element, each read at least once. The result is whether the expected value was found."""

    def read(pointer: Value, stored: str) -> Value:
        text = f"llvm.load volatile {pointer.name}{ordered.suffix(operation, stored)} : !llvm.ptr -> {stored}"
        found = lowering.builder.effect(text, stored)
        assert found is not None
        return found

    poll_by(lowering, operation, AtomicPoll(operation), read)


def poll_by(lowering: Lowering, operation: Operation, op: AtomicPoll[Def], read: Read) -> None:
    """Poll with a function that reads one element."""
    limit = op.timeout
    builder = lowering.builder
    start = None if limit is None else lowering.data.call(CLOCK, [], "i64")

    def wait(pointer: Value, values: list[Value]) -> Value:
        (wanted,) = values
        stored = element_types.storage(wanted.type)
        builder.open()
        found = read(pointer, stored)
        same = builder.compare("eq", found, wanted)
        done = same
        if start is not None:
            assert limit is not None
            now = lowering.data.call(CLOCK, [], "i64")
            assert now is not None
            late = builder.compare("uge", builder.sub(now, start), lowering.scalar(limit))
            done = builder.binary("arith.ori", same, late)
        again = builder.binary("arith.xori", done, builder.constant(1, "i1"))
        builder.line(f"scf.condition({again.name}) {same.name} : i1")
        lines = builder.close()
        builder.open()
        seen = builder.fresh("i1")
        builder.line("scf.yield")
        lines += ["} do {", f"^bb0({seen.name}: i1):", *builder.close()]
        return builder.region_operation("scf.while : () -> i1 {", ["i1"], lines)[0]

    atomics.each(lowering, op, operation, [op.expected], None, wait)
