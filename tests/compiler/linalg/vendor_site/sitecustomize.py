"""With this folder on PYTHONPATH, every Python process launches kernels of the CPU backend by a vendor's compiler.

TPK_IREE or TPK_ASCEND is the folder of an environment with the vendor's wheels, and TPK_IREE_MODULES or
TPK_ASCEND_MODULES the folder of what is compiled.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

DRIVER = "triton_porting_kit.backends.cpu.driver"
LAUNCHERS = {"TPK_IREE": "iree_launcher", "TPK_ASCEND": "ascend_launcher"}


class Finder(importlib.abc.MetaPathFinder):
    """Finds the CPU driver once, to change its launcher after it is loaded."""

    def __init__(self, vendor: str) -> None:
        self._vendor = vendor

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != DRIVER:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def load_and_change(module: Any) -> None:
            load(module)
            launcher = importlib.import_module(LAUNCHERS[self._vendor])
            launcher.install(Path(os.environ[f"{self._vendor}_MODULES"]))

        spec.loader.exec_module = load_and_change  # type: ignore[method-assign]
        return spec


for _vendor in LAUNCHERS:
    if _vendor in os.environ:
        sys.meta_path.insert(0, Finder(_vendor))
# IREE's runtime is called in this process; AscendNPU-IR's programs are processes of their own.
if "TPK_IREE" in os.environ:
    sys.path += [str(path) for path in Path(os.environ["TPK_IREE"]).glob("lib/python*/site-packages")]
