"""Values as the bits that intrinsics pass, and back."""

from __future__ import annotations

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.tiles import lane_memory


def to_bits(builder: LoopBuilder, value: Value) -> Value:
    """A scalar's bits as i64."""
    if value.type == "!llvm.ptr":
        return builder.cast("llvm.ptrtoint", value, "i64")
    if types.is_float(value.type):
        value = builder.cast("arith.bitcast", value, f"i{types.BITS[value.type]}")
    return builder.cast("arith.extui", value, "i64")


def from_bits(builder: LoopBuilder, bits: Value, element: str) -> Value:
    """The scalar of an element type, as it is in registers, whose bits are the lowest of an i64."""
    if element == "!llvm.ptr":
        return builder.cast("llvm.inttoptr", bits, element)
    stored = builder.cast("arith.trunci", bits, f"i{types.BITS[element]}")
    return lane_memory.from_storage(builder, stored, element)


def line_of(builder: LoopBuilder, operation: Operation) -> Value:
    """The kernel's line of an operation as i32; 0 if it is not known."""
    place = operation.location
    return builder.constant(0 if place is None else place.line, "i32")
