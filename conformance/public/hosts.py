"""`Host`: a process with a collection's package, as the worker of the suite sees it."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from triton_porting_kit.conformance.execution.channel import Channel, ChannelClosed, Message
from triton_porting_kit.conformance.public.entries import Collection
from triton_porting_kit.conformance.public.options import Options
from triton_porting_kit.conformance.public.packages import ensure
from triton_porting_kit.conformance.public.patience import Patience
from triton_porting_kit.conformance.status import Evidence

_AS_CUDA = "import triton_porting_kit.pytorch.as_cuda"
_MAIN = f"import sys; from {__package__}.host import main; main(*sys.argv[1:])"
_TAIL = 2000


@dataclass(frozen=True)
class Answer:
    """What a process says of a case."""

    evidence: list[Evidence]
    caught: list[str] = field(default_factory=list)
    """The compile errors that the package caught or raised."""
    found: list[str] = field(default_factory=list)
    """What a process that checks has found of launches."""


class Host:
    """Runs cases of one collection, with one number of threads. A crash ends the process, not this object."""

    def __init__(
        self, collection: Collection, options: Options, threads: int, *, cuda: bool, checked: bool = False
    ) -> None:
        """`cuda`: whether the backend is NVIDIA's own; otherwise ``cuda`` is mapped onto its device. `checked`: whether
        kernels run with the kit's checks of accesses."""
        self._collection, self._options, self._threads = collection, options, threads
        self._cuda, self._checked = cuda, checked
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (open for as long as this lives)

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None and self._channel is not None:
            self._channel.close()
            self._process.kill()
            self._process.wait()
        self._process = self._channel = None

    def ask(self, order: Mapping[str, Any], seconds: float) -> Answer:
        """Let the process run a case. `seconds`: its time limit, as `Patience` counts it."""
        channel = self._channel or self._start()
        assert self._process is not None
        patience = Patience(self._process.pid, seconds, self._threads)
        try:
            channel.send(dict(order))
            while (message := channel.poll()) is None:
                if not (left := patience.wait()):
                    self.close()
                    return Answer([_timeout(seconds)])
                select.select([channel], [], [], left)
        except ChannelClosed:
            return Answer([self._death()])
        return _answer(message)

    def _start(self) -> Channel:
        folders = ensure(self._collection, self._options)
        ours, theirs = socket.socketpair()
        boot = _MAIN if self._cuda else f"{_AS_CUDA}; {_MAIN}"
        self._process = subprocess.Popen(
            [sys.executable, "-c", boot, str(theirs.fileno()), self._collection.place],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            pass_fds=[theirs.fileno()],
            env=self._environment([str(folder) for folder in folders]),
        )
        theirs.close()
        self._channel = Channel(ours)
        return self._channel

    def _environment(self, folders: list[str]) -> dict[str, str]:
        path = [*folders, *filter(None, [os.environ.get("PYTHONPATH", "")])]
        found = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHONFAULTHANDLER": "1",
            "OMP_NUM_THREADS": str(self._threads),
            "TPK_NUM_THREADS": str(self._threads),
            **self._collection.environment,
        }
        if self._cuda:
            # CUDA's default is TF32, whose 10 bits no tolerance for float32 would let pass.
            found.setdefault("TRITON_F32_DEFAULT", "ieee")
        if self._checked:
            found["TPK_CHECK"] = "memory"
        return found

    def _death(self) -> Evidence:
        process = self._process
        assert process is not None
        code = process.wait()
        self._process = self._channel = None
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(size - _TAIL, 0))
        said = self._output.read().decode(errors="replace")
        if code >= 0:
            return {
                "kind": "process",
                "stage": "check",
                "exit": code,
                "message": f"the process ended with status {code}",
                "output": said,
            }
        name = signal.Signals(-code).name
        return {
            "kind": "process",
            "stage": "check",
            "signal": name,
            "message": f"the process died of {name}",
            "output": said,
        }


def _timeout(seconds: float) -> Evidence:
    return {
        "kind": "process",
        "stage": "check",
        "timeout": seconds,
        "message": f"no result after {seconds:g} s",
    }


def _answer(message: Message) -> Answer:
    return Answer(list(message["evidence"]), list(message["caught"]), list(message["found"]))
