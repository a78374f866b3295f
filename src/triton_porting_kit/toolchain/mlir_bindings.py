"""Where the MLIR Python bindings are installed, found without loading them.

``mlir`` (conda-forge, or the project's own index) is used if present, else the complete copy in the ``numba-cuda-mlir``
wheel. Only the bindings are loaded from that wheel: importing its own package would also load Numba's CUDA front end
(0.8 s).
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from triton_porting_kit.errors import ToolchainError

_CARRIER = "numba_cuda_mlir"


class _DeferredModule(ModuleType):
    """A module whose body runs only when an attribute is accessed. The sub-modules of a package can be imported."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__version__", "__all__"):
            raise AttributeError(name)
        spec = self.__spec__
        assert spec is not None
        assert spec.loader is not None
        self.__class__ = ModuleType  # type: ignore[assignment]
        spec.loader.exec_module(self)
        return getattr(self, name)


def _defer(name: str) -> bool:
    """Put a module into ``sys.modules`` without running it; returns whether there is one of that name."""
    if name in sys.modules:
        return True
    spec = importlib.util.find_spec(name)
    if spec is None:
        return False
    module = _DeferredModule(name)
    module.__spec__, module.__loader__, module.__package__ = spec, spec.loader, spec.parent
    module.__file__ = spec.origin
    if spec.submodule_search_locations is not None:
        module.__path__ = spec.submodule_search_locations
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
    return True


@functools.cache
def root() -> str:
    """The name of the package that holds the bindings. Raises `ToolchainError` where there is none."""
    try:
        if importlib.util.find_spec("mlir.ir") is not None:
            return "mlir"
    except ModuleNotFoundError:
        pass
    if not _defer(_CARRIER):
        raise ToolchainError(
            "the MLIR Python bindings are not installed: neither `mlir` nor `numba-cuda-mlir` was found; "
            "run `pip install numba-cuda-mlir`"
        )
    return f"{_CARRIER}._mlir"


def open_library() -> None:
    """Open the library of MLIR so that its functions are bound when they are first called.

    Importing the bindings would bind all of them, which takes half as long again: 20 ms more. The library stays open.
    Where it is not found or does not open, the import says why.
    """
    package = importlib.util.find_spec(f"{root()}._mlir_libs")
    folders = package.submodule_search_locations if package is not None else None
    for path in (path for folder in folders or () for path in Path(folder).glob("libMLIRPythonCAPI.so*")):
        ctypes.CDLL(None).dlopen(os.fsencode(path), os.RTLD_LAZY)  # ctypes.CDLL binds at once


def defer_dialects(upstream: Iterable[str], others: Iterable[str]) -> None:
    """Keep the bindings from loading the Python modules of dialects, which takes longer than compiling a kernel.

    The bindings import the module of a dialect for the first operation of it that they return: 0.2 s for linalg alone.
    The kit creates and reads operations by their names, so modules of `upstream` dialects are loaded only when somebody
    uses them. For `others`, which have none, the bindings would search the disk at every operation.
    """
    for name in upstream:
        _defer(f"{root()}.dialects.{name}")
    for name in others:
        sys.modules.setdefault(f"{root()}.dialects.{name}", ModuleType(f"{root()}.dialects.{name}"))


def version() -> str:
    """The name and release of the bindings, e.g. ``numba-cuda-mlir 0.6.0``."""
    from importlib import metadata

    distribution = "mlir" if root() == "mlir" else "numba-cuda-mlir"
    try:
        return f"{distribution} {metadata.version(distribution)}"
    except metadata.PackageNotFoundError:
        return f"{distribution} (release unknown)"
