"""`fuzz`: run program after program, shrink the failing ones and write them as scripts."""

from __future__ import annotations

import queue
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count as count_from
from pathlib import Path

from triton_porting_kit.conformance.stress.configuration import DEFAULT, Configuration
from triton_porting_kit.conformance.stress.generator import FAMILIES, STRIDE, generate
from triton_porting_kit.conformance.stress.isolation import Isolated
from triton_porting_kit.conformance.stress.launching import Launch
from triton_porting_kit.conformance.stress.outcome import SAME, WRONG, Outcome
from triton_porting_kit.conformance.stress.program import Program, size_of
from triton_porting_kit.conformance.stress.script import script_of
from triton_porting_kit.conformance.stress.shrinking import Shrunk, Writes, patience, shrink
from triton_porting_kit.conformance.stress.source import source_of
from triton_porting_kit.errors import PortingKitError
from triton_porting_kit.untrusted import write_file

SHRUNK_ALIKE = 3
"""The number of similar failures to shrink; further ones are only listed."""


@dataclass(frozen=True)
class Failure:
    """A program that failed, and its shrunk form."""

    seed: int
    outcome: Outcome
    statements: int
    shrunk: Shrunk | None
    path: Path | None
    """The path of the script; None if no folder was given, or if the failure is one of many similar ones."""
    text: str
    """The text of the script."""
    configuration: Configuration = DEFAULT


@dataclass
class Campaign:
    """What to run, and where to write failures."""

    backend: str
    workers: Sequence[Isolated]
    """Each worker runs one program at a time."""
    out: Path | None = None
    shrinks: bool = True
    shrink_seconds: float = 120.0
    write: Writes | None = None
    """Writes the text of kernels. The default writes Triton's language."""
    watch: Callable[[int, Program], None] = lambda tried, program: None
    configurations: tuple[Configuration, ...] = (DEFAULT,)
    ran: int = field(default=0)
    """The number of programs that ran in all configurations."""
    same: int = field(default=0)
    """The number of runs whose results were equal to those with the options that they were compared with."""
    _alike: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(
        self, seeds: Iterable[int], seconds: float | None = None
    ) -> Iterator[tuple[int, tuple[Failure, ...]]]:
        """Run the programs of `seeds` until `seconds` have passed. Yields each seed with its failures, in the order of
        completion.

        Raises what a worker raises.
        """
        end = None if seconds is None else time.monotonic() + seconds
        left, done = iter(seeds), queue.SimpleQueue[tuple[int, tuple[Failure, ...]] | BaseException | None]()
        stopped = threading.Event()

        def next_seed() -> int | None:
            with self._lock:
                over = stopped.is_set() or (end is not None and time.monotonic() >= end)
                return None if over else next(left, None)

        def serve(worker: Isolated) -> None:
            try:
                while (seed := next_seed()) is not None:
                    done.put((seed, self._try(worker, seed)))
                done.put(None)
            except BaseException as error:
                done.put(error)

        threads = [threading.Thread(target=serve, args=(w,), daemon=True) for w in self.workers]
        for thread in threads:
            thread.start()
        try:
            working = len(threads)
            while working:
                found = done.get()
                if isinstance(found, BaseException):
                    raise found
                if found is None:
                    working -= 1
                    continue
                self.ran += 1
                yield found
        finally:
            stopped.set()

    def _try(self, worker: Isolated, seed: int) -> tuple[Failure, ...]:
        """The failures of a program in all configurations."""
        launch = None if self.write is None else Launch.of(generate(seed), self.write)
        outcomes = [
            (configuration, worker.run(seed if launch is None else launch, configuration=configuration))
            for configuration in self.configurations
        ]
        with self._lock:
            self.same += sum(found.detail == SAME for _, found in outcomes)
        return tuple(self._failure(worker, seed, *found) for found in outcomes if found[1].failed)

    def _failure(
        self, worker: Isolated, seed: int, configuration: Configuration, outcome: Outcome
    ) -> Failure:
        program, write = generate(seed), self.write or source_of
        launch, shrunk, path = Launch.of(program, write), None, None
        with self._lock:
            self._alike[_mark(outcome)] += 1
            many = self._alike[_mark(outcome)] > SHRUNK_ALIKE
        if self.shrinks and not many:
            limit = patience(outcome, worker.seconds)
            shrunk = shrink(
                program,
                outcome,
                lambda attempt: worker.run(attempt, limit, configuration),
                write=write,
                seconds=self.shrink_seconds,
                watch=self.watch,
            )
            launch, outcome = shrunk.launch, shrunk.outcome
        fails = configuration
        if configuration.against:
            first = worker.run(launch, patience(outcome, worker.seconds), configuration.first)
            fails = configuration.first if first.failed else configuration.second
        title = f"A kernel that fails{f' ({configuration})' if str(configuration) else ''}: {outcome}"[:600]
        text = script_of(launch, self.backend, worker.memory, title, fails)
        if self.out is not None and not many:
            name = "_".join(filter(None, (f"fuzz_{seed}", re.sub(r"\W+", "_", str(configuration)))))
            path = self.out / f"{name}.py"
            write_file(path, text.encode(), PortingKitError)
        return Failure(seed, outcome, size_of(program), shrunk, path, text, configuration)


def _mark(outcome: Outcome) -> str:
    """A key that failures with one cause mostly share: their kind, and the message without names and numbers."""
    lines = outcome.message.strip().splitlines() if outcome.kind != WRONG else []
    said = re.sub(
        r"[%\w]*\d[\w.]*", "#", " ".join(lines[:1] + lines[-1:])
    )  # the kernel's source lies between them
    return f"{outcome.kind} {outcome.detail} {said[:200]}"


def seeds_of(seed: int, count: int | None, about: Sequence[str] = tuple(FAMILIES)) -> Iterable[int]:
    """The seeds that belong to the seed of a run, in turn one of each family that `about` names.

    Those of programs about operations are also those of `tpk conform --level stress`.
    """
    numbers, firsts = count_from() if count is None else range(count), [FAMILIES[name] for name in about]
    return (seed * STRIDE + number // len(firsts) + firsts[number % len(firsts)] for number in numbers)
