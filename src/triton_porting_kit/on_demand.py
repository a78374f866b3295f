"""Packages whose public names are loaded from their modules when they are first used.

``import triton`` loads every registered backend, and a kernel that is in the cache needs little of them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def names_of(package: str, where: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package, which imports a public name from where it is defined.

    `where` gives the module of each name, below ``triton_porting_kit``; ``MODULE:NAME`` if the name differs there; and
    nothing for a module of the package.
    For type checkers, the package imports the same names if ``TYPE_CHECKING``; a test compares the two.
    """

    def __getattr__(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not where[name]:
            return importlib.import_module(f"{package}.{name}")
        module, _, other = where[name].partition(":")
        value = getattr(importlib.import_module(f"triton_porting_kit.{module}"), other or name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__
