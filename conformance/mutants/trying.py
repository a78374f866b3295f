"""Tries one mutant on the checks that run its lines, on stress and on the corpus."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

from triton_porting_kit.conformance.mutants import corpus, verdict
from triton_porting_kit.conformance.mutants.client import Nursery, Server
from triton_porting_kit.conformance.mutants.mutation import CPP, Mutation
from triton_porting_kit.conformance.mutants.native_build import Built, NativeBuild, NoMutant
from triton_porting_kit.conformance.mutants.order import candidates, within
from triton_porting_kit.conformance.mutants.outcome import CRASH, TIMEOUT, Outcome
from triton_porting_kit.conformance.mutants.reach import Reach
from triton_porting_kit.conformance.mutants.server import WARM
from triton_porting_kit.conformance.mutants.sources import module_of
from triton_porting_kit.conformance.mutants.unit import Unit
from triton_porting_kit.conformance.mutants.verdict import Verdict

SHORTEST, TIMES = 20.0, 10.0
"""The time limit of a unit: at least `SHORTEST` seconds, and `TIMES` its time on the unmodified kit."""
PROGRAM_SECONDS = 20.0
"""Time limit of a random program."""


class Stopped(Exception):
    """The run is ending, and no further unit can be run."""


@dataclass(frozen=True)
class Effort:
    """The effort for one mutant, in seconds. Units count with their time on the unmodified kit."""

    suite: float = 120.0
    """Seconds of units of the suite; 0: all that may catch it."""
    stress: float = 0.0
    """Seconds of `tpk fuzz`."""
    corpus: float = 60.0
    """Seconds of programs of the corpus."""
    also: float = 0.0
    """Seconds of units that are tried after the first catch, to find other checks that catch the mutant."""


@dataclass
class Bench:
    """The state that all jobs share."""

    reach: Reach
    units: Mapping[str, Unit]
    """The units of the suite, by name."""
    contents: Mapping[str, bytes]
    """The mutated files, by path relative to the package."""
    effort: Effort
    threads: int
    native: NativeBuild
    codes: dict[str, str] = field(default_factory=dict)
    """Digests of the code to which the unmodified kit compiles programs."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    _nurseries: dict[str, Nursery] = field(default_factory=dict)
    _closed: bool = False

    def nursery(self, package: str) -> Nursery:
        """The process from which servers for mutants of a package are forked."""
        with self.lock:
            if self._closed:
                raise Stopped
            if package not in self._nurseries:
                self._nurseries[package] = Nursery(package, self.threads)
            return self._nurseries[package]

    def close(self) -> None:
        """Kill all processes; later calls of `nursery` raise `Stopped`."""
        with self.lock:
            self._closed = True
            for nursery in self._nurseries.values():
                nursery.close()
            self._nurseries.clear()

    @cached_property
    def uses(self) -> Mapping[str, Mapping[str, Sequence[int]]]:
        """The lines that contain an identifier, by identifier and file."""
        found: dict[str, dict[str, list[int]]] = {}
        for path, content in self.contents.items():
            for number, line in enumerate(content.decode().splitlines(), 1):
                for name in set(re.findall(r"[A-Za-z_]\w*", line)):
                    found.setdefault(name, {}).setdefault(path, []).append(number)
        return found

    @cached_property
    def traced(self) -> dict[str, Unit]:
        """The programs of the corpus whose lines are recorded."""
        programs = islice(corpus.corpus(), corpus.TRACED)
        return {unit.name: unit for unit in programs if unit.name in self.reach.seconds}


class Job:
    """Tries mutants one after another. Use it as a context manager."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._clean: Server | None = None

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._clean is not None:
            self._clean.close()

    @property
    def clean(self) -> Server:
        """A server with the unmodified kit, to confirm that a unit that fails with a mutant passes without it."""
        if self._clean is not None and not self._clean.alive:
            self._clean.close()
            self._clean = None
        if self._clean is None:
            self._clean = Server(self._bench.nursery("compiler"), {})
            self._clean.warm()
        return self._clean

    def try_mutant(self, mutation: Mutation) -> Verdict:
        """Try a mutation, and return its verdict."""
        start = time.monotonic()
        source = self._bench.contents[mutation.path]
        changed = mutation.apply(source)
        try:
            if mutation.language == CPP:
                with Built(self._bench.native, mutation, changed) as modules:
                    found = self._judge(mutation, modules)
            else:
                found = self._judge(mutation, {module_of(mutation.path): changed})
        except NoMutant as why:
            found = {"verdict": verdict.INVALID, "message": str(why)}
        seconds = round(time.monotonic() - start, 2)
        effort = asdict(self._bench.effort)
        return Verdict(mutation, diff=mutation.diff(source), seconds=seconds, effort=effort, **found)

    def _judge(self, mutation: Mutation, replaced: Mapping[str, bytes | Path]) -> dict[str, Any]:
        trial = _Trial(self, self._bench, mutation, replaced)
        try:
            return trial.judge()
        finally:
            trial.close()


class _Trial:
    def __init__(
        self, job: Job, bench: Bench, mutation: Mutation, content: Mapping[str, bytes | Path]
    ) -> None:
        self._job, self._bench, self._mutation, self._content = job, bench, mutation, content
        self._room = mutation.path.partition("/")[0]
        self._flaky: list[str] = []
        self._server: Server | None = None
        self._last_code = ""

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def judge(self) -> dict[str, Any]:
        """The fields of the verdict."""
        bench, effort = self._bench, self._bench.effort
        found_units = candidates(self._mutation, bench.reach, bench.uses)
        suite = [name for name in found_units.names if name in bench.units]
        known: dict[str, Any] = {"reaching": len(suite)}
        if failed := self._open():
            return known | {"verdict": verdict.CAUGHT, **failed}
        tried = 0
        chosen = within(suite, bench.reach, effort.suite)
        rest = iter(chosen)
        for name in rest:
            tried += 1
            if found := self._notices(bench.units[name]):
                also = self._also(rest) if effort.also else ()
                return known | {"verdict": verdict.CAUGHT, "tried": tried, "also": also, **self._who(found)}
        known |= {"tried": tried, "flaky": tuple(self._flaky)}
        if effort.stress and (found := self._programs(corpus.stress(), effort.stress)):
            return known | {"verdict": verdict.STRESSED, **self._who(found)}
        return known | self._compare(found_units.running, bool(suite))

    # --- its processes -------------------------------------------------------------------------------

    def _open(self) -> dict[str, Any]:
        """Start a server. If that fails, returns which check caught the mutant and how."""
        server = self._make()
        if failure := server.failure:
            # Every check would fail: none can import the backend.
            return {
                "caught_by": "every check",
                "level": "registration",
                "how": failure.kind,
                "stage": "imported",
                "message": failure.message,
            }
        found = server.warm()
        if not found.caught:
            return {}
        if found.kind in (CRASH, TIMEOUT):
            found = Outcome(found.kind, found.seconds, WARM[0], found.stage, found.message)
        return self._who(found)

    def _make(self) -> Server:
        self.close()
        self._server = Server(self._bench.nursery(self._room), self._content)
        return self._server

    def _run(self, unit: Unit, seconds: float, *, all_checks: bool = False) -> Outcome:
        server = self._server
        if server is None:
            server = self._make()
            server.warm()
        found = server.run(unit, seconds, all_checks=all_checks)
        if not server.alive:
            self._bench.nursery(self._room)  # raises `Stopped` if the server died because the run is ending
            self.close()
        return found

    # --- the suite -----------------------------------------------------------------------------------

    def _limit(self, unit: Unit) -> float:
        return max(SHORTEST, TIMES * self._bench.reach.seconds.get(unit.name, 0.0))

    def _notices(self, unit: Unit) -> Outcome | None:
        """Run a unit; its failure counts only if it is repeatable and does not occur on the unmodified kit."""
        limit = self._limit(unit)
        found = self._run(unit, limit)
        if not found.caught:
            return None
        again = found if found.kind == TIMEOUT else self._run(unit, limit)
        if again.caught and not self._job.clean.run(unit, limit).caught:
            return found if found.check else Outcome(**{**vars(found), "check": unit.checks[0]})
        self._flaky.append(unit.name)
        return None

    def _also(self, names: Iterable[str]) -> tuple[str, ...]:
        """The checks of the next units that also catch the mutant."""
        found: list[str] = []
        for name in within(list(names), self._bench.reach, self._bench.effort.also):
            unit = self._bench.units[name]
            outcome = self._run(unit, self._limit(unit), all_checks=True)
            found += outcome.failed or (unit.checks[:1] if outcome.caught else ())
        return tuple(found)

    @staticmethod
    def _who(found: Outcome) -> dict[str, Any]:
        level = found.check.partition("/")[0]
        return {
            "caught_by": found.check,
            "level": level,
            "how": found.kind,
            "stage": found.stage,
            "message": found.message[:300],
        }

    # --- random programs -----------------------------------------------------------------------------

    def _programs(self, units: Iterator[Unit], seconds: float) -> Outcome | None:
        """Run programs for this many seconds, and return the first failure."""
        end = time.monotonic() + seconds
        for unit in units:
            if time.monotonic() > end:
                break
            if found := self._told_apart(unit):
                return found
        return None

    def _told_apart(self, unit: Unit) -> Outcome | None:
        found = self._run(unit, PROGRAM_SECONDS)
        self._last_code = found.code
        if not found.caught:
            return None
        again = found if found.kind == TIMEOUT else self._run(unit, PROGRAM_SECONDS)
        if again.caught and not self._job.clean.run(unit, PROGRAM_SECONDS).caught:
            return Outcome(**{**vars(found), "check": unit.name})
        self._flaky.append(unit.name)
        return None

    def _compare(self, names: Sequence[str], reached: bool) -> dict[str, Any]:
        """Run the corpus, and return the verdict: whether a program distinguishes the mutant from the original."""
        bench, end = self._bench, time.monotonic() + self._bench.effort.corpus
        running = sorted((n for n in names if n in bench.traced), key=lambda n: (bench.reach.seconds[n], n))
        others = (unit for unit in corpus.corpus() if unit.name not in running)
        counts = {"programs": 0, "running": 0, "other_code": 0}

        def result() -> dict[str, Any]:
            return {**counts, "flaky": tuple(self._flaky)}

        for name in running:
            if time.monotonic() > end:
                break
            unit = bench.traced[name]
            counts["programs"] += 1
            counts["running"] += 1
            if found := self._told_apart(unit):
                return {"verdict": verdict.MISSED, **result(), **self._who(found)}
            counts["other_code"] += self._compiles_otherwise(unit)
        # If no program is known to run its lines, others are unlikely to run them.
        end = min(end, time.monotonic() + self._bench.effort.corpus * (1.0 if running else 0.25))
        for unit in others:
            if time.monotonic() > end:
                break
            counts["programs"] += 1
            if found := self._told_apart(unit):
                return {"verdict": verdict.MISSED, **result(), **self._who(found)}
        if not reached:
            return {"verdict": verdict.NOT_REACHED, **result()}
        return {"verdict": verdict.EQUIVALENT if running else verdict.UNOBSERVED, **result()}

    def _compiles_otherwise(self, unit: Unit) -> bool:
        """Whether the mutant compiles a program that passed to other code than the unmodified kit does."""
        codes = self._bench.codes
        if unit.name not in codes:
            codes[unit.name] = self._job.clean.run(unit, PROGRAM_SECONDS).code
        return self._last_code != codes[unit.name]
