"""Input and output of the lowering: the structured form as Python objects, and loop-level MLIR as text."""
