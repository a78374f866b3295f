"""Importing Triton where a backend that is registered cannot be imported, which takes Triton with it."""

from __future__ import annotations

import os
import sys

IN_TREE = "TRITON_BACKENDS_IN_TREE"


def import_triton() -> None:
    """Import Triton into a process that supervises others, and runs no kernel itself.

    Where that fails because of a backend, Triton is imported with its own backends only: what is wrong with the judged
    one is for a worker to find out.
    """
    if "triton" in sys.modules:
        return
    before = os.environ.get(IN_TREE)
    os.environ[IN_TREE] = "1"
    try:
        import triton  # noqa: F401
    finally:
        if before is None:
            del os.environ[IN_TREE]
        else:
            os.environ[IN_TREE] = before
