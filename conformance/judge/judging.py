"""`judge`: runs one candidate on one task and collects evidence."""

from __future__ import annotations

import contextlib
import hashlib
import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import triton_porting_kit
from triton_porting_kit.conformance.judge import provenance, sandbox
from triton_porting_kit.conformance.judge.errors import JudgeError, TaskError
from triton_porting_kit.conformance.judge.findings import findings, time_of, verdict
from triton_porting_kit.conformance.judge.oracle import Expected, check_depends, expected, expected_like
from triton_porting_kit.conformance.judge.process import Answer, CandidateProcess, Nursery, seconds_of
from triton_porting_kit.conformance.judge.task import Call, Random, Task
from triton_porting_kit.conformance.judge.values import content
from triton_porting_kit.conformance.types import Array

FORMAT = 1
CHECKS_PER_CASE = 2
CHECKS_AMONG_TIMED = 3
AGAIN = 3
"""The factor by which the number of timed calls grows when times count against a candidate."""
TIMES = {"hidden", "roof", "streams"}
_WANTED_BYTES = 1 << 20
_RECORDED_BYTES = 64 << 20
"""Launches are recorded of the case with the largest inputs up to the first of these numbers of bytes, else of the case
with the smallest, up to the second."""
_KEPT_BYTES = 8 << 20
"""The largest size, in bytes, of a result together with its expected values that is kept as evidence."""


@dataclass(frozen=True)
class Request:
    """A candidate and the options of its judgement."""

    task: Task
    task_path: Path
    candidate: bytes
    name: str
    backend: str
    arrays: str = ""
    rounds: int = 15
    seconds: float = 60.0
    allowed: tuple[str, ...] = ()
    quick: bool = False
    """Whether to stop after the first phase with findings."""


@dataclass
class Kept:
    """Results and expected values that are kept so that `tpk verify` can repeat the comparison."""

    arrays: dict[str, Array] = field(default_factory=dict)


Progress = Callable[[str], None]


def judge(
    request: Request, nursery: Nursery, progress: Progress = lambda what: None
) -> tuple[dict[str, Any], Kept]:
    """Run a candidate through all phases. Returns the evidence with its findings, and kept arrays.

    Raises `TaskError`, `JudgeError`.
    """
    task = request.task
    if task.needs_torch and not nursery.torch:
        raise JudgeError("this task needs torch in the processes of candidates")
    random = np.random.default_rng(secrets.randbits(128))
    check_depends(task, random)
    cases = [*task.cases(random)]
    evidence: dict[str, Any] = {
        "format": FORMAT,
        "kit_version": triton_porting_kit.__version__,
        "task": {
            "name": task.name,
            "format": task.format,
            "entry": task.entry,
            "sha256": hashlib.sha256(request.task_path.read_bytes()).hexdigest(),
        },
        "candidate": {"name": request.name, "sha256": hashlib.sha256(request.candidate).hexdigest()},
        "backend": request.backend,
        "task_readable": sandbox.can_read(request.task_path, sandbox.readable_folders()),
        "allowed_operators": [*task.allowed, *request.allowed],
        "opened": {},
        "calls": [],
        "mute": [],
        "records": False,
        "recorded": [],
        "control": [],
        "notes": [],
        "work": {"bytes": 0.0, "flops": 0.0},
        "roof": {},
    }
    kept = Kept()
    _Judging(request, nursery, random, cases, evidence, kept, progress).run()
    evidence["findings"] = findings(evidence)
    evidence["verdict"] = verdict(evidence["findings"])
    evidence["time"] = time_of(evidence)
    return evidence, kept


@dataclass
class _Judging:
    request: Request
    nursery: Nursery
    random: Random
    cases: Sequence[Mapping[str, Any]]
    evidence: dict[str, Any]
    kept: Kept
    progress: Progress
    before: list[Expected] = field(default_factory=list)
    """The expected results of one call of the timed case."""
    sizes: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    """The bytes of the inputs of each case, and the case."""

    def run(self) -> None:
        """Run the phases; later ones depend on the outcome of earlier ones."""
        self.progress("calling the candidate on fresh inputs")
        with self._process() as process:
            opened = self._open(process)
            if opened:
                self._main(process)
            process.close()
            self.evidence["printed"] = process.printed
        if not opened or all(call["failure"] for call in self.evidence["calls"]):
            return
        for says, phase in (
            ("calling the candidate with launches disabled", self._muted),
            ("recording the operands of the candidate's kernels", self._recorded),
            ("measuring the judge's own overhead", self._control),
        ):
            if self.request.quick and findings(self.evidence):
                break
            self.progress(says)
            phase()
        if any(item["code"] in TIMES for item in findings(self.evidence)):
            self.progress("repeating timed calls to confirm suspicious times")
            self._again()

    @contextlib.contextmanager
    def _process(self) -> Iterator[CandidateProcess]:
        """A candidate's process. Its notes are added to the evidence."""
        with CandidateProcess(self.nursery, self.request.seconds) as process:
            try:
                yield process
            finally:
                process.close()
                self.evidence["notes"] += process.notes

    def _open(
        self, process: CandidateProcess, *, first: bool = True, mute: bool = False, record: str = ""
    ) -> bool:
        first = first and not (mute or record)
        request = self.request
        said = process.open(
            request.task, request.candidate, request.backend, request.arrays, mute=mute, record=record
        )
        if "failed" in said:
            where, message = said["failed"].get("where", ""), said["failed"].get("message", "")
            if where == "backend":
                raise JudgeError(f"backend {request.backend!r} cannot be used here: {message}")
            if first:
                self.evidence["opened"] = {"kind": where, **said["failed"]}
            return False
        if first:
            self.evidence["opened"] = said["opened"]
        return True

    # --- with the candidate ------------------------------------------------------------------------------

    def _main(self, process: CandidateProcess) -> None:
        task = self.request.task
        for case in self.cases:
            for number in range(CHECKS_PER_CASE):
                call = task.make(self.random, case)
                self.sizes.append((_bytes(call), case))
                if not self._check(process, call, case, reuse=number > 0, keep=number == 0):
                    return
        call = task.make(self.random, task.timed)
        self.sizes.append((_bytes(call), task.timed))
        before = expected(task, call, self.random)
        self.before = before
        if not self._one(process, call, task.timed, before, "check", reuse=True):
            return
        self._note_work(call)
        order = ["timed"] * self.request.rounds + ["check"] * CHECKS_AMONG_TIMED
        self.random.shuffle(order)
        for phase in order:
            call = task.make(self.random, task.timed)
            wanted = expected_like(task, call, before)
            if not self._one(
                process, call, task.timed, wanted, phase, reuse=bool(self.random.random() < 0.7)
            ):
                return

    def _check(
        self, process: CandidateProcess, call: Call, case: Mapping[str, Any], *, reuse: bool, keep: bool
    ) -> bool:
        wanted = expected(self.request.task, call, self.random)
        return self._one(process, call, case, wanted, "check", reuse=reuse, keep=keep)

    def _one(
        self,
        process: CandidateProcess,
        call: Call,
        case: Mapping[str, Any],
        wanted: Sequence[Expected],
        phase: str,
        *,
        reuse: bool,
        keep: bool = False,
    ) -> bool:
        """Make one call and record it. Returns whether the process can take another."""
        answer = process.call(self.request.task, call, check=phase == "check", reuse=reuse)
        record = self._record(answer, call, wanted, phase, _shown(case))
        self.evidence["calls"].append(record)
        if keep and answer.results is not None and not call.own_check:
            self._keep(len(self.evidence["calls"]) - 1, answer.results, wanted)
        return answer.kind in ("", "results")

    def _record(
        self, answer: Answer, call: Call, wanted: Sequence[Expected], phase: str, case: str
    ) -> dict[str, Any]:
        said = answer.said
        record: dict[str, Any] = {
            "phase": phase,
            "case": case,
            "failure": answer.failure,
            "kind": answer.kind if answer.failure else "",
            "inputs": hashlib.sha256(b"".join(content(leaf) for leaf in call.leaves)).hexdigest()[:16],
            "comparisons": [],
            "own_check": "",
            "window": answer.window,
            "wall": seconds_of(said.get("wall")) if not answer.failure else 0.0,
            "device": seconds_of(said["device"]) if said.get("device") is not None else None,
            "late": bool(said.get("late")),
            "launches": _whole(said.get("launches")),
            "threads": _whole(said.get("threads")),
        }
        if not answer.failure and not (
            math.isfinite(record["wall"]) and math.isfinite(record["device"] or 0.0)
        ):
            record |= {
                "failure": "the reported time is not a finite number",
                "kind": "forged",
                "wall": 0.0,
                "device": None,
            }
        record |= {
            key: _texts(said.get(key)) for key in ("operators", "replaced", "lazy", "changed", "timers")
        }
        if answer.results is not None:
            if call.own_check is not None:
                record["own_check"] = call.own_check(answer.results)[:500]
            else:
                record["comparisons"] = [
                    item.compare(values) for item, values in zip(wanted, answer.results, strict=True)
                ]
        return record

    def _keep(self, number: int, results: Sequence[Array], wanted: Sequence[Expected]) -> None:
        for position, (actual, item) in enumerate(zip(results, wanted, strict=True)):
            arrays = {"actual": actual, "expected": item.values}
            if item.allowed is not None:
                arrays["allowed"] = item.allowed
            if sum(array.nbytes for array in arrays.values()) <= _KEPT_BYTES:
                self.kept.arrays |= {f"{number}.{position}.{name}": array for name, array in arrays.items()}

    # --- without ---------------------------------------------------------------------------------------------

    def _muted(self) -> None:
        """Run the candidate with launches disabled: no kernel can have computed results that are right then."""
        task, case = self.request.task, self.cases[0]
        with self._process() as process:
            if not self._open(process, mute=True):
                return
            for number in range(2):
                call = task.make(self.random, case)
                wanted = expected(task, call, self.random)
                answer = process.call(task, call, check=True, reuse=number > 0)
                self.evidence["mute"].append(self._record(answer, call, wanted, "mute", _shown(case)))
                if answer.kind not in ("", "results", "error"):
                    return

    def _recorded(self) -> None:
        """Run the candidate while its launches are recorded: two calls with different inputs."""
        task, case = self.request.task, self._recorded_case()
        if case is None:
            return
        with self._process() as process:
            folder, done = process.work / secrets.token_hex(8), set[Path]()
            if not self._open(process, record=folder.name):
                self.evidence["recorded"].append(provenance.unread("the candidate cannot be loaded again"))
                return
            found: list[provenance.Recording] = []
            for _ in range(2):
                call = task.make(self.random, case)
                answer = process.call(task, call, check=True, reuse=False)
                if answer.results is None:
                    why = f"it does not answer in the process that records: {answer.failure}"
                    self.evidence["recorded"].append(provenance.unread(why))
                    return
                made = _whole(answer.said.get("launches")) - sum(one.made for one in found)
                found.append(provenance.Recording.of(folder, done, call, answer.results, made))
            self.evidence["recorded"] += provenance.compare(*found)

    def _recorded_case(self) -> Mapping[str, Any] | None:
        """The case whose launches are recorded; None if all are too large."""
        most = max((size for size, _ in self.sizes if size <= _WANTED_BYTES), default=0)
        size = most or min(size for size, _ in self.sizes)
        return next(case for own, case in self.sizes if own == size) if size <= _RECORDED_BYTES else None

    def _control(self) -> None:
        """Measure the judge's own overhead per call, and the limits of the machine."""
        task = self.request.task
        with self._process() as process:
            process_arrays = self.evidence["opened"]["arrays"]
            said = process.open(None, b"", self.request.backend, process_arrays)
            if "failed" in said:
                raise JudgeError(f"the process without a candidate failed: {said['failed']['message']}")
            self.evidence["records"] = said["opened"].get("records") == "True"
            call = task.make(self.random, task.timed)
            process.call(None, call, check=False, reuse=True)
            for _ in range(max(self.request.rounds, 5)):
                answer = process.call(None, call, check=False, reuse=True)
                if answer.failure:
                    raise JudgeError(f"the process without a candidate failed: {answer.failure}")
                self.evidence["control"].append(answer.window)
            floats = [leaf.kind.name for leaf in call.leaves if leaf.kind.is_float]
            flops = self.evidence["work"]["flops"] > 0
            key = self.request.backend, process_arrays, floats[0] if floats else "fp32", flops
            if key not in self.nursery.roofs:
                self.nursery.roofs[key] = process.measure(key[2], flops)
            self.evidence["roof"] = self.nursery.roofs[key]

    def _again(self) -> None:
        """Repeat timed calls, alternating with calls of the control: other load on the machine may have slowed only one
        of the two."""
        task, request = self.request.task, self.request
        with self._process() as process, self._process() as control:
            said = control.open(None, b"", request.backend, self.evidence["opened"]["arrays"])
            if "failed" in said or not self._open(process, first=False):
                return
            self.evidence["repeated_from"] = len(self.evidence["calls"])
            for number in range(2 + AGAIN * request.rounds):
                call = task.make(self.random, task.timed)
                wanted = expected_like(task, call, self.before)
                answer = control.call(None, call, check=False, reuse=True)
                if answer.failure:
                    raise JudgeError(f"the process without a candidate failed: {answer.failure}")
                phase = "timed" if number >= 2 else "check"
                if not self._one(process, call, task.timed, wanted, phase, reuse=True):
                    return
                if number >= 2:
                    self.evidence["control"].append(answer.window)

    def _note_work(self, call: Call) -> None:
        work = self.request.task.work(call)
        moved = work.bytes
        if moved is None:
            moved = float(sum(leaf.values.size * leaf.kind.storage.itemsize for leaf in call.leaves))
            moved += sum(math.prod(shape) * kind.storage.itemsize for kind, shape in call.results)
        self.evidence["work"] = {"bytes": float(moved), "flops": float(work.flops)}


def _bytes(call: Call) -> int:
    return sum(leaf.values.nbytes for leaf in call.leaves)


def _shown(case: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in case.items()) or "the task's inputs"


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _texts(value: Any) -> list[str]:
    return [str(item)[:200] for item in value[:50]] if isinstance(value, list) else []


__all__ = ["Kept", "Request", "TaskError", "judge"]
