"""`Nursery` and `Server`: client side of the processes that run mutants."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from triton_porting_kit.conformance.execution.channel import Channel, ChannelClosed, Message
from triton_porting_kit.conformance.execution.importing import IN_TREE
from triton_porting_kit.conformance.mutants.outcome import CRASH, FAIL, TIMEOUT, Outcome
from triton_porting_kit.conformance.mutants.unit import Unit
from triton_porting_kit.errors import PortingKitError

STARTING = 120.0
"""Time limit, in seconds, for a nursery to start."""
OPENING = 60.0
"""Time limit, in seconds, for a server to import the mutated kit."""
GRACE = 30.0
"""Seconds that a server may take in addition to the time limit of the unit."""
MEMORY = 6 << 30
"""The number of bytes of memory that a unit may use."""


class NurseryFailed(PortingKitError):
    """The processes that run mutants cannot import or open the unmodified kit."""


class Nursery:
    """A process that has imported everything except one package, from which servers are forked. A context manager."""

    def __init__(self, package: str, threads: int = 2) -> None:
        """`threads`: the number of threads of a kernel."""
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair()
        module = f"{__package__}.server"
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(theirs.fileno()), package],
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", IN_TREE: "1", "TPK_NUM_THREADS": str(threads)},
        )
        theirs.close()
        self._end = ours
        self._end.settimeout(STARTING)
        try:
            said = self._end.recv(1)
        except TimeoutError:
            said = b""
        if said != b"R":
            self._errors.seek(0)
            text = self._errors.read().decode(errors="replace").strip()
            self.close()
            raise NurseryFailed(f"mutants of {package} cannot be tried: {text[-800:] or 'no message'}")

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill the process."""
        self._end.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._errors.close()

    def fork(self, order: Path, end: socket.socket) -> int:
        """Fork a server, pass it one end of its channel, and return its process ID. Thread-safe.

        `order` is a file, since an order names hundreds of files, and a message has an end.
        """
        with self._lock:
            socket.send_fds(self._end, [os.fsencode(order)], [end.fileno()])
            answer = self._end.recv(4)
        if len(answer) != 4:
            raise NurseryFailed("the nursery process has ended")
        return int.from_bytes(answer, "little")


class Server:
    """The kit with some modules replaced, in a process of its own. Use it as a context manager."""

    def __init__(
        self,
        nursery: Nursery,
        replaced: Mapping[str, bytes | Path],
        trace: Mapping[str, str] | None = None,
    ) -> None:
        """`replaced`: by module name, its source, or the file of an extension module. `trace`: by path of a file, its
        name in the lines of outcomes; by default no lines are recorded."""
        self.scratch = Path(tempfile.mkdtemp(prefix="tpk-mutant-"))
        files = {}
        for number, (module, content) in enumerate(replaced.items()):
            if isinstance(content, Path):
                files[module] = str(content)
            else:
                files[module] = str(self.scratch / f"{number}.py")
                Path(files[module]).write_bytes(content)
        order = {
            "replaced": files,
            "scratch": str(self.scratch),
            "trace": dict(trace or {}),
        }
        written = self.scratch / "order.json"
        written.write_text(json.dumps(order))
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = nursery.fork(written, theirs)
        except BaseException:
            ours.close()
            shutil.rmtree(self.scratch, ignore_errors=True)
            raise
        self._channel, self._ended = Channel(ours), False
        self.started: dict[str, list[int]] = {}
        """The lines that ran while the kit was imported and opened, by file."""
        answer = self._receive(OPENING)
        self.failure: Outcome | None = None
        """The outcome if the kit cannot be imported or opened, else None."""
        if isinstance(answer, Outcome):
            self.failure = answer
        elif "failed" in answer:
            self.failure = Outcome(FAIL, stage="imported", message=answer["failed"])
        else:
            self.started = answer["ready"]

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill the process and remove its files."""
        self._end()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _end(self) -> None:
        # The process ID stays valid until the process closes its end of the channel.
        if not self._ended:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process, signal.SIGKILL)
        self._ended = True
        self._channel.close()

    @property
    def alive(self) -> bool:
        """Whether the process still answers."""
        return not self._ended

    def warm(self) -> Outcome:
        """Let the process run the checks of `server.WARM` itself, and return their outcome."""
        found = self._outcome(self._ask({"warm": True}, OPENING))
        for path, lines in found.lines.items():
            self.started[path] = sorted({*self.started.get(path, ()), *lines})
        return found

    def run(
        self, unit: Unit, seconds: float, *, all_checks: bool = False, counts: Path | None = None
    ) -> Outcome:
        """Run a unit with a time limit, and return its outcome.

        `all_checks`: continue after the first failure. `counts`: the folder to which extension modules built with
        coverage add their line counts.
        """
        order = {
            "run": unit.to_json(),
            "seconds": seconds,
            "memory": MEMORY,
            "all_checks": all_checks,
            "counts": str(counts or ""),
        }
        return self._outcome(self._ask(order, seconds + GRACE))

    @staticmethod
    def _outcome(answer: Message | Outcome) -> Outcome:
        return answer if isinstance(answer, Outcome) else Outcome.from_json(answer)

    def _ask(self, order: Message, seconds: float) -> Message | Outcome:
        try:
            self._channel.send(order)
        except ChannelClosed:
            self._ended = True
            return Outcome(CRASH, message="the process with the mutant has ended")
        return self._receive(seconds)

    def _receive(self, seconds: float) -> Message | Outcome:
        end = time.monotonic() + seconds
        while True:
            try:
                message = self._channel.poll()
            except ChannelClosed:
                self._ended = True
                return Outcome(CRASH, message="the process with the mutant has ended")
            if message is not None:
                return message
            left = end - time.monotonic()
            if left <= 0:
                self._end()
                return Outcome(TIMEOUT, seconds, message=f"no answer after {seconds:g} s")
            select.select([self._channel.fileno()], [], [], left)
