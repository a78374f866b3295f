"""Loads mutated modules in processes that import the kit, without changing installed files.

This module must not import the kit: processes that checks start load it by path.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

VARIABLE = "TPK_MUTANT"
"""The environment variable with the path of a JSON file that maps modules to files, for processes that checks start."""

_CUSTOMIZE = """# Installs mutated modules in a process that a check starts, then runs the next `sitecustomize`, if any.
import importlib.machinery, importlib.util, os, sys

def _run(spec):
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

# Loaded by path: importing the kit imports Triton, and Triton imports the modules to replace.
_run(importlib.util.spec_from_file_location("_tpk_loading", {loading!r})).install_from_environment()
_here = os.path.dirname(os.path.abspath(__file__))
_next = importlib.machinery.PathFinder.find_spec(
    "sitecustomize", [path for path in sys.path if os.path.abspath(path) != _here]
)
if _next is not None and _next.loader is not None:
    _run(_next)
"""


class MutantFinder(MetaPathFinder):
    """Finds modules at their usual places, but loads them from other files."""

    def __init__(self, replaced: Mapping[str, Path]) -> None:
        """`replaced`: by module name, the path of a Python source or of an extension module."""
        self._replaced = replaced

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._replaced:
            return None
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(fullname, path, target)) is not None:
                break
        else:
            return None
        file = self._replaced[fullname]
        if file.suffix == ".py":
            assert spec.origin is not None
            spec.loader = _Changed(fullname, spec.origin, file)
        else:
            spec.loader, spec.origin = ExtensionFileLoader(fullname, str(file)), str(file)
        return spec


class _Changed(SourceFileLoader):
    """Loads a module under the path of its original file, so that stack traces and `inspect` show that file."""

    def __init__(self, name: str, origin: str, file: Path) -> None:
        super().__init__(name, origin)
        self._file = file

    def get_code(self, fullname: str) -> CodeType:
        code = compile(self._file.read_bytes(), self.path, "exec", dont_inherit=True)
        assert isinstance(code, CodeType)
        return code


def install(replaced: Mapping[str, Path]) -> None:
    """Replace these modules in later imports of this process. None of them may be loaded already."""
    loaded = [name for name in replaced if name in sys.modules]
    assert not loaded, f"{loaded} cannot be changed any more"
    sys.meta_path.insert(0, MutantFinder(replaced))


def prepare(replaced: Mapping[str, Path], folder: Path) -> dict[str, str]:
    """The environment variables that make a process load these modules replaced. `folder`: a private folder."""
    (folder / "sitecustomize.py").write_text(_CUSTOMIZE.format(loading=__file__))
    order = folder / "modules.json"
    order.write_text(json.dumps({name: str(path) for name, path in replaced.items()}))
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    return {VARIABLE: str(order), "PYTHONPATH": path}


def install_from_environment() -> None:
    """Install the replacements that `VARIABLE` names, if it is set."""
    order = os.environ.get(VARIABLE)
    if order:
        install({name: Path(path) for name, path in json.loads(Path(order).read_text()).items()})
