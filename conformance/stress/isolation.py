"""`Isolated`: runs programs in processes that may crash or hang."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from types import TracebackType
from typing import Any

from triton_porting_kit.conformance.stress.configuration import DEFAULT, Configuration, Order
from triton_porting_kit.conformance.stress.forking import death, timeout
from triton_porting_kit.conformance.stress.launching import Launch
from triton_porting_kit.conformance.stress.outcome import Outcome
from triton_porting_kit.errors import PortingKitError

RUNS_OF_A_PROCESS = 500
"""Number of programs after which a worker that does not fork is replaced: every kernel stays loaded in it."""
STARTING = 300.0
"""Time limit for a worker to open the backend, in seconds."""
GRACE = 60.0
"""Seconds that a worker may take in addition to the time limit of the process that it forks."""


class WorkerFailed(PortingKitError):
    """The process that runs programs cannot open the backend."""


class Isolated:
    """A worker process for one backend, replaced when it dies. Use it as a context manager."""

    def __init__(self, backend: str, profile: str = "", seconds: float = 60.0) -> None:
        """`profile`: a ``conformance.toml``; `seconds`: time limit of one program."""
        self._backend, self._profile = backend, profile
        self.seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._errors: Any = None
        self._runs = 0
        self.memory = ""
        """How the backend's memory is accessed, as `script_of` takes it. Set by `start`."""
        self.forks = False
        """Whether each program runs in a process of its own. Set by `start`."""

    def __enter__(self) -> Isolated:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process and wait until it has opened the backend. Raises `WorkerFailed`."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `stop`
        self._cache = tempfile.TemporaryDirectory(prefix="tpk-fuzz-")  # removed by `stop`
        module = "triton_porting_kit.conformance.stress.worker"
        command = [sys.executable, "-m", module, self._backend, self._cache.name]
        command += [self._profile] if self._profile else []
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # a process that forks must have a single thread
        )
        self._answers, self._runs = queue.SimpleQueue(), 0
        threading.Thread(target=_forward, args=(self._process.stdout, self._answers), daemon=True).start()
        line = self._answer(STARTING)
        if not line:
            text = self._said()
            self.stop()
            last = text.strip().splitlines()[-1:] or ["it printed nothing to standard error"]
            raise WorkerFailed(f"programs cannot be run: {last[0]}")
        hello = json.loads(line)
        self.memory, self.forks = hello["memory"], hello["forks"]

    def stop(self) -> None:
        """Kill the process."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also kills the processes that it forked
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    _close(pipe)
            self._errors.close()
            self._cache.cleanup()

    def run(
        self, work: int | Launch, seconds: float | None = None, configuration: Configuration = DEFAULT
    ) -> Outcome:
        """Run a program, or the program generated from a seed. `seconds` overrides the time limit."""
        limit = self.seconds if seconds is None else seconds
        if self._process is None or (self._runs >= RUNS_OF_A_PROCESS and not self.forks):
            self.stop()
            self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        self._runs += 1
        try:
            pickle.dump(Order(work, configuration, limit), self._process.stdin)
            self._process.stdin.flush()
        except BrokenPipeError:
            return self._died()
        line = self._answer(limit + GRACE if self.forks else limit)
        if line is None:
            self.stop()
            return timeout(limit)
        return Outcome(**json.loads(line)) if line else self._died()

    def _answer(self, seconds: float) -> bytes | None:
        """Return one line from the worker: empty if the process died, None if the time limit is exceeded."""
        try:
            return self._answers.get(timeout=seconds)
        except queue.Empty:
            return None

    def _died(self) -> Outcome:
        assert self._process is not None
        found = death(self._process.wait(), self._said())
        self.stop()
        return found

    def _said(self) -> str:
        self._errors.seek(0)
        return str(self._errors.read().decode(errors="replace"))


def _forward(pipe: Any, answers: queue.SimpleQueue[bytes]) -> None:
    """Copy the lines of a pipe to a queue, followed by an empty line when the pipe ends."""
    try:
        for line in pipe:
            answers.put(line)
    except ValueError:
        pass  # `stop` closed the pipe during the read
    answers.put(b"")


def _close(pipe: Any) -> None:
    with contextlib.suppress(BrokenPipeError):  # the process is gone, so buffered data cannot be delivered
        pipe.close()
