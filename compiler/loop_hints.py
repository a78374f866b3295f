"""Loop hints for LLVM, passed from the kernel to LLVM IR.

Triton attaches them to `scf` loops as the attribute ``llvm.loop_annotation`` (`tl.range(disable_licm=True)`,
`tl.condition`). MLIR passes it to the branch back to the loop's header, but translates it to LLVM IR only under the
name that the branch operation has for it.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.toolchain import mlir

ANNOTATION = "llvm.loop_annotation"
"""The attribute of a loop that has hints."""

FLAG = "tpk.loop_hints"
"""Unit attribute of a loops module that has such loops. Modules without it need not be searched."""


def annotate_branches(module: Any) -> None:
    """Rename the hints in `module`, which is in the LLVM dialect, so that they are translated to LLVM IR; in place."""
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
