"""From the structured form to explicit loops over tiles, in upstream MLIR (scf, arith, vector, llvm)."""
