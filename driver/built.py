"""Refuses compiled devices that were built with another version of the kit's device interface."""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES

from triton_porting_kit import __version__
from triton_porting_kit.abi.launching import BUILT_WITH, DEVICE_INTERFACE
from triton_porting_kit.errors import BuiltWithAnotherKit


def check_built(package: str) -> None:
    """Check the device classes of a package's loaded modules, which `tpk::bindHooks` marks. Raises
    `BuiltWithAnotherKit`.

    Classes that are bound otherwise have no mark and are not checked.
    """
    # `copy` cannot be interrupted; the list of the items can, by a finalizer that imports.
    for name, module in sys.modules.copy().items():
        path = getattr(module, "__file__", None) or ""
        if name.partition(".")[0] != package or not path.endswith(tuple(EXTENSION_SUFFIXES)):
            continue
        for value in list(vars(module).values()):
            mark = vars(value).get(BUILT_WITH) if isinstance(value, type) else None
            if mark is not None and mark[0] != DEVICE_INTERFACE:
                raise BuiltWithAnotherKit(name, (mark[0], DEVICE_INTERFACE), mark[1], __version__)
