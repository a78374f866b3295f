"""A complete run: the baseline, the sample and the verdicts. It can be resumed after any mutant."""

from __future__ import annotations

import fnmatch
import json
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from triton_porting_kit import untrusted
from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.mutants import corpus, sources
from triton_porting_kit.conformance.mutants.baseline import measure, threads_of
from triton_porting_kit.conformance.mutants.mutation import CPP, PYTHON, Mutation
from triton_porting_kit.conformance.mutants.native_build import NativeBuild
from triton_porting_kit.conformance.mutants.native_reach import measure_native
from triton_porting_kit.conformance.mutants.python_sites import is_same_code
from triton_porting_kit.conformance.mutants.reach import Reach
from triton_porting_kit.conformance.mutants.score import Score
from triton_porting_kit.conformance.mutants.trying import Bench, Effort, Job, Stopped
from triton_porting_kit.conformance.mutants.unit import units_of
from triton_porting_kit.conformance.mutants.verdict import INVALID, Verdict
from triton_porting_kit.errors import PortingKitError

ABOUT, REACH, VERDICTS = "about.json", "reach.json.gz", "verdicts.jsonl"

Report = Callable[[str], None]


class MutantsError(PortingKitError):
    """The folder of a run does not match the request, or cannot be read."""


@dataclass(frozen=True)
class Order:
    """The parameters of a run."""

    count: int
    seed: int = 0
    jobs: int = 1
    folder: Path = Path("mutants-report")
    select: tuple[str, ...] = ("*",)
    """Patterns of file paths, relative to the package."""
    minutes: float = 0.0
    """The number of minutes after which no mutant is started; 0: no limit."""
    effort: Effort = field(default_factory=Effort)


@dataclass(frozen=True)
class Result:
    """The result of a run, possibly incomplete."""

    score: Score
    wanted: int
    passed_over: int
    """Mutations of the sample that compile to the same code or not at all; later ones replaced them."""
    sites: int
    """The number of mutations of all selected files."""
    about: dict[str, Any]
    complete: bool
    """Whether no mutant is left to try."""


def run(order: Order, report: Report = print) -> Result:
    """Try the mutants that have no verdict yet. Raises `PortingKitError`."""
    order.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    end = time.monotonic() + 60 * order.minutes if order.minutes else float("inf")
    files = {
        path: file
        for path, file in sources.files().items()
        if any(fnmatch.fnmatchcase(path, pattern) for pattern in order.select)
    }
    if not files:
        raise MutantsError(f"no file of the CPU backend matches {' or '.join(map(repr, order.select))}")
    contents = {path: file.read_bytes() for path, file in files.items()}
    state = sources.digest({path: file.read_bytes() for path, file in sources.files().items()})
    suite = f"{state} {sources.digest(sources.suite())}"
    about = _about(order, state)
    every = sources.mutations(contents)
    sample = Sample(every, contents, order, verdicts_in(order.folder))
    threads = threads_of(order.jobs)
    reach = Reach.load(order.folder / REACH, suite)
    units = {unit.name: unit for unit in units_of(catalogue.checks())}
    programs = list(islice(corpus.corpus(), corpus.TRACED))
    report(f"{len(every)} mutations of {len(files)} files; {len(units)} units of checks")
    measured = measure(
        reach,
        [*units.values(), *programs],
        sources.files(),
        jobs=order.jobs,
        threads=threads,
        save=lambda: reach.save(order.folder / REACH, suite),
        report=report,
        end=end,
    )
    if measured and any(mutation.language == CPP for mutation in every):
        measured = measure_native(
            reach,
            [*units.values(), *programs],
            jobs=order.jobs,
            threads=threads,
            save=lambda: reach.save(order.folder / REACH, suite),
            report=report,
            end=end,
        )
    for name, why in reach.failed.items():
        report(f"left out, because it fails on the unmodified kit: {name}: {why[:200]}")
    if measured:
        known = {name: unit for name, unit in units.items() if name in reach.seconds}
        report(f"{order.count} mutants, {sample.standing()} of them tried before")
        with tempfile.TemporaryDirectory(prefix="tpk-mutants-") as folder:
            native = NativeBuild(Path(folder), order.jobs)
            bench = Bench(reach, known, contents, order.effort, threads, native)
            try:
                for verdict in _verdicts(bench, sample, order.jobs, end):
                    _append(order.folder, verdict)
                    if verdict.verdict != INVALID:
                        report(_line(verdict, sample.standing(), order.count))
            finally:
                bench.close()
    return Result(
        Score(sample.verdicts()), order.count, sample.passed_over, len(every), about, sample.complete
    )


class Sample:
    """Hands out mutations in the order of the sample until enough of them are valid mutants. Thread-safe."""

    def __init__(
        self,
        every: Sequence[Mutation],
        contents: Mapping[str, bytes],
        order: Order,
        before: Sequence[Verdict] = (),
    ) -> None:
        self._count = order.count
        self._contents = contents
        self._seed = order.seed
        self._before = {verdict.mutation.name: verdict for verdict in before}
        effort = asdict(order.effort)
        self._found = {name: found for name, found in self._before.items() if found.stands(effort)}
        self._left = iter(sources.sample(every, order.seed))
        self._taken: list[Mutation] = []
        self._pending = 0
        self._same = 0
        self._exhausted = False
        self._changed = threading.Condition()

    def next(self) -> Mutation | None:
        """The next mutation without a verdict, or None if there are enough. Blocks while pending ones decide that."""
        with self._changed:
            while True:
                if len(self._valid()) >= self._count:
                    return None
                if len(self._valid()) + self._pending < self._count:
                    mutation = next(self._left, None)
                    if mutation is None:
                        self._exhausted = not self._pending
                        return None
                    if mutation.language == PYTHON and is_same_code(mutation, self._contents[mutation.path]):
                        self._same += 1
                        continue
                    self._taken.append(mutation)
                    if mutation.name in self._found:
                        continue
                    self._pending += 1
                    return mutation
                self._changed.wait()

    def add(self, mutation: Mutation, verdict: Verdict | None) -> None:
        """Record the verdict of a mutation that was handed out; None if the run ended first."""
        with self._changed:
            self._pending -= 1
            if verdict is not None:
                self._found[mutation.name] = verdict
            self._changed.notify_all()

    def _valid(self) -> list[Verdict]:
        found = (self._found.get(mutation.name) for mutation in self._taken)
        return [verdict for verdict in found if verdict is not None and verdict.verdict != INVALID]

    def verdicts(self) -> list[Verdict]:
        """The verdicts of the sample in order, including those of earlier runs that more effort may still change."""
        with self._changed:
            known = {**self._before, **self._found}.values()
        valid = [verdict for verdict in known if verdict.verdict != INVALID]
        return sorted(valid, key=lambda verdict: verdict.mutation.rank(self._seed))[: self._count]

    def standing(self) -> int:
        """The number of mutants known so far that need not be tried again."""
        with self._changed:
            return sum(verdict.verdict != INVALID for verdict in self._found.values())

    @property
    def complete(self) -> bool:
        """Whether all requested mutants, or all that exist, were tried with full effort."""
        with self._changed:
            return self._exhausted or len(self._valid()) >= self._count

    @property
    def passed_over(self) -> int:
        """The number of considered mutations that do not compile or compile to the same code."""
        taken = [self._found.get(mutation.name) for mutation in self._taken]
        return self._same + sum(v is not None and v.verdict == INVALID for v in taken)


def _verdicts(bench: Bench, sample: Sample, jobs: int, end: float) -> Iterator[Verdict]:
    """Try mutants on all jobs, and yield each verdict when it is known."""
    found: queue.SimpleQueue[Verdict | None] = queue.SimpleQueue()
    stop = threading.Event()

    def work() -> None:
        try:
            with Job(bench) as job:
                while time.monotonic() < end and not stop.is_set():
                    mutation = sample.next()
                    if mutation is None:
                        return
                    verdict = None
                    try:
                        verdict = job.try_mutant(mutation)
                    except Stopped:
                        return
                    finally:
                        sample.add(mutation, verdict)
                    found.put(verdict)
        finally:
            found.put(None)

    with ThreadPoolExecutor(jobs) as pool:
        workers = [pool.submit(work) for _ in range(jobs)]
        try:
            for _ in range(jobs):
                while (verdict := found.get()) is not None:
                    yield verdict
        finally:
            stop.set()
            bench.close()  # after Ctrl-C, do not wait for pending units
    for worker in workers:
        worker.result()


def _line(verdict: Verdict, number: int, count: int) -> str:
    mutation = verdict.mutation
    by = f" by {verdict.caught_by}" if verdict.caught_by else ""
    return (
        f"{number}/{count} {mutation.path}:{mutation.line} {mutation.operator}: {verdict.verdict}{by} "
        f"({verdict.seconds:.1f} s)"
    )


# --- the folder --------------------------------------------------------------------------------------


def _about(order: Order, state: str) -> dict[str, Any]:
    """Write the description of the run to its folder. Raises `MutantsError` if the folder is of another run."""
    from triton_porting_kit.conformance.execution.run import revision
    from triton_porting_kit.conformance.mandatory import SUITE_VERSION

    commit, dirty = revision()
    about: dict[str, Any] = {
        "sources": state,
        "seed": order.seed,
        "select": list(order.select),
        "effort": asdict(order.effort),
        "suite_version": SUITE_VERSION,
        "commit": commit,
        "dirty": dirty,
    }
    path = order.folder / ABOUT
    if path.is_file():
        before = untrusted.read_json(path, untrusted.RESULTS, MutantsError)
        different = [key for key in ("sources", "seed", "select") if before.get(key) != about[key]]
        if different:
            told = ", ".join(f"{key} ({before.get(key)!r:.80}, now {about[key]!r:.80})" for key in different)
            raise MutantsError(
                f"the run in {order.folder} cannot be continued, because its parameters differ: {told}. "
                "Start a new run with another --report"
            )
        about = {**before, "effort": about["effort"]}
    path.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return about


def verdicts_in(folder: Path) -> list[Verdict]:
    """The verdicts stored in a run's folder. Raises `MutantsError`."""
    path = folder / VERDICTS
    if not path.is_file():
        return []
    found = []
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            found.append(Verdict.from_json(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            if number == len(lines):
                break  # the last line is incomplete if the run was killed
            raise MutantsError(f"{path}, line {number}, is no verdict: {error}") from error
    return found


def _append(folder: Path, verdict: Verdict) -> None:
    with (folder / VERDICTS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(verdict.to_json()) + "\n")
