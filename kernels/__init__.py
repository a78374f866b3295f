"""Real Triton kernels that the demo, the tests and the benchmarks share.

One module per kernel, with the kernel and a host function for device arrays and torch tensors: `vector_add`,
`softmax`, `matmul`, `giou`, `layer_norm`, `dropout`, `gelu`, `attention`, `rows` (running sums, sorting).
`references` computes the expected results, `tolerances` defines the allowed errors, `cases` combines both with inputs,
and `peers` has the same calculations in NumPy and torch.
"""
