"""Real Triton kernels that the demo, the tests and the benchmarks share.

One module per kernel, with the kernel and a host function for device arrays and torch tensors: `vector_add`,
`softmax`, `matmul`, `giou`, `layer_norm`, `dropout`, `gelu`, `attention`, `rows` (running sums, sorting).
`references` has what they should compute, `tolerances` how far off they may be, `cases` puts these together, and
`peers` does the same in NumPy and torch.
"""
