"""Names that are loaded from their modules when they are first used: those of packages, and functions of tables.

``import triton`` loads every registered backend, and a kernel that is in the cache needs little of them.
"""

from __future__ import annotations

import gc
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


def function(module: str, name: str) -> Callable[..., Any]:
    """The function of that name in a module below ``triton_porting_kit``, which is imported when it is first called.

    For tables of which a kernel needs little: the rest of the modules costs a tenth of a first compilation.
    """

    def call(*arguments: Any) -> Any:
        return getattr(importlib.import_module(f"triton_porting_kit.{module}"), name)(*arguments)

    call.__name__ = call.__qualname__ = name
    call.__module__ = f"triton_porting_kit.{module}"
    return call


def load(*modules: str) -> None:
    """Import modules below ``triton_porting_kit`` without collecting garbage meanwhile.

    Imports make many objects and hardly any garbage, and a collection looks at everything that the process has
    imported: 30 ms after ``import triton``.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        for module in modules:
            importlib.import_module(f"triton_porting_kit.{module}")
    finally:
        if collects:
            gc.enable()
