"""Loading the user's file or module, and finding a kernel in it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from triton_porting_kit.cli.errors import UserError


def split_reference(reference: str) -> tuple[str, str]:
    """``FILE:KERNEL`` as (file, kernel); the kernel is empty if none is named."""
    place, colon, name = reference.rpartition(":")
    return (place, name) if colon else (reference, "")


def load(place: str) -> ModuleType:
    """Execute a Python file, or import a module by its dotted name. All its exceptions become `UserError`."""
    path = Path(place)
    try:
        if path.is_file():
            return _load_file(path.resolve())
        if path.suffix == ".py" or "/" in place or not _is_module(place):
            raise UserError(f"there is no file {place}" + ("/ (it is a folder)" if path.is_dir() else ""))
        sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(place)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(
            f"{place} cannot be loaded: {_where(error)}{type(error).__name__}: {error}"
        ) from error


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _load_file(path: Path) -> ModuleType:
    # A file of a package is imported as a submodule, so that its relative imports work.
    package: list[str] = []
    folder = path.parent
    while (folder / "__init__.py").exists() and folder.name.isidentifier():
        package.insert(0, folder.name)
        folder = folder.parent
    sys.path.insert(0, str(folder))
    name = ".".join([*package, path.stem])
    if package:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path} is not a Python file (its name should end in .py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _where(error: BaseException) -> str:
    """The place in the user's files where an exception was raised; empty for a syntax error."""
    if isinstance(error, SyntaxError):
        return ""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    return f"{frames[-1].filename}:{frames[-1].lineno}: " if len(frames) > 2 else ""


def find_kernel(module: ModuleType, name: str, place: str) -> Any:
    """The `JITFunction` called `name`, without autotuners and heuristics around it.

    Raises `UserError` with a list of the module's kernels.
    """
    found = kernels(module)
    if name in found:
        return found[name]
    listing = ", ".join(found) or "none (a kernel is a function with @triton.jit)"
    if not name:
        raise UserError(f"name a kernel, as in {place}:KERNEL; the kernels are {listing}")
    known = "is not a kernel" if hasattr(module, name) else "is not defined"
    raise UserError(f"{place}: {name} {known}; the kernels are {listing}")


def kernels(module: ModuleType) -> dict[str, Any]:
    """The kernels that a module defines or imports, its own first."""
    from triton.runtime.jit import JITFunction

    found = {}
    for name, value in vars(module).items():
        while not isinstance(value, JITFunction) and hasattr(value, "fn"):
            value = value.fn
        if isinstance(value, JITFunction):
            found[name] = value
    own = {name: kernel for name, kernel in found.items() if kernel.fn.__module__ == module.__name__}
    return own | found
