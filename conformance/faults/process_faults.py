"""Faults that kill or hang the process, which the suite must survive."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from typing import Any

from triton_porting_kit.conformance.faults.fault import Apply, Table, method, rewrite

TABLE = Table()

# One or a few lines per fault.
# fmt: off

SOME = ("language/arithmetic/add-i32-tile_324",)
"""Any check that launches a kernel."""
HANGS = 10.0
"""Time limit of a check with a fault that hangs."""


def _apply(name: str, sentence: str, apply: Apply, *caught_by: str, **fields: Any) -> None:
    TABLE.add("process", name, sentence, apply, *caught_by or SOME, **fields)


def _segfault(*_: Any, **__: Any) -> Any:
    ctypes.string_at(8)


def _killed(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _abort(*_: Any, **__: Any) -> Any:
    os.abort()


def _exit(*_: Any, **__: Any) -> Any:
    os._exit(0)


def _system_exit(*_: Any, **__: Any) -> Any:
    sys.exit(0)


def _hang(*_: Any, **__: Any) -> Any:
    while True:
        time.sleep(3600)


def _hang_holding_the_lock(*_: Any, **__: Any) -> Any:
    ctypes.PyDLL(None).sleep(3600)


def _recursion(*_: Any, **__: Any) -> Any:
    sys.setrecursionlimit(1 << 30)

    def deeper(_: int) -> list[int]:
        return sorted([0], key=deeper)  # recursion through C exhausts the C stack

    deeper(0)


def _third(real: Any, self: Any, *args: Any) -> Any:
    self._fault_count = getattr(self, "_fault_count", 0) + 1
    return _segfault() if self._fault_count == 3 else real(self, *args)


_apply("segfault-in-launch", "the third launch ends in a segmentation fault", method("device", launch=_third), "language/arithmetic/*-i32-tile_17x4")
_apply("segfault-in-load", "loading a module ends in a segmentation fault", method("device", load_module=_segfault))
_apply("abort-in-compiler", "the compiler aborts", method("backend", pipeline=_abort), compiles=False)
_apply("stack-overflow", "the compiler runs out of stack", rewrite("ttir", _recursion), compiles=False)
_apply("exit-in-launch", "a launch exits the process with status 0", method("device", launch=_exit))
_apply("system-exit", "loading a module raises SystemExit", method("device", load_module=_system_exit))
_apply("killed-in-copy", "a copy to the host kills the process", method("device", memcpy_dtoh=_killed))
_apply("hang-in-synchronize", "synchronize never returns", method("device", synchronize=_hang), seconds=HANGS)
_apply("hang-in-compiler", "the compiler never ends", rewrite("structured", _hang), seconds=HANGS, compiles=False)
_apply("hang-in-launch", "a launch never returns, and holds the GIL", method("device", launch=_hang_holding_the_lock), seconds=HANGS)
