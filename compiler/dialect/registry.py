"""All operations of the dialect, whichever module declares them."""

from __future__ import annotations

from typing import Any

from . import npu, operations
from .schema import Op, all_of

MODULES = (operations, npu)
"""The modules that declare operations: importing them makes `Op` know its subclasses."""

OPERATIONS: dict[str, type[Op[Any]]] = {
    cls.OPERATION_NAME: cls for module in MODULES for cls in all_of(Op) if cls.__module__ == module.__name__
}
"""Every operation of the dialect by name, in the order of the docs."""
