"""Opening MLIR's library on a thread while Python goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from triton_porting_kit.toolchain import preloading

OPENED = """
import os, sys, threading
from triton_porting_kit.toolchain import preloading

def threads():
    return [thread for thread in threading.enumerate() if thread is not threading.main_thread()]

def is_open():
    return "libMLIRPythonCAPI" in open("/proc/self/maps").read()

assert not is_open()
preloading.open_mlir()
"""


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", OPENED + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_library_is_opened_once_and_the_bindings_find_it() -> None:
    run("""
for thread in threads():
    thread.join()
assert is_open()
assert not [name for name in sys.modules if name.endswith("_mlir_libs")]  # no bindings yet
preloading.open_mlir()
assert not threads()
from triton_porting_kit.toolchain import mlir
assert "return" in str(mlir.parse_module("func.func @f() { return }"))
""")


def test_the_bindings_can_be_imported_meanwhile() -> None:
    run("""
from triton_porting_kit.toolchain import mlir
assert "return" in str(mlir.parse_module("func.func @f() { return }"))
""")


def test_a_process_can_fork_and_end_meanwhile() -> None:
    run("""
child = os.fork()
if child == 0:
    assert is_open()
    from triton_porting_kit.toolchain import mlir
    mlir.parse_module("func.func @f() { return }")
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
""")
    run("")


def test_a_library_that_cannot_be_opened_is_left_to_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "libMLIRPythonCAPI.so"
    broken.write_bytes(b"no library")
    for found in (broken, tmp_path / "missing.so", None):
        monkeypatch.setattr(preloading, "_library", lambda found=found: found)
        preloading.open_mlir.__wrapped__()
