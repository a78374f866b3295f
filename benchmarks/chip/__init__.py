"""Triton's kernels on the chip n1 beside kernels that are written by hand in C (``python -m benchmarks.chip``)."""
