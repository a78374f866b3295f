"""`fuzz`: program after program, the failing ones shrunk and written as scripts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count as count_from
from pathlib import Path

from triton_porting_kit.conformance.stress.checks import STRIDE
from triton_porting_kit.conformance.stress.generator import generate
from triton_porting_kit.conformance.stress.isolation import Isolated
from triton_porting_kit.conformance.stress.launching import Launch
from triton_porting_kit.conformance.stress.outcome import Outcome
from triton_porting_kit.conformance.stress.program import Program, size_of
from triton_porting_kit.conformance.stress.script import script_of
from triton_porting_kit.conformance.stress.shrinking import Shrunk, Writes, patience, shrink
from triton_porting_kit.conformance.stress.source import source_of


@dataclass(frozen=True)
class Failure:
    """A program that failed, and what was made of it."""

    seed: int
    outcome: Outcome
    statements: int
    shrunk: Shrunk | None
    path: Path | None
    """Of the script; None where no folder was named."""
    text: str
    """The script."""


@dataclass
class Campaign:
    """What to run, and where failures go."""

    backend: str
    worker: Isolated
    out: Path | None = None
    shrinks: bool = True
    shrink_seconds: float = 120.0
    write: Writes = source_of
    watch: Callable[[int, Program], None] = lambda tried, program: None
    ran: int = field(default=0)

    def run(self, seeds: Iterable[int], seconds: float | None = None) -> Iterator[tuple[int, Failure | None]]:
        """The programs of `seeds`, until `seconds` are over: each seed and its failure, if it has one."""
        end = None if seconds is None else time.monotonic() + seconds
        for seed in seeds:
            if end is not None and time.monotonic() >= end:
                return
            program = generate(seed)
            launch = Launch.of(program, self.write)
            outcome = self.worker.run(launch)
            self.ran += 1
            yield seed, self._failure(program, launch, outcome) if outcome.failed else None

    def _failure(self, program: Program, launch: Launch, outcome: Outcome) -> Failure:
        shrunk = None
        if self.shrinks:
            limit = patience(outcome, self.worker.seconds)
            shrunk = shrink(
                program,
                outcome,
                lambda attempt: self.worker.run(attempt, limit),
                write=self.write,
                seconds=self.shrink_seconds,
                watch=self.watch,
            )
            launch, outcome = shrunk.launch, shrunk.outcome
        text = script_of(launch, self.backend, self.worker.memory, f"A kernel that fails: {outcome}"[:600])
        path = None
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            path = self.out / f"fuzz_{program.seed}.py"
            path.write_text(text, encoding="utf-8")
        return Failure(program.seed, outcome, size_of(program), shrunk, path, text)


def seeds_of(seed: int, count: int | None) -> Iterable[int]:
    """The seeds of programs of the seed of a run: those that `tpk conform --level stress --seed` has."""
    return count_from(seed * STRIDE) if count is None else range(seed * STRIDE, seed * STRIDE + count)
