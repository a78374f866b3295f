"""What as many processes of one thread reach together, beside a launch with as many threads.

One CPU alone may be twice as fast as one of many. Two CPUs share the units of a core, and all share caches, memory and
the clock; on a virtual machine, other machines use them as well. So the time of one thread says little about how well a
launch divides its work. Copies say more: each launches by itself, and shares only the machine and the operands.

`python -m benchmarks.copies COUNT` keeps a row's call and answers requests, one JSON object a line, until its input
ends. It forks the copies, so that they read the same memory, and ends them after each measurement.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from .environment import environment
from .figures import Figure, measured
from .measure import checked_call, make_place
from .rows import Row, reduced_rows, rows
from .timing import Samples

ROOT = Path(__file__).resolve().parents[1]
RUNS = 7
SECONDS, CALLS = 0.3, 6
"""Each side is measured for at least `SECONDS` at a time, and long enough for about `CALLS` calls of each copy."""
START_SECONDS = 0.2
"""From the request to the start of all copies. Until then they are forked and make one call, which maps their pages."""
COMPUTES_BAR = 0.85
"""The target for launches with all threads: the least part of what their copies reach."""


class CopiesFailed(Exception):
    """The process that makes copies has ended or could not do what it was asked for."""


class Copies:
    """As many processes of one thread as `count`; they start when the first row is prepared."""

    def __init__(self, count: int, reduced: bool) -> None:
        self.count = count
        self._reduced = reduced
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Copies:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.__exit__(kind, error, trace)  # closes its input, at which it ends

    def prepare(self, name: str) -> None:
        """Let later measurements be of the row of that name. Raises `CopiesFailed`."""
        self._ask({"row": name})

    def rate(self, seconds: float) -> float:
        """Calls per second of all copies together, measured for so long. Raises `CopiesFailed`."""
        return float(self._ask({"seconds": seconds}))

    def _ask(self, request: dict[str, Any]) -> Any:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.copies", str(self.count), *["--reduced"] * self._reduced],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment(1, self._reduced),
                cwd=ROOT,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
        except BrokenPipeError as error:
            raise CopiesFailed(f"{request}: the process has ended") from error
        line = self._process.stdout.readline()
        if not line:
            raise CopiesFailed(f"{request}: the process has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise CopiesFailed(f"{request}: {answer['error']}")
        return answer["result"]


def copies_figures(row: Row, place: Any, copies: Copies) -> list[Figure]:
    """The calls per second with all threads, over those of all copies together."""
    ours, _, _ = checked_call(row.case, place)
    copies.prepare(row.name)
    seconds = max(SECONDS, CALLS * copies.count / _rate(ours, 0.0, SECONDS))
    found = [_rate(ours, 0.0, seconds) / copies.rate(seconds) for _ in range(RUNS)]
    figure = measured(
        Samples(tuple(found)),
        "scaling",
        row.name,
        f"of {copies.count} processes",
        copies.count,
        unit="x",
        less=False,
        bar=COMPUTES_BAR,
    )
    return [figure]


def _rate(call: Callable[[], Any], start: float, seconds: float) -> float:
    """Calls per second, from a time of `time.monotonic` on, or from now on; the first call is not counted."""
    call()
    while time.monotonic() < start:
        pass
    start, calls = time.monotonic(), 0
    while (now := time.monotonic()) < start + seconds:
        call()
        calls += 1
    return calls / (now - start)


def _rate_of_copies(call: Callable[[], Any], count: int, seconds: float) -> float:
    """Calls per second of so many forked processes together. Raises `CopiesFailed` if one fails."""
    start = time.monotonic() + START_SECONDS
    outputs, processes = [], []
    for _ in range(count):
        output, into = os.pipe()
        process = os.fork()
        if process == 0:
            try:
                os.write(into, json.dumps(_rate(call, start, seconds)).encode())
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)  # without the parent's exit handlers
        os.close(into)
        outputs.append(output)
        processes.append(process)
    texts = []
    for output, process in zip(outputs, processes, strict=True):
        with os.fdopen(output) as lines:
            texts.append(lines.read())
        os.waitpid(process, 0)
    if not all(texts):
        raise CopiesFailed("a copy has ended without a result")
    return sum(float(json.loads(text)) for text in texts)


def serve(count: int, reduced: bool, requests: TextIO, answers: TextIO) -> None:
    """Answer requests until there are no more."""
    import torch
    from triton.runtime import driver

    torch.set_num_threads(1)
    place = make_place(driver.active.device)
    known = {row.name: row for row in (reduced_rows() if reduced else rows())}
    call: Callable[[], Any] | None = None
    for line in requests:
        request = json.loads(line)
        try:
            if "row" in request:
                call, result = checked_call(known[request["row"]].case, place)[0], 0.0
            elif call is None:
                raise CopiesFailed("no row is prepared")
            else:
                result = _rate_of_copies(call, count, request["seconds"])
            answer: dict[str, Any] = {"result": result}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]), "--reduced" in sys.argv, sys.stdin, sys.stdout)
