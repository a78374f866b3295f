"""Triton Porting Kit: what it takes to bring OpenAI's Triton to a new chip.

The packages: `compiler`, `launcher` and `driver` are the three parts of a backend as libraries;
`backends` holds the references made from them; `kernels` the kernels that demo, tests and
benchmarks share; `toolchain` the one door to each foreign library (Triton, MLIR, LLVM).
"""

import contextlib
import os as _os

__version__ = "0.1.0"

# Triton imports every registered backend, the kit's among them, while it is itself being imported. Started from
# here, that happens before any room of the kit is half imported. What is wrong with a Triton that does not
# import is for whoever needs it to say (`tpk doctor` does).
with contextlib.suppress(Exception):
    import triton as _triton  # noqa: F401

# Before a program has a device: its memory is watched from the start.
if _os.environ.get("TPK_CAPTURE"):
    from triton_porting_kit.replay import recording as _recording

    _recording.start()
