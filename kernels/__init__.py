"""Real Triton kernels that the demo, the tests and the benchmarks share."""
