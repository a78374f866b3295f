"""Calls a function after a module has been imported."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_calls: dict[str, list[Callable[[], object]]] = {}


def after_import(name: str, call: Callable[[], object]) -> None:
    """Call a function right after the import of a module, or now if it has been imported."""
    if name in sys.modules:
        call()
        return
    if _Finder.instance not in sys.meta_path:
        sys.meta_path.insert(0, _Finder.instance)
    _calls.setdefault(name, []).append(call)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds no module itself: it lets the others find those of `_calls`, and replaces the loader."""

    instance: _Finder

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in _calls:
            return None
        calls = _calls.pop(name)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, calls)  # type: ignore[assignment]
        return spec


_Finder.instance = _Finder()


class _Loader:
    """A loader that calls functions after the module's code has run."""

    def __init__(self, loader: Any, calls: list[Callable[[], object]]) -> None:
        self._loader = loader
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        for call in self._calls:
            call()
