"""Barriers in long chains of element-wise operations, for IREE.

Its pass `iree-codegen-rematerialize-parallel-ops` puts each of them, and all that it is computed from, into everything
that reads its result. Where results are read more than once, as in each step of a sort, the code grows exponentially.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.toolchain.mlir import ir

LONGEST = 6
"""Operations of a chain before a result that is read more than once gets a barrier."""
_FUSED = frozenset({"linalg.generic", "linalg.broadcast", "linalg.transpose"})
_PASSED = frozenset({"tensor.collapse_shape", "tensor.expand_shape"})


def insert_barriers(module: Any) -> None:
    """End chains of element-wise operations by IREE's `iree_codegen.fusion_barrier`."""
    lengths: dict[Any, int] = {}
    for view in module.body.operations:
        for region in view.operation.regions:
            for block in region.blocks:
                _block(block, lengths)


def _block(block: Any, lengths: dict[Any, int]) -> None:
    operations = [view.operation for view in block.operations]
    for operation, following in zip(operations, [*operations[1:], None], strict=True):
        if operation.name in _FUSED or operation.name in _PASSED:
            length = max((lengths.get(value, 0) for value in operation.operands), default=0)
            result = operation.results[0]
            lengths[result] = length + (operation.name in _FUSED)
            if lengths[result] >= LONGEST and _is_read_again(result):
                _separate(result, following)
        elif not operation.name.startswith("linalg."):
            for region in operation.regions:
                for inner in region.blocks:
                    _block(inner, lengths)


def _is_read_again(value: Any) -> bool:
    """Whether a tensor of numbers is read more than once. IREE makes bytes of booleans in `linalg.generic` alone."""
    return not str(value.type).endswith("xi1>") and len(list(value.uses)) > 1


def _separate(value: Any, following: Any) -> None:
    barrier = ir.Operation.create(
        "iree_codegen.fusion_barrier",
        results=[value.type],
        operands=[value],
        loc=following.location,
        ip=ir.InsertionPoint(following),
    )
    value.replace_all_uses_except(barrier.result, barrier)
