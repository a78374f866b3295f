"""Functions of tables and modules that are imported when they are needed."""

from __future__ import annotations

import gc
import importlib
import inspect
import subprocess
import sys

import pytest

from triton_porting_kit import on_demand
from triton_porting_kit.compiler.loops.handlers import HANDLERS


def test_a_function_is_imported_when_it_is_called() -> None:
    later = on_demand.function("compiler.caches", "_text")
    assert (later.__module__, later.__name__) == ("triton_porting_kit.compiler.caches", "_text")
    assert later(2048) == "2K"
    with pytest.raises(AttributeError, match="nowhere"):
        on_demand.function("compiler.caches", "nowhere")()


def test_every_handler_is_there() -> None:
    for name, handler in HANDLERS.items():
        if handler.__code__.co_filename == on_demand.__file__:
            found = getattr(importlib.import_module(handler.__module__), handler.__name__)
            assert list(inspect.signature(found).parameters) == ["lowering", "operation"], name


@pytest.mark.parametrize("collects", [True, False])
def test_loading_leaves_the_collector_as_it_was(collects: bool) -> None:
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        on_demand.load("compiler.caches")
        assert gc.isenabled() is collects
        with pytest.raises(ModuleNotFoundError):
            on_demand.load("compiler.nowhere")
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()


def test_a_small_kernel_needs_neither_products_nor_ptx() -> None:
    code = """
import sys
from triton_porting_kit.compiler.loops import kernel
import triton_porting_kit.compiler.structured
few = [name for name in sys.modules if ".loops.matmul" in name or ".compiler.ptx" in name or ".reductions" in name]
sys.exit(", ".join(few) or None)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
