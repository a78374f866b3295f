"""`Mode`: what the emission of element-wise operations depends on, apart from the operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.module_data import ModuleData
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.target import CpuTarget


class Mode(NamedTuple):
    """What the emission of element-wise operations depends on, apart from the operands."""

    fuse_multiply_add: bool
    has_scalef: bool
    data: ModuleData | None = None
    """Where called routines are declared. Required by functions that call the host."""
    multiplies_high: bool = False
    """Whether the target can compute the upper half of a product of lanes (`CpuTarget.multiplies_high`)."""
    divides_signed: bool = False
    """Whether lanes of i32 are best divided as doubles (`CpuTarget.divides_signed`)."""
    divides_unsigned: bool = False
    """The same of unsigned lanes."""
    divides_slowly: bool = False
    """Whether vectors of f32 are best divided by a common divisor as doubles (`CpuTarget.divides_slowly`)."""
    keeps_payloads: bool = False
    """Whether NaN in the result of arithmetic has an operand's payload (`CpuTarget.keeps_payloads`)."""

    @classmethod
    def of(cls, target: CpuTarget, data: ModuleData, *, fuse_multiply_add: bool) -> Mode:
        """The mode for a target."""
        return cls(
            fuse_multiply_add,
            target.has_scalef,
            data,
            target.multiplies_high,
            target.divides_signed,
            target.divides_unsigned,
            target.divides_slowly,
            target.keeps_payloads,
        )


Emit = Callable[[LoopBuilder, Mode, Operation, list[Value]], list[Value]]
"""Emits one operation: its results, of operands that have the same lanes."""
