"""Triton Porting Kit: libraries and tools to bring OpenAI's Triton to a new chip.

The packages: `compiler`, `launcher` and `driver` are the three parts of a backend as libraries;
`backends` contains reference backends made from them; `kernels` the kernels that demo, tests and
benchmarks share; `toolchain` the only interface to other libraries (Triton, MLIR, LLVM).
"""

import contextlib
import os as _os

__version__ = "0.1.0"

# While Triton is being imported, it imports every registered backend, including the kit's. Importing Triton first
# ensures that this happens before any other module of the kit is partly imported. An error is ignored here: code that
# needs Triton, and `tpk doctor`, report it.
with contextlib.suppress(Exception):
    import triton as _triton  # noqa: F401

# Before the program opens a device, so that all its allocations are tracked.
if _os.environ.get("TPK_CAPTURE"):
    from triton_porting_kit.replay import recording as _recording

    _recording.start()
