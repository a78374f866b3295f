"""`shrink`: reduces a failing program to a small one with the same kind of failure."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from triton_porting_kit.conformance.stress.launching import Launch
from triton_porting_kit.conformance.stress.outcome import TIMEOUT, Outcome
from triton_porting_kit.conformance.stress.program import IllConditioned, Malformed, Program
from triton_porting_kit.conformance.stress.reductions import candidates
from triton_porting_kit.conformance.stress.source import source_of

Runs = Callable[[Launch], Outcome]
"""Runs a program in a process that may crash."""
Writes = Callable[[Program], str]
Watches = Callable[[int, Program], None]
"""Called with the number of programs tried and the smallest so far."""


@dataclass(frozen=True)
class Shrunk:
    """The result of shrinking."""

    program: Program
    launch: Launch
    outcome: Outcome
    tried: int


def shrink(
    program: Program,
    failure: Outcome,
    run: Runs,
    *,
    write: Writes = source_of,
    seconds: float = 120.0,
    watch: Watches = lambda tried, program: None,
) -> Shrunk:
    """Replace a failing program by smaller ones that fail alike, until none does or `seconds` have passed."""
    end = time.monotonic() + seconds
    best, launch, outcome, tried = program, Launch.of(program, write), failure, 0
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for candidate in candidates(best):
            if time.monotonic() >= end:
                break
            try:
                attempt = Launch.of(candidate, write)
            except (IllConditioned, Malformed):
                continue
            tried += 1
            found = run(attempt)
            if found.is_like(failure):
                best, launch, outcome, progress = candidate, attempt, found, True
                watch(tried, best)
                break
    return Shrunk(best, launch, outcome, tried)


def patience(failure: Outcome, seconds: float) -> float:
    """The time limit of a candidate, given that of a program: at most 15 seconds if the failure is a timeout."""
    return min(seconds, 15.0) if failure.kind == TIMEOUT else seconds
