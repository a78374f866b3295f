"""Importing Triton even if a registered backend cannot be imported, which makes the import of Triton fail."""

from __future__ import annotations

import os
import sys

IN_TREE = "TRITON_BACKENDS_IN_TREE"


def import_triton() -> None:
    """Import Triton in a process that supervises others and runs no kernel itself.

    Triton is imported with its in-tree backends only, because importing a broken backend would make the import fail.
    Workers import the judged backend and report its errors.
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
