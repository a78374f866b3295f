"""Opening the library of MLIR on a thread of its own, while this one parses the kernel.

The library has many relocations and constructors: opening it takes as long as compiling a small kernel, but Python can
go on meanwhile. Its bindings are imported as ever, and then find the library open.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import os
import threading
from pathlib import Path

from triton_porting_kit.errors import ToolchainError
from triton_porting_kit.toolchain import mlir_bindings

_LIBRARY = "libMLIRPythonCAPI.so*"


@functools.cache
def open_mlir() -> None:
    """Begin to open the library of MLIR, once in a process; return at once.

    Where it cannot be found or opened, importing the bindings says why.
    """
    path = _library()
    if path is None:
        return
    thread = threading.Thread(target=_open, args=(path,), name="tpk-open-mlir")
    thread.start()
    # A forked child has no such thread, and would find the library half open.
    os.register_at_fork(before=thread.join)


def _library() -> Path | None:
    try:
        package = importlib.util.find_spec(f"{mlir_bindings.root()}._mlir_libs")
    except (ToolchainError, ImportError):
        return None
    folders = package.submodule_search_locations if package is not None else None
    return next((path for folder in folders or () for path in sorted(Path(folder).glob(_LIBRARY))), None)


def _open(path: Path) -> None:
    """Open it so that functions are bound when they are first called: at once, that takes a third of the time.

    It stays open. As a foreign function, ``dlopen`` is called without the GIL; by ``ctypes.CDLL``, with it.
    """
    with contextlib.suppress(AttributeError):  # there is no such function
        ctypes.CDLL(None).dlopen(os.fsencode(path), os.RTLD_LAZY)
