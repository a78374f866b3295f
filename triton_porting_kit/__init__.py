"""Triton Porting Kit: what it takes to bring OpenAI's Triton to a new chip.

The rooms: `compiler`, `launcher` and `driver` are the three parts of a backend as libraries;
`backends` holds the references made from them; `kernels` the kernels that demo, tests and
benchmarks share; `toolchain` the one door to each foreign library (Triton, MLIR, LLVM).
"""

__version__ = "0.1.0"
