"""What the generated code depends on beside the kernel: part of every cache key."""

from __future__ import annotations

import functools


@functools.cache
def toolchain_versions() -> str:
    """Releases of the MLIR bindings and of LLVM, e.g. ``mlir 0.6.0, llvmlite 0.50.0 (LLVM 22.1.0)``."""
    from triton_porting_kit.toolchain import llvm, mlir  # not before a kernel is compiled

    return f"{mlir.version()}, llvmlite {llvm.version()}"
