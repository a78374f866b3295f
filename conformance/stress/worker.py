"""The process that runs programs: ``python -m triton_porting_kit.conformance.stress.worker BACKEND CACHE [PROFILE]``.

It reads pickled `Order` objects from its standard input and answers each with a line of JSON. If the device computes in
this process, the worker forks a process for every program, in which Triton and the compiler are already loaded.
Otherwise it runs the programs itself; `Isolated` replaces it if it dies.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import pickle
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from triton_porting_kit.conformance.arrays import OutOfBounds, WrongResult
from triton_porting_kit.conformance.memory import MemoryAccess
from triton_porting_kit.conformance.profile import Profile, load
from triton_porting_kit.conformance.sessions import open_session
from triton_porting_kit.conformance.stages import of_exception
from triton_porting_kit.conformance.stress import outcome
from triton_porting_kit.conformance.stress.configuration import Order
from triton_porting_kit.conformance.stress.forking import in_child
from triton_porting_kit.conformance.stress.generator import generate
from triton_porting_kit.conformance.stress.launching import Launch, run
from triton_porting_kit.conformance.stress.outcome import Outcome
from triton_porting_kit.conformance.stress.pages import in_process
from triton_porting_kit.conformance.stress.script import HOST

WARMED_BY = 3
"""The number of passed programs that the worker then runs itself: later forks find what these load already loaded."""


def outcome_of(
    launch: Launch, memory: MemoryAccess, options: Mapping[str, Any], against: Mapping[str, Any] | None = None
) -> Outcome:
    """Run a program in this process; with the options `against` once more, if there are any."""
    same = ""
    try:
        wrong, contents = run(launch, memory, **options)
        if against and not wrong:
            wrong, others = run(launch, memory, **options, **against)
            wrong = wrong and f"with {dict(against)}: {wrong}"
            equal = all(np.array_equal(*pair, equal_nan=True) for pair in zip(contents, others, strict=True))
            same = outcome.SAME if equal else outcome.ROUNDED
    except OutOfBounds as error:
        return Outcome(outcome.OUT_OF_BOUNDS, str(error))
    except WrongResult as error:
        return Outcome(outcome.WRONG, str(error))
    except Exception as error:
        return Outcome(outcome.ERROR, str(error)[-2000:], f"{of_exception(error)}, {type(error).__name__}")
    return Outcome(outcome.WRONG, wrong) if wrong else Outcome(outcome.PASS, detail=same)


class Worker:
    """Runs orders on the memory of a session."""

    def __init__(self, memory: MemoryAccess, cache: Path) -> None:
        """`cache`: the folder of Triton's cache, used only by this worker."""
        self._memory, self._cache = memory, cache
        self.forks = in_process(memory)
        self._last: tuple[int, Launch] | None = None
        self._cold = WARMED_BY

    def run(self, order: Order) -> Outcome:
        """The outcome of one order."""
        launch = self._launch(order.work)
        configuration = order.configuration
        how = launch, self._memory, dict(configuration.options), dict(configuration.against)
        if not self.forks:
            return outcome_of(*how)
        found = in_child(lambda: outcome_of(*how), order.seconds, configuration.environment)
        if self._cold and not found.failed:
            self._warm(launch)
        return found

    def _launch(self, work: int | Launch) -> Launch:
        """The launch of a piece of work. The launch of the last seed is cached, together with its compiled kernels."""
        if self._last is not None and isinstance(work, int) and self._last[0] == work:
            return self._last[1]
        self._clear()
        self._last = None
        if isinstance(work, Launch):
            return work
        self._last = work, Launch.of(generate(work))
        return self._last[1]

    def _clear(self) -> None:
        """Empty the compilation cache: a campaign would fill the disk."""
        for path in self._cache.iterdir():
            shutil.rmtree(path, ignore_errors=True)

    def _warm(self, launch: Launch) -> None:
        """Run a passed program in this process, on one thread: a process with several threads must not fork."""
        self._cold -= 1
        self._clear()  # a cache hit would not load the compiler
        before = os.environ.get("TPK_NUM_THREADS")
        os.environ["TPK_NUM_THREADS"] = "1"
        outcome_of(launch, self._memory, {})
        if before is None:
            del os.environ["TPK_NUM_THREADS"]
        else:
            os.environ["TPK_NUM_THREADS"] = before
        gc.collect()
        gc.freeze()  # so that garbage collection in children does not copy shared pages


def main(backend: str, cache: str, profile: str = "") -> None:
    """Answer orders until the input ends. Output of kernels goes to standard error."""
    faulthandler.enable()
    os.environ["TRITON_CACHE_DIR"] = cache
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    session = open_session(backend, load(Path(profile)) if profile else Profile())
    worker = Worker(session.memory, Path(cache))
    memory = HOST if worker.forks else session.memory.describe()["memory"]
    hello = {"memory": memory, "forks": worker.forks}
    answers.write(json.dumps(hello) + "\n")
    while True:
        try:
            order = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        assert isinstance(order, Order)
        answers.write(json.dumps(asdict(worker.run(order))) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
