"""Faults that kill or hang the process, which the suite must survive, and those that leave something in it."""

from __future__ import annotations

import atexit
import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
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


# --- what each load leaves behind ---------------------------------------------------------------------------

_KEPT: list[Any] = []


def _loading(name: str, sentence: str, leave: Callable[[], Any], check: str) -> None:
    """Add a fault that calls `leave` whenever a module is loaded, and keeps what it returns."""

    def load(real: Any, self: Any, *args: Any) -> Any:
        _KEPT.append(leave())
        return real(self, *args)

    _apply(name, sentence, method("device", load_module=load), f"runtime/process/{check}")


def _flush_denormals() -> None:
    """Set FTZ and DAZ of the calling thread, in MXCSR at the end of glibc's `fenv_t` for x86-64."""
    libc, saved = ctypes.CDLL(None), ctypes.create_string_buffer(32)
    libc.fegetenv(saved)
    ctypes.c_uint32.from_buffer(saved, 28).value |= 0x8040
    libc.fesetenv(saved)


def _abort_at_exit(real: Any, self: Any, *args: Any) -> Any:
    if not _KEPT:
        _KEPT.append(atexit.register(os.abort))
    return real(self, *args)


_loading("file-per-load", "each load of a module leaves a file descriptor open", lambda: os.open(os.devnull, os.O_RDONLY), "leak-loads")
_loading("temporary-per-load", "each load of a module leaves a temporary file", lambda: tempfile.mkstemp(), "leak-loads")
_loading("memory-per-load", "each load of a module leaks 1 MiB of the host's memory", lambda: b"\1" * (1 << 20), "leak-loads")
_loading("zombie-per-load", "each load of a module leaves a process that nobody waits for", lambda: subprocess.Popen(["true"]), "leak-loads")
_loading("thread-per-load", "each load of a module leaves a thread", lambda: threading.Thread(target=threading.Event().wait, daemon=True).start(), "leak-loads")
_loading("folder-changed", "loading a module changes the working directory", lambda: os.chdir("/"), "state")
_loading("interrupts-ignored", "loading a module makes the process ignore SIGINT", lambda: signal.signal(signal.SIGINT, signal.SIG_IGN), "state")
_loading("denormals-flushed", "loading a module makes the caller's arithmetic flush denormal numbers", _flush_denormals, "state")
_loading("random-seeded", "loading a module seeds Python's random generator", lambda: random.seed(0), "state")
_loading("prints", "loading a module writes to standard output", lambda: os.write(1, b"vendor: loading\n"), "output")
_apply("abort-at-exit", "a process that has loaded a module aborts when it exits", method("device", load_module=_abort_at_exit), "registration/cache/fresh-process")

# --- ends of the process ------------------------------------------------------------------------------------

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
