"""Hints for LLVM about single loops, from the kernel to LLVM IR.

Triton puts them on `scf` loops as the attribute ``llvm.loop_annotation`` (`tl.range(disable_licm=True)`,
`tl.condition`). MLIR hands that to the branch back to the loop's head, but translates it to LLVM IR only
under the branch's own name for it.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.toolchain import mlir

ANNOTATION = "llvm.loop_annotation"
"""The attribute of a loop that has hints."""

FLAG = "tpk.loop_hints"
"""Unit attribute of a loops module that has such loops: all others need not be searched for them."""


def annotate_branches(module: Any) -> None:
    """Make hints visible to the translation of `module`, which is in the LLVM dialect, in place."""
    if FLAG not in module.operation.attributes:
        return
    del module.operation.attributes[FLAG]

    def visit(operation: Any) -> Any:
        attributes = operation.attributes
        if operation.name in ("llvm.br", "llvm.cond_br") and ANNOTATION in attributes:
            attributes["loop_annotation"] = attributes[ANNOTATION]
            del attributes[ANNOTATION]
        return mlir.ir.WalkResult.ADVANCE

    module.operation.walk(visit)
