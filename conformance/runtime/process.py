"""What loading and launching kernels leaves behind in the process: nothing that the program would notice."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.registration.support import anew, environment
from triton_porting_kit.conformance.runtime.launches import resident_bytes

CHECKS = Checks("runtime/process", elements=16)

KERNELS = tuple(
    f"def leaves_{name}(X):\n    i = tl.arange(0, 16)\n    tl.store(X + i, {value})\n"
    for name, value in {
        "sums": "tl.load(X + i) + 1.5",
        "quotients": "tl.load(X + i) / 3.0",
        "totals": "tl.load(X + i) + tl.sum(tl.load(X + i), axis=0)",
    }.items()
)
LOADS = 8
"""How many kernels are loaded before resources are counted again."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)
_LIBC = ctypes.CDLL(None)
_DEFAULT_FLOATS = ctypes.c_void_p(-1)
"""FE_DFL_ENV of glibc."""


def _load(context: Context, out: Any, count: int) -> None:
    """Load and launch `count` kernels, as Triton does for a program whose kernels are in the cache on disk."""
    for k in range(count):
        anew(KERNELS[k % len(KERNELS)])[(1,)](out)
    context.memory.synchronize()
    gc.collect()


# --- state ----------------------------------------------------------------------------------------------


def _interrupted(number: int, frame: Any) -> None:
    """The handler of SIGINT during a check."""


def _ignored() -> list[str]:
    """The signals that are ignored, also by native code, if the system tells. Triton itself changes others."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("SigIgn:"):
                mask = int(line.partition(":")[2], 16)
                return [number.name for number in _SIGNALS if mask >> (number - 1) & 1]
    return []


def _floats() -> tuple[int, bool]:
    """The direction of rounding, and whether denormal numbers are kept."""
    return int(_LIBC.fegetround()), bool(np.float32(1e-40) * np.float32(1) != 0)


_STATE: dict[str, Callable[[], Any]] = {
    "the working directory": os.getcwd,
    "the handlers of signals": lambda: [signal.getsignal(number) for number in _SIGNALS],
    "the list of ignored signals": _ignored,
    "the floating-point environment": _floats,
    "the state of `random`": lambda: hash(random.getstate()),
    "the state of `numpy.random`": lambda: hash(str(np.random.get_state())),
}


@contextlib.contextmanager
def _known_state(folder: str) -> Iterator[None]:
    """A state that no backend would set, even one that has set its own before. Restores the one from before."""
    before = os.getcwd(), signal.getsignal(signal.SIGINT), random.getstate(), np.random.get_state()
    floats = ctypes.create_string_buffer(256)
    _LIBC.fegetenv(floats)
    try:
        os.chdir(folder)
        signal.signal(signal.SIGINT, _interrupted)
        random.seed(4711)
        np.random.seed(4711)
        if platform.libc_ver()[0] == "glibc":
            _LIBC.fesetenv(_DEFAULT_FLOATS)
        yield
    finally:
        os.chdir(before[0])
        signal.signal(signal.SIGINT, before[1] or signal.SIG_DFL)
        random.setstate(before[2])
        np.random.set_state(before[3])
        _LIBC.fesetenv(floats)


@CHECKS.check(
    "state",
    "Loading and launching kernels keeps the working directory, handlers of signals, the floating-point environment "
    "and random generators of the process.",
)
def _state(context: Context) -> None:
    out = context.array(np.ones(16, np.float32), "fp32")
    with tempfile.TemporaryDirectory(dir=context.session.scratch or None) as folder, _known_state(folder):
        before = {what: read() for what, read in _STATE.items()}
        _load(context, out, len(KERNELS))
        after = {what: read() for what, read in _STATE.items()}
    for what, value in before.items():
        context.expect(after[what] == value, f"unchanged: {what}", f"it was {value}, and is {after[what]}")


@CHECKS.check("output", "Loading and launching kernels writes nothing to standard output.")
def _output(context: Context) -> None:
    out = context.array(np.ones(16, np.float32), "fp32")
    _load(context, out, len(KERNELS))  # compilers may report what they do
    with tempfile.TemporaryFile(dir=context.session.scratch or None) as file, _standard_output(file.fileno()):
        _load(context, out, len(KERNELS))
        _flush()
        file.seek(0)
        found = file.read()
    context.expect(not found, "standard output is empty", f"{len(found)} bytes: {found[:200]!r}")


@contextlib.contextmanager
def _standard_output(descriptor: int) -> Iterator[None]:
    _flush()
    before = os.dup(1)
    try:
        os.dup2(descriptor, 1)
        yield
    finally:
        _flush()
        os.dup2(before, 1)
        os.close(before)


def _flush() -> None:
    sys.stdout.flush()
    _LIBC.fflush(None)


# --- resources ------------------------------------------------------------------------------------------


def _children() -> int:
    """The number of child processes, also of those that have ended and were not waited for."""
    lists = Path("/proc/self/task").glob("*/children")
    return sum(len(file.read_text().split()) for file in lists)


def _resources(folder: str) -> dict[str, float]:
    """What a process has only so many of, as far as the system tells. `folder`: that of temporary files."""
    found: dict[str, float] = {"temporary files": float(len(os.listdir(folder)))}
    with contextlib.suppress(OSError):
        found["file descriptors"] = float(len(os.listdir("/proc/self/fd")))
        found["threads"] = float(len(os.listdir("/proc/self/task")))
        found["child processes"] = float(_children())
    return found


@contextlib.contextmanager
def _temporary_files(context: Context) -> Iterator[str]:
    """A folder of its own for temporary files, so that those of other programs are not counted."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(dir=context.session.scratch or None) as folder:
        with environment(TMPDIR=folder):
            tempfile.tempdir = folder
            try:
                yield folder
            finally:
                tempfile.tempdir = before


@CHECKS.check(
    "leak-loads",
    "Kernels that are loaded, launched and dropped leave no file descriptors, temporary files, threads, child "
    "processes or, of the kit's devices, 1 MiB of memory each.",
)
def _leak_loads(context: Context) -> None:
    out = context.array(np.ones(16, np.float32), "fp32")
    grown: dict[str, float] = {}
    with _temporary_files(context) as folder:
        _load(context, out, LOADS)
        for _ in range(2):  # what grows once, such as a pool, is no leak
            before = _resources(folder) | {"MiB of memory": resident_bytes() / (1 << 20)}
            _load(context, out, LOADS)
            after = _resources(folder) | {"MiB of memory": resident_bytes() / (1 << 20)}
            for what, count in after.items():
                grown[what] = min(grown.get(what, count), count - before.get(what, count))
    if context.memory.kit_device is None:
        del grown["MiB of memory"]  # other runtimes may keep what they have loaded
    for what, count in grown.items():
        context.expect(
            count < LOADS * 0.75,
            f"fewer {what} are left than kernels",
            f"{count:.1f} more after {LOADS} loads",
        )
