"""`in_child`: calls a function that may crash, hang or exhaust memory in a forked process."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import IO, Any, NoReturn

from triton_porting_kit.conformance.mutants.outcome import CRASH, MEMORY, TIMEOUT, Outcome
from triton_porting_kit.conformance.stages import of_dump

_PR_SET_PDEATHSIG = 1
_LOOK_SECONDS = 0.25
"""Interval, in seconds, at which the memory of a child is checked."""


def in_child(run: Callable[[], Outcome], seconds: float, memory: int) -> Outcome:
    """Call `run` in a forked process and return its outcome, or that of the process if it crashes, hangs or grows.

    `memory`: bytes that the child may use in addition to the size of this process. This process must have one thread.
    """
    start = time.monotonic()
    with tempfile.TemporaryFile() as said:
        read, write = os.pipe()
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            os.close(read)
            _be_child(run, write, said, parent)
        os.close(write)
        try:
            answer, ended = _answer(read, start + seconds, child, memory)
        finally:
            os.close(read)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
        taken = time.monotonic() - start
        if ended:
            return Outcome(ended, taken, message=f"ended after {taken:.1f} s")
        if answer:
            found = json.loads(answer)
            return Outcome.from_json({**found, "seconds": taken})
        said.seek(0)
        text = said.read().decode(errors="replace")
        code = os.waitstatus_to_exitcode(status)
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}: {text[-300:].strip()}"
        return Outcome(CRASH, taken, stage=of_dump(text), message=f"the process died of {how}")


def die_with(parent: int) -> None:
    """Make the kernel kill this process when its parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _be_child(run: Callable[[], Outcome], answers: int, said: IO[bytes], parent: int) -> NoReturn:
    try:
        die_with(parent)
        os.setsid()
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        faulthandler.enable(said.fileno())
        _send(answers, json.dumps(run().to_json()).encode())
        os._exit(0)
    except BaseException:
        said.write(traceback.format_exc().encode())
        said.flush()
        os._exit(1)


def _send(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]


def _answer(pipe: int, end: float, child: int, memory: int) -> tuple[bytes, str]:
    """Read a pipe until it is closed. Returns the data, and `TIMEOUT` or `MEMORY` if a limit is exceeded first."""
    found, most = b"", memory + _resident(os.getpid())
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return b"", TIMEOUT
        ready, _, _ = select.select([pipe], [], [], min(left, _LOOK_SECONDS))
        if not ready:
            if _resident(child) > most:
                return b"", MEMORY
            continue
        more = os.read(pipe, 1 << 20)
        if not more:
            return found, ""
        found += more


def _resident(process: int) -> int:
    try:
        with open(f"/proc/{process}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


def told(outcome: Any) -> str:
    """Format an exception in one line."""
    return f"{type(outcome).__name__}: {outcome}"[:1000]
