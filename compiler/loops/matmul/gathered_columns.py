"""Right operands whose columns lie in memory, each at a place of its own, as keys of a paged cache.

Row by row, each element would be gathered. Instead, the product reads several elements of each column at a time and
transposes them in registers, as `transposed` does for operands that are one matrix in memory.
"""

from __future__ import annotations

from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.tiles.explicit import Gather
from triton_porting_kit.compiler.loops.tiles.tensors import Tensor
from triton_porting_kit.compiler.loops.tiles.transposed import lies_across, reads_along


def gathers_columns(lowering: Lowering, operation: Operation, tensor: Tensor) -> bool:
    """Whether to read the right operand of an `operation` in transposed blocks, although its columns are gathered.

    If so, this writes offsets that are expensive to compute to scratch.
    """
    rows = len(tensor.shape) - 2
    columns = [
        (part, dimension)
        for part, dimension in reads_along(tensor, rows)
        if isinstance(part, Gather) and part.is_contiguous(lowering.builder, dimension)
    ]
    if not columns or not lies_across(tensor, lowering.target, columns):
        return False
    if any(lowering.needed_after(part, operation) for part, _ in columns):
        return False  # then it is gathered once, for all uses
    for part, _ in columns:
        lowering.plan(operation, part.shape, part.operands)
    return True
