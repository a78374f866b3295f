"""The programs of a core, in kernels that loop over them themselves."""

from __future__ import annotations

from triton_porting_kit.compiler.dialect.npu import NpuProgram, NpuPrograms
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.state import program_ids

from .core import Core


def programs(lowering: Lowering, operation: Operation) -> None:
    core = lowering.part(Core)
    for result, value in zip(NpuPrograms(operation).results, core.programs, strict=True):
        lowering.scalars[result] = value


def program(lowering: Lowering, operation: Operation) -> None:
    """x fastest, as in the kernel ABI. Axes that nothing reads are left out."""
    op = NpuProgram(operation)
    axes = max((axis + 1 for axis, result in enumerate(op.results) if result.users), default=0)
    if op.current and lowering.grid.tells:
        axes = len(lowering.grid.counts)
    ids = program_ids(lowering.builder, lowering.scalar(op.program), lowering.grid.counts[:axes])
    for result, value in zip(op.results, ids, strict=False):
        lowering.scalars[result] = value
    if op.current:
        lowering.grid.program_ids = ids
