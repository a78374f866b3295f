"""Processes that act as ranks: each runs the functions that it is told, in a group with others.

A worker reads lines of JSON: the function, its arguments, its rank, and the folder where the ranks meet. It answers
with the result, or the error's type and text.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

SECONDS = 120.0
"""How long ranks wait for each other."""


class Failed(Exception):
    """What a rank raised: the name of the type, and the text."""


class Workers:
    """Several worker processes."""

    def __init__(
        self,
        count: int,
        cache: Path | None = None,
        backend: str = "cpu",
        programs: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`cache`: of kernels; None: that of this process. `programs`: a folder with more modules of functions.
        `environment`: more variables."""
        variables = {
            **os.environ,
            "TRITON_DEFAULT_BACKEND": backend,
            "TPK_NUM_THREADS": "1",
            **(environment or {}),
        }
        if cache is not None:
            variables["TRITON_CACHE_DIR"] = str(cache)
        if programs is not None:
            variables["PYTHONPATH"] = str(programs)
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=variables,
            )
            for _ in range(count)
        ]

    def start(
        self, function: Callable[..., Any], ranks: int, *arguments: Any, timeout: float = SECONDS
    ) -> None:
        """Let the first `ranks` workers call `function(group, *arguments)`; kernels wait for `timeout` seconds."""
        self._folder = tempfile.TemporaryDirectory()
        for rank in range(ranks):
            task = {
                "module": function.__module__,
                "function": function.__name__,
                "arguments": arguments,
                "rank": rank,
                "ranks": ranks,
                "folder": self._folder.name,
                "timeout": timeout,
            }
            stream = self.processes[rank].stdin
            assert stream is not None
            stream.write(json.dumps(task) + "\n")
            stream.flush()

    def answer(self, rank: int) -> Any:
        """The result of a worker. Raises `Failed`."""
        stream = self.processes[rank].stdout
        assert stream is not None
        answer = json.loads(stream.readline() or '{"error": "the process has ended"}')
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["result"]

    def run(self, function: Callable[..., Any], ranks: int, *arguments: Any) -> list[Any]:
        """The results of all ranks."""
        self.start(function, ranks, *arguments)
        return [self.answer(rank) for rank in range(ranks)]

    def close(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.communicate()


def serve() -> None:
    """Act as a worker."""
    from triton_porting_kit.distributed import open_group
    from triton_porting_kit.distributed.rendezvous import FolderRendezvous

    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what kernels print is not an answer
    for line in sys.stdin:
        task = json.loads(line)
        try:
            function = getattr(importlib.import_module(task["module"]), task["function"])
            met = FolderRendezvous(task["folder"], task["rank"], task["ranks"], SECONDS)
            with open_group(rendezvous=met, heap_bytes=8 << 20, timeout=task["timeout"]) as group:
                answer = {"result": function(group, *task["arguments"])}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    serve()
