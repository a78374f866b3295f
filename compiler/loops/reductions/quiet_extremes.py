"""Extremes of floats of which some may be NaN, but none a signalling one: by AVX-512's VRANGEPS.

It takes the number where one of two values is NaN, as ``arith.maxnumf`` does; other instructions take three operations
for that. But it keeps a signalling NaN. Only bit patterns from memory can be one: the results of arithmetic are quiet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Block, Def, only_operation
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.tensors import Splat

IMMEDIATE = {"arith.minnumf": 4, "arith.maxnumf": 5}
"""VRANGEPS's operand: the sign of the result, and which of both (Intel 64 and IA-32 Architectures Software Developer's
Manual, volume 2, VRANGEPS)."""

ARITHMETIC = ("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "math.fma", "linalg.matmul")
MOST_STEPS = 32
"""How many operations are looked through for where a value comes from."""


def applies(lowering: Lowering, region: Block, inputs: Sequence[Def]) -> bool:
    """Whether `extreme` combines what a reduction with this `region` reduces."""
    combines = only_operation(region)
    return (
        lowering.target.has_range
        and combines is not None
        and combines.name in IMMEDIATE
        and len(inputs) == 1
        and inputs[0].type.element == "f32"
        and _is_quiet(lowering, inputs[0])
    )


def _is_quiet(lowering: Lowering, definition: Def) -> bool:
    """Whether no element is a signalling NaN, since arithmetic or a literal that is a number makes it."""
    waiting, seen = [definition], {definition}
    while waiting:
        definition = waiting.pop()
        owner, tensor = definition.owner, lowering.tensors.get(definition)
        number = tensor.value.constant if isinstance(tensor, Splat) else None
        if isinstance(number, float) and not math.isnan(number):
            continue
        if owner is None or len(seen) > MOST_STEPS:
            return False
        if owner.name in ARITHMETIC:
            continue
        if owner.name != "arith.select":
            return False
        new = [operand for operand in owner.operands[1:] if operand not in seen]
        waiting += new
        seen.update(new)
    return True


def extreme(builder: LoopBuilder, name: str, a: Value, b: Value) -> Value:
    """The larger or smaller of two floats, as `name` says, lane by lane."""
    lanes = max(a.lanes, 4)
    a_wide, b_wide = (_widened(builder, value, lanes) for value in (a, b))
    which, type = builder.constant(IMMEDIATE[name], "i32"), a_wide.type
    every = builder.constant(-1, "i16" if lanes == 16 else "i8")
    values, kinds = [a_wide, b_wide, which, a_wide, every], [type, type, "i32", type, every.type]
    if lanes == 16:
        values.append(builder.constant(4, "i32"))  # as the rounding mode is set
        kinds.append("i32")
    names = ", ".join(value.name for value in values)
    text = f'llvm.call_intrinsic "llvm.x86.avx512.mask.range.ps.{32 * lanes}"({names}) : ({", ".join(kinds)}) -> {type}'
    result = builder.pure(text, type, tuple(values))
    return result if lanes == a.lanes else _narrowed(builder, result, a)


def _widened(builder: LoopBuilder, value: Value, lanes: int) -> Value:
    if value.lanes == lanes:
        return value
    if not value.is_vector:
        type = vector_type(value.element, lanes)
        nothing = builder.pure(f"llvm.mlir.poison : {type}", type, ())
        text = f"vector.insert {value.name}, {nothing.name} [0] : {value.type} into {type}"
        return builder.pure(text, type, (value, nothing))
    return lane_memory.shuffled(builder, value, value, [lane % value.lanes for lane in range(lanes)])


def _narrowed(builder: LoopBuilder, value: Value, like: Value) -> Value:
    if not like.is_vector:
        return builder.extract(value, 0)
    return lane_memory.shuffled(builder, value, value, list(range(like.lanes)))
