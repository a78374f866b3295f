"""From the structured form to explicit loops over tiles, in upstream MLIR (scf, arith, vector, llvm)."""

from triton_porting_kit.compiler.loops.kernel import LoopsResult, lower_to_loops

__all__ = ["LoopsResult", "lower_to_loops"]
