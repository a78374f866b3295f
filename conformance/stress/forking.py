"""`in_child`: run a program in a process forked from a warm one."""

from __future__ import annotations

import json
import os
import select
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import IO, NoReturn

from triton_porting_kit.conformance.stages import of_dump
from triton_porting_kit.conformance.stress import outcome
from triton_porting_kit.conformance.stress.outcome import Outcome


def in_child(run: Callable[[], Outcome], seconds: float, environment: Mapping[str, str]) -> Outcome:
    """The result of `run` in a forked process; or how that process died, or that it timed out.

    Only the calling thread may exist in this process: a lock that another thread held would stay locked in the child.
    """
    with tempfile.TemporaryFile() as said:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            _be_child(run, write, said, environment)
        os.close(write)
        answer = None
        try:
            answer = _all_of(read, time.monotonic() + seconds)
        finally:
            os.close(read)
            if answer is None:
                os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
        if answer is None:
            return timeout(seconds)
        if answer:
            return Outcome(**json.loads(answer))
        said.seek(0)
        return death(os.waitstatus_to_exitcode(status), said.read().decode(errors="replace"))


def timeout(seconds: float) -> Outcome:
    """The outcome of a program that does not end."""
    return Outcome(outcome.TIMEOUT, f"no end after {seconds:g} s")


def death(status: int, said: str) -> Outcome:
    """The outcome of a process that ended without an answer. `said`: its standard error."""
    how = signal.Signals(-status).name if status < 0 else f"exit status {status}: {said[-300:].strip()}"
    return Outcome(outcome.CRASH, f"the process died of {how}", of_dump(said))


def _be_child(
    run: Callable[[], Outcome], answers: int, said: IO[bytes], environment: Mapping[str, str]
) -> NoReturn:
    try:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        os.environ.update(environment)
        os.write(answers, json.dumps(asdict(run())).encode())
        os._exit(0)
    except BaseException:
        said.write(traceback.format_exc().encode())
        said.flush()
        os._exit(1)


def _all_of(pipe: int, end: float) -> bytes | None:
    """The output of a pipe until it is closed; None if it stays open too long."""
    found = b""
    while True:
        ready, _, _ = select.select([pipe], [], [], max(end - time.monotonic(), 0))
        if not ready:
            return None
        more = os.read(pipe, 1 << 16)
        if not more:
            return found
        found += more
