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


class Chains:
    """The chains of element-wise operations of a module, which is walked through in the order of the program."""

    def __init__(self) -> None:
        self._lengths: dict[Any, int] = {}
        self._ends: list[Any] = []

    def visit(self, operation: Any) -> None:
        """Note how long a chain an operation ends."""
        counts = operation.name in _FUSED
        if not counts and operation.name not in _PASSED:
            return
        length = counts + max((self._lengths.get(value, 0) for value in operation.operands), default=0)
        result = operation.results[0]
        if length >= LONGEST and _is_read_again(result):
            self._ends.append(operation)
            length = 0
        self._lengths[result] = length

    def separate(self) -> None:
        """End long chains by IREE's `iree_codegen.fusion_barrier`."""
        for operation in self._ends:
            value = operation.results[0]
            barrier = ir.Operation.create(
                "iree_codegen.fusion_barrier",
                results=[value.type],
                operands=[value],
                loc=operation.location,
                ip=ir.InsertionPoint.after(operation),
            )
            value.replace_all_uses_except(barrier.result, barrier)


def _is_read_again(value: Any) -> bool:
    """Whether a tensor of numbers is read more than once. IREE makes bytes of booleans in `linalg.generic` alone."""
    return not str(value.type).endswith("xi1>") and len(list(value.uses)) > 1
