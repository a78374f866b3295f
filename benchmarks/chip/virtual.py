"""The chip as a device of Triton: the backend that the tests use, from the repository's folder of tests."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[2] / "tests" / "compiler" / "tiles"


def tests(module: str) -> Any:
    """A module of the tests of `compiler.tiles`."""
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    return importlib.import_module(module)
