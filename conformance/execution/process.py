"""`WorkerProcess`: a worker process, its output, its stack dumps, and its termination with all children."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from triton_porting_kit.conformance.execution.channel import Channel, ChannelClosed, Message
from triton_porting_kit.conformance.execution.settings import Settings
from triton_porting_kit.conformance.paths import without_roots
from triton_porting_kit.conformance.stages import of_dump

_TAIL = 2000
"""The number of characters of a worker's output that are kept."""
_READS = 16
"""The maximum number of reads of a worker's output at a time, so that endless output does not block supervision."""
_STACK_LINES = 30
_CAPTURE_LIMIT = "256M"
"""The size limit of the recorded launches of each check."""
_STACK_SECONDS = 10.0
"""The time for a hanging worker to write its stacks, on a busy machine, too."""
_LAST_FRAME = re.compile(r" in _run_module_as_main$|^  \.\.\.$", re.MULTILINE)
"""What the dump of `faulthandler` ends with: the first frame of the main thread, which comes last, or the mark of a
stack that is cut short."""
_END_SECONDS = 30.0
"""The time for a worker that has closed its channel to end."""
_SLICE_SECONDS = 0.2
"""The interval at which the run is checked for a stop request."""


class WorkerDied(Exception):
    """The process has ended."""


class LimitExceeded(Exception):
    """No message arrived in time."""


class WorkerProcess:
    """A worker in its own process group, so that all its processes can be killed."""

    def __init__(self, settings: Settings, *, reset: bool, recording: str = "") -> None:
        """Start the worker. `reset`: whether it resets the device first. `recording`: the folder in which it records
        launches; empty: it does not."""
        self._settings, self._recording = settings, recording
        self.scratch = Path(tempfile.mkdtemp(prefix="tpk-conform-", dir=settings.scratch or None))
        self._stacks = self.scratch / "stacks"
        self._said = b""
        self._exits: Message = {}
        ours, theirs = socket.socketpair()
        self._output, output = os.pipe()
        os.set_blocking(self._output, False)
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.worker", str(theirs.fileno()), str(self._stacks)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            env=self._environment(),
        )
        theirs.close()
        os.close(output)
        self._channel = Channel(ours)
        work = self.scratch / "work"
        work.mkdir()
        self.send({"settings": settings.to_json(), "reset": reset, "scratch": str(work)})

    def _environment(self) -> dict[str, str]:
        """The worker's environment variables.

        The worker finds backends that are registered by entry points, as the judged one may be. Its compile cache is
        new, because kernels from earlier runs do not test the current compiler. Launch code is kept where checks that
        compile into another cache, as torch's do, find it again.
        """
        cache = Path(self._settings.scratch or self.scratch) / "cache"
        cache.mkdir(exist_ok=True, mode=0o700)
        environment = {
            **os.environ,
            "TRITON_DEFAULT_BACKEND": self._settings.backend,
            "TRITON_CACHE_DIR": str(cache),
            "PYTHONUNBUFFERED": "1",
        }
        environment.setdefault("TPK_CACHE_DIR", str(cache))
        environment.pop("TRITON_BACKENDS_IN_TREE", None)
        if self._recording:
            environment["TPK_CAPTURE"] = self._recording
            environment.setdefault("TPK_CAPTURE_LIMIT", _CAPTURE_LIMIT)
        return environment

    # --- messages ------------------------------------------------------------------------------------

    def send(self, message: Message) -> None:
        """Send a message. The death of a worker is detected by `receive`, not here."""
        self._drain()
        self._said = b""
        with contextlib.suppress(ChannelClosed):
            self._channel.send(message)

    def receive(self, seconds: float) -> Message:
        """The next message. Raises `WorkerDied`, `LimitExceeded` after `seconds`, or `KeyboardInterrupt` when the run
        is stopped."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                message = self._channel.poll()
            except ChannelClosed:
                raise WorkerDied from None
            if message is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise LimitExceeded
                select.select([self._channel.fileno(), self._output], [], [], min(left, _SLICE_SECONDS))
                self._drain()
                if self._settings.stopped:
                    raise KeyboardInterrupt
            elif "exits" in message:
                self._exits = message["exits"]
            else:
                return message

    def _drain(self) -> None:
        """Read the worker's output, so that it never blocks on a full pipe."""
        with contextlib.suppress(OSError):
            for _ in range(_READS):
                self._said = (self._said + os.read(self._output, 1 << 16))[-4 * _TAIL :]

    # --- termination -------------------------------------------------------------------------------------

    def stacks(self) -> str:
        """Ask a hanging worker for its stacks. Empty if it does not answer."""
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGUSR1)
            deadline = time.monotonic() + _STACK_SECONDS
            while not _LAST_FRAME.search(self._left()) and time.monotonic() < deadline:
                time.sleep(0.02)
        return self._left()

    def _left(self) -> str:
        return self._stacks.read_text(errors="replace") if self._stacks.is_file() else ""

    def evidence(self, limit: float | None = None) -> dict[str, Any]:
        """Kill the worker, and return the evidence of its death or, given a `limit` in seconds, of its timeout."""
        if limit is not None:
            stacks = self.stacks()
            found: dict[str, Any] = {"timeout": limit, "message": f"no result after {limit:g} s"}
        else:
            code = self._wait()
            stacks = self._left()
            found = _death(code, self._exits)
        self.kill()
        if "harness" in self._exits:
            harness: dict[str, Any] = self._exits["harness"]
            return harness
        stack = own_stack(stacks)
        stage = self._exits.get("stage") or of_dump(stack)
        found = {"kind": "process", **found, "stage": stage}
        if stack:
            found["traceback"] = without_roots("\n".join(stack.splitlines()[:_STACK_LINES]))
        if tail := self._said.decode(errors="replace").strip()[-_TAIL:]:
            found["output"] = without_roots(tail)
        return found

    def _wait(self) -> int:
        """The exit status of a process that has closed its channel. Kills it if it does not end."""
        deadline = time.monotonic() + _END_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            self._drain()
            time.sleep(0.01)
        if self._process.poll() is None:
            self.kill()
        return self._process.wait()

    def kill(self) -> None:
        """Kill the process and its children, and remove its files. May be called repeatedly."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._output >= 0:
            self._drain()
            os.close(self._output)
            self._output = -1
            self._channel.close()
        shutil.rmtree(self.scratch, ignore_errors=True)


def _death(code: int, exits: Message) -> dict[str, Any]:
    if exits:
        return {"exit": code, "message": f"the worker process was left by {exits['message']}"}
    if code >= 0:
        return {"exit": code, "message": f"the worker process ended by itself, with exit status {code}"}
    try:
        name = signal.Signals(-code).name
        meaning = signal.strsignal(-code)
    except ValueError:
        name, meaning = f"signal {-code}", None
    return {
        "signal": name,
        "message": f"the worker process died of {name}{f' ({meaning})' if meaning else ''}",
    }


def own_stack(stacks: str) -> str:
    """Select the stack of the thread that runs checks from the dump of `faulthandler`."""
    parts = re.split(r"^(?=(?:Current thread|Thread) 0x)", stacks, flags=re.MULTILINE)
    running = [part for part in parts if "execution/worker.py" in part.replace("\\", "/")]
    dying = [part for part in parts if part.startswith("Current thread") and 'File "' in part]
    return ([*dying, *running] or [""])[0]
