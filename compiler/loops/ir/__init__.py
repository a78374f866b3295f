"""What the lowering reads and writes: the structured form as Python objects, and loop-level MLIR as text."""
