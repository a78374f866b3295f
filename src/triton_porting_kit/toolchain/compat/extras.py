"""``triton.language.extra.<backend>`` for backends outside of Triton's wheel.

Triton's own backends have a folder there with a module `libdevice`, which libraries import by the name of the device.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType

from triton_porting_kit.toolchain.importing import after_import

_EXTRA = "triton.language.extra"

Source = Callable[[], ModuleType | None]
"""Returns the module whose functions `libdevice` has; None for a backend without such functions."""

_sources: dict[str, Source] = {}


def provide_extra(backend: str, source: Source) -> None:
    """Make ``triton.language.extra.<backend>`` importable, with the functions of `source` as its module `libdevice`.

    As for Triton's own folders, ``import triton`` is enough to name the module as an attribute. `source` is called when
    `libdevice` is first used. A folder of that name in Triton itself takes precedence.
    """
    _sources[backend] = source
    if _finder not in sys.meta_path:
        sys.meta_path.append(_finder)
    after_import(_EXTRA, partial(importlib.import_module, f"{_EXTRA}.{backend}"))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the packages of `_sources` and their modules `libdevice`. It is the last finder to be asked."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith(f"{_EXTRA}."):
            return None
        backend, _, module = name.removeprefix(f"{_EXTRA}.").partition(".")
        if backend not in _sources:
            return None
        if not module:
            return importlib.machinery.ModuleSpec(name, _Package(), is_package=True)
        if module != "libdevice" or (functions := _sources[backend]()) is None:
            return None
        return importlib.machinery.ModuleSpec(name, _Functions(functions))


_finder = _Finder()


class _Package(importlib.abc.Loader):
    """Loads a package that imports `libdevice` when it is first named: the import of Triton has to stay cheap."""

    def exec_module(self, module: ModuleType) -> None:
        def named(name: str) -> ModuleType:
            full = f"{module.__name__}.{name}"
            if name == "libdevice" and importlib.util.find_spec(full) is not None:
                return importlib.import_module(full)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        module.__getattr__ = named  # type: ignore[method-assign]
        module.__doc__ = "Functions of a backend that Triton found outside of its own package."


class _Functions(importlib.abc.Loader):
    """Loads a module with the public names of another one."""

    def __init__(self, functions: ModuleType) -> None:
        self._functions = functions

    def exec_module(self, module: ModuleType) -> None:
        contents = vars(self._functions)
        public = contents.get("__all__", [name for name in contents if not name.startswith("_")])
        vars(module).update(
            {name: getattr(self._functions, name) for name in public}, __doc__=self._functions.__doc__
        )
