"""Compiling several kernels at once: forked processes leave theirs in Triton's cache, where this one finds them.

Threads would not do: the front end and most of the stages hold the GIL.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import Any

from triton_porting_kit.errors import OptionError
from triton_porting_kit.toolchain import compat

PROCESSES = "TPK_COMPILE_PROCESSES"
"""The variable with the number of processes; by default, one for each core of this process."""
_MOST_PROCESSES = 8
_MOST_KERNELS = 256
_PATIENCE = 4.0
"""How often as long as this process needed for its slowest kernel the others may take for their last one."""


def processes() -> int:
    """How many processes compile at once, this one included. Raises `OptionError`."""
    text = os.environ.get(PROCESSES, "")
    if not text:
        return min(_MOST_PROCESSES, len(os.sched_getaffinity(0)))
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(f"{PROCESSES} is {text!r}", remedy="set it to a number, 1 for this process only")
    return int(text)


def compile_together(starts: Sequence[Callable[[], object]], count: int) -> None:
    """Call `starts`, each of which asks Triton for kernels, and compile what is not cached in `count` processes.

    A kernel that cannot be compiled is left to whoever asks for it next, who then gets the error.
    """
    executor = _Processes(count)
    with compat.asynchronous_compilation(executor, executor.expect):
        for start in starts:
            with contextlib.suppress(Exception):
                start()
        executor.run()


class _Processes(Executor):
    """Keeps what is submitted until `run`. What is expected to take long is then called in other processes first."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._calls: list[tuple[Future[Any], Callable[[], Any]]] = []
        self._long: list[Callable[[], Any]] = []

    def expect(self, call: Callable[[], Any]) -> None:
        """Call this one in parallel with others."""
        self._long.append(call)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The future result of a call, which has one after `run`."""
        future: Future[Any] = Future()
        self._calls.append((future, lambda: fn(*args, **kwargs)))
        return future

    def run(self) -> None:
        """Give every future its result or its exception."""
        try:
            long = self._long[:_MOST_KERNELS]
            if min(self._count, len(long)) > 1:
                _share(long, min(self._count, len(long)))
            for future, call in self._calls:
                try:
                    future.set_result(call())
                except Exception as error:
                    future.set_exception(error)
        finally:
            for future, _ in self._calls:
                if future.cancel():  # an interrupt has left it over: nobody is to wait for it
                    future.set_running_or_notify_cancel()


def _share(calls: Sequence[Callable[[], Any]], count: int) -> None:
    """Make each call in one of `count` processes; this is one of them. Exceptions of calls are dropped.

    A byte in a pipe stands for each call, and whoever reads it makes the call.
    """
    claims, tokens = os.pipe()
    end, alive = os.pipe()
    os.write(tokens, bytes(range(len(calls))))
    os.close(tokens)
    workers: list[int] = []
    try:
        with contextlib.suppress(OSError):  # fewer processes do as well
            for _ in range(count - 1):
                workers.append(_fork(claims, calls))
        os.close(alive)
        slowest = max(_make(claims, calls), default=0.0)
        select.select([end], [], [], 1 + _PATIENCE * slowest)
    finally:
        for worker in workers:
            # One that has ended is not gone before it is waited for, which the program may do, too. One that hangs has
            # not written its kernel.
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(worker, signal.SIGKILL)
                os.waitpid(worker, 0)
        os.close(claims)
        os.close(end)


def _make(claims: int, calls: Sequence[Callable[[], Any]]) -> Iterator[float]:
    """Make the calls that this process claims; yields the seconds that each took."""
    while token := os.read(claims, 1):
        start = time.monotonic()
        with contextlib.suppress(Exception):
            calls[token[0]]()
        yield time.monotonic() - start


def _fork(claims: int, calls: Sequence[Callable[[], Any]]) -> int:
    """A new process that makes calls, and ends without running what was registered for the end of this one."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with warnings.catch_warnings():
        # Python warns of other threads, which may hold locks. The kit and Python release theirs in the new process; one
        # that hangs all the same is killed.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process == 0:
        try:
            for _ in _make(claims, calls):
                pass
            for stream in (sys.stdout, sys.stderr):
                stream.flush()  # what kernels print while they are compiled
        finally:
            os._exit(0)
    return process
