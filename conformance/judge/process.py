"""`Nursery` and `CandidateProcess`: the judge's side of the processes in which candidates run."""

from __future__ import annotations

import array
import contextlib
import math
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from triton_porting_kit.conformance.judge.errors import JudgeError
from triton_porting_kit.conformance.judge.exchange import Broken, Gone, Late, Line, Memory, Message
from triton_porting_kit.conformance.judge.task import Call, Task
from triton_porting_kit.conformance.judge.values import Leaf, content, from_content, places
from triton_porting_kit.conformance.types import Array

_START_SECONDS = 120.0
_TAIL = 2000
_KEPT = (
    "PATH",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "LANG",
    "LC_ALL",
    "TPK_NUM_THREADS",
    "TPK_DENORMALS",
    "OMP_NUM_THREADS",
)
"""The variables of the judge's environment that candidates' processes inherit, besides those that select devices."""
_KEPT_PREFIXES = ("CUDA_", "HIP_", "ROCR_", "VNPU_", "TRITON_PTXAS")


class Nursery:
    """A process that has imported Triton and optionally torch, and forks candidates' processes."""

    def __init__(self, *, torch: bool = False) -> None:
        """Start the process. Raises `JudgeError`."""
        self.torch = torch
        self.roofs: dict[tuple[object, ...], dict[str, float]] = {}
        """The measured limits of the machine, see `roof`."""
        self._scratch = Path(tempfile.mkdtemp(prefix="tpk-judge-"))
        ours, theirs = socket.socketpair()
        environment = {k: v for k, v in os.environ.items() if k in _KEPT or k.startswith(_KEPT_PREFIXES)}
        environment |= {
            "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
            "PYTHONHASHSEED": "0",
            "HOME": str(self._scratch),
        }
        environment |= {"MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
        modules = ["numpy", "triton_porting_kit.driver", "triton.language"]
        if torch:
            modules += ["torch", "torch._dynamo"]  # the second takes a second, and the first call needs it
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.nursery", str(theirs.fileno()), ",".join(modules)],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            env=environment,
            cwd=self._scratch,
        )
        theirs.close()
        self._end = ours
        self._end.settimeout(_START_SECONDS)
        try:
            ready = self._end.recv(64) == b"ready\n"
        except OSError:
            ready = False
        if not ready:
            self.close()
            raise JudgeError(
                "the process from which candidates are started did not start; `tpk doctor` reports why"
            )

    def fork(self, descriptors: Sequence[int]) -> int:
        """Fork a process that serves these descriptors, and return its process ID."""
        rights = array.array("i", descriptors)
        self._end.sendmsg([b"fork"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        return self._number()

    def end(self, child: int, *, grace: bool) -> int:
        """End a forked process. Returns its exit status, or the negative number of a signal."""
        self._end.sendall(f"{'wait' if grace else 'kill'} {child}".encode())
        return self._number()

    def _number(self) -> int:
        try:
            return int(self._end.recv(64).decode())
        except (OSError, ValueError) as error:
            raise JudgeError(f"the process from which candidates are started has ended: {error}") from error

    def folder(self) -> Path:
        """Create a folder for one candidate's process."""
        return Path(tempfile.mkdtemp(dir=self._scratch))

    def close(self) -> None:
        """End the process."""
        self._end.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


@dataclass
class Answer:
    """The answer to one call."""

    results: list[Array] | None
    """The values in the shared memory; None if types or shapes are not the requested ones."""
    window: float
    """Seconds on the judge's clock, from writing the inputs to receiving the answer."""
    said: dict[str, Any] = field(default_factory=dict)
    """What the candidate's process reported. Only its types are validated."""
    failure: str = ""
    """Why there are no results."""
    kind: str = ""
    """The kind of failure: a code of `findings.RULES`, or ``entry`` or ``candidate``."""


class CandidateProcess:
    """One process in which a candidate is loaded and called."""

    def __init__(self, nursery: Nursery, seconds: float) -> None:
        """`seconds`: the time limit of a call."""
        self._nursery, self._seconds = nursery, seconds
        ours, theirs = socket.socketpair()
        self._line, self._inputs, self._outputs = Line(ours), Memory(), Memory()
        self._said_end = os.memfd_create("tpk-judge-said")
        self.work = nursery.folder()
        self.number = nursery.fork(
            [theirs.fileno(), self._inputs.descriptor, self._outputs.descriptor, self._said_end]
        )
        theirs.close()
        self.printed = ""
        """The end of its output, set when it has ended."""
        self.notes: list[dict[str, str]] = []
        self._closed = False

    # --- messages -------------------------------------------------------------------------------------

    def open(
        self,
        task: Task | None,
        candidate: bytes,
        backend: str,
        arrays: str,
        *,
        mute: bool = False,
        record: str = "",
    ) -> dict[str, Any]:
        """Load the candidate. If `task` is None, load nothing (the control). Returns ``opened`` or ``failed``.

        `record`: the name of a folder in `work` for recorded launches; empty: launches are not recorded.
        """
        path = self.work / "candidate.py"
        path.write_bytes(candidate)
        leaves = list(task.setup_leaves) if task else []
        order = {
            "work": str(self.work),
            "candidate": str(path),
            "backend": backend,
            "arrays": arrays,
            "torch": bool(task and task.needs_torch),
            "null": task is None,
            "mute": mute,
            "record": record,
            "weights": self._put(leaves)[0],
            "setup": {"format": task.format, "entry": task.entry, **task.setup}
            if task
            else {"format": "null", "entry": ""},
        }
        answer = self._ask({"open": order}, max(self._seconds, _START_SECONDS))
        found = answer.said
        for key in ("opened", "failed"):
            if isinstance(found.get(key), dict):
                return {key: {name: str(value) for name, value in found[key].items()}}
        said = answer.failure or f"its first answer is not ``opened`` or ``failed``: {str(found)[:200]}"
        return {"failed": {"where": answer.kind or "forged", "message": said}}

    def call(self, task: Task | None, call: Call, *, check: bool, reuse: bool) -> Answer:
        """Make one call with these inputs. If `task` is None, this is a call of the control, which has no results."""
        results, size = places(call.results)
        self._outputs.view(size)[:] = b"\xff" * size
        given = call.leaves[: len(call.leaves) - call.weights]
        raw = [content(leaf) for leaf in given]
        spots, total = places([(leaf.kind, leaf.shape) for leaf in given])
        shared = self._inputs.view(total)
        order = {
            "call": {
                "leaves": spots,
                "results": results,
                "bytes": total,
                "arguments": call.arguments,
                "given": bool(task and task.given),
                "writes": list(task.writes) if task else [],
                "may_change": [*(task.writes if task else ()), *call.outputs],
                "check": check,
                "reuse": reuse,
                "null": task is None,
                "number": secrets.randbits(60),
            }
        }
        begin = time.perf_counter()
        for spot, item in zip(spots, raw, strict=True):
            shared[spot.offset : spot.offset + len(item)] = item
        answer = self._ask(order, self._seconds)
        answer.window = time.perf_counter() - begin
        said = answer.said.get("called")
        if answer.failure or not isinstance(said, dict):
            answer.kind = answer.kind if answer.failure else "forged"
            answer.failure = answer.failure or "its answer is not an answer to a call"
            return answer
        answer.said = said
        if said.get("number") != order["call"]["number"]:
            answer.failure, answer.kind = "its answer belongs to another call", "forged"
            return answer
        if "error" in said:
            answer.failure, answer.kind = str(said["error"]), "error"
            return answer
        if task is None:
            return answer
        wanted = [[kind.device, list(shape)] for kind, shape in call.results]
        if said.get("results") != wanted:
            answer.failure, answer.kind = (
                f"it returned {said.get('results')!r:.300}, not {wanted!r:.300}",
                "results",
            )
            return answer
        memory = self._outputs.view(size)
        answer.results = [
            from_content(memory[place.offset : place.offset + place.size], kind, tuple(shape))
            for place, (kind, shape) in zip(results, call.results, strict=True)
        ]
        return answer

    def measure(self, kind: str, flops: bool) -> dict[str, float]:
        """Measure the limits of the machine, in a process without a candidate. Raises `JudgeError`."""
        answer = self._ask({"measure": {"kind": kind, "flops": flops}}, _START_SECONDS)
        found = answer.said.get("measured")
        if not isinstance(found, dict):
            raise JudgeError(f"the limits of the machine cannot be measured: {answer.failure or answer.said}")
        return {str(name): seconds_of(value) for name, value in found.items()}

    def _put(self, leaves: Sequence[Leaf]) -> tuple[list[Any], int]:
        spots, total = places([(leaf.kind, leaf.shape) for leaf in leaves])
        memory = self._inputs.view(total)
        for spot, item in zip(spots, leaves, strict=True):
            raw = content(item)
            memory[spot.offset : spot.offset + len(raw)] = raw
        return list(spots), total

    def _ask(self, message: Message, seconds: float) -> Answer:
        answer, deadline = Answer(None, 0.0), time.monotonic() + seconds
        try:
            self._line.send(message)
            while True:
                found = self._line.receive(max(deadline - time.monotonic(), 0.0))
                if "note" not in found:
                    answer.said = found
                    return answer
                self._note(found["note"])
        except Gone:
            answer.kind, answer.failure = "ended", self._end()
        except Late:
            self.close()
            answer.kind, answer.failure = "late", f"no answer within {seconds:g} s"
        except Broken as error:
            self.close()
            answer.kind, answer.failure = "forged", f"it violates the protocol: {error}"
        return answer

    def _note(self, note: Any) -> None:
        if isinstance(note, dict) and len(self.notes) < 100:
            self.notes.append({"kind": str(note.get("kind"))[:40], "what": str(note.get("what"))[:300]})

    # --- its end -------------------------------------------------------------------------------------

    def _end(self) -> str:
        code = self.close(grace=True)
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"its process died of {signal.Signals(-code).name}"
        return f"its process ended by itself, with exit status {code}"

    def close(self, *, grace: bool = False) -> int:
        """End the process and its children. Returns its exit status."""
        if self._closed:
            return 0
        self._closed = True
        self._line.close()
        code = self._nursery.end(self.number, grace=grace)
        start = max(os.fstat(self._said_end).st_size - _TAIL, 0)
        self.printed = os.pread(self._said_end, _TAIL, start).decode(errors="replace")
        os.close(self._said_end)
        self._inputs.close()
        self._outputs.close()
        shutil.rmtree(self.work, ignore_errors=True)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def seconds_of(value: Any) -> float:
    """A time reported by a candidate's process; NaN if it is not a number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
