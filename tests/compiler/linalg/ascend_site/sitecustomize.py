"""With this folder on PYTHONPATH, every Python process gives kernels of the CPU backend to `ascend_launcher`."""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

DRIVER = "triton_porting_kit.backends.cpu.driver"


class Finder(importlib.abc.MetaPathFinder):
    """Finds the CPU driver once, to change its launcher after it is loaded."""

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
            import ascend_launcher

            ascend_launcher.install(Path(os.environ["TPK_ASCEND_MODULES"]))

        spec.loader.exec_module = load_and_change  # type: ignore[method-assign]
        return spec


if "TPK_ASCEND" in os.environ:
    sys.meta_path.insert(0, Finder())
