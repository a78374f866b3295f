"""Lowering Triton IR: from TTIR, through the structured form and loops, to object code."""
