"""``tpk judge``, and ``tpk verify`` of its evidence. Each command function prints and returns the exit status."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton_porting_kit import untrusted
from triton_porting_kit.conformance.judge import document, formats, sandbox
from triton_porting_kit.conformance.judge.errors import TaskError
from triton_porting_kit.conformance.judge.findings import RULES
from triton_porting_kit.conformance.judge.judging import Request, judge
from triton_porting_kit.conformance.judge.process import Nursery
from triton_porting_kit.untrusted import shown

_CANDIDATE_BYTES = 4 << 20
_VERDICTS = {
    "right": "RIGHT: every result of every call is right, and there are no findings",
    "wrong": "WRONG",
    "flagged": "FLAGGED: the candidate does not do what the task asks for",
}


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    candidate: Path
    task: Path
    backend: str
    arrays: str
    out: Path | None
    rounds: int
    seconds: float
    allowed: tuple[str, ...]
    quick: bool
    as_json: bool
    quiet: bool


def run_judge(options: Options) -> int:
    """Judge one candidate. Returns 0 if every result is right and there are no findings, else 1."""
    sandbox.protect_judge()
    candidate = untrusted.read_bytes(options.candidate, _CANDIDATE_BYTES, TaskError, follow=True)
    path = options.task / "reference.py" if options.task.is_dir() else options.task
    task = formats.load(path, secrets.randbits(62))
    request = Request(
        task,
        path,
        candidate,
        options.candidate.name,
        options.backend,
        options.arrays,
        options.rounds,
        options.seconds,
        options.allowed,
        options.quick,
    )
    say = (lambda what: None) if options.quiet or options.as_json else _progress
    with Nursery(torch=task.needs_torch or options.arrays == "torch") as nursery:
        evidence, kept = judge(request, nursery, say)
    if options.out is not None:
        document.write(options.out, evidence, kept, candidate)
    if options.as_json:
        print(json.dumps(document.plain(evidence), indent=1))
    else:
        for line in report(evidence):
            print(shown(line))
        if options.out is not None:
            print(
                f"\nEvidence: {options.out / document.NAME}; `tpk verify {options.out}` recomputes the verdict"
            )
    return 0 if evidence["verdict"] == "right" else 1


def run_verify(path: Path) -> int:
    """Recompute a judgement. Returns 1 if it does not follow from its evidence, else 0."""
    data, found = document.disagreements(path)
    print(
        shown(f"{data['candidate']['name']} on task {data['task']['name']}: {data['verdict']}", lines=False)
    )
    if not found:
        print("The judgement follows from its evidence.")
        return 0
    print(f"\nThe judgement does not follow from its evidence ({len(found)} disagreements):")
    for line in found:
        print(f"  {shown(line, lines=False)}")
    return 1


def _progress(what: str) -> None:
    print(f"... {what}", flush=True)


def report(evidence: dict[str, Any]) -> list[str]:
    """The lines of a judgement for the terminal."""
    opened, found = evidence["opened"], {item["code"]: item["message"] for item in evidence["findings"]}
    lines = [
        "",
        f"candidate  {evidence['candidate']['name']}",
        f"task       {evidence['task']['name']} ({evidence['task']['format']})",
        f"backend    {evidence['backend']}"
        + (f", {opened['device']}, arrays: {opened['arrays']}" if "device" in opened else ""),
        f"isolation  {opened.get('isolation', 'none: the process did not open')}",
        "",
    ]
    if evidence["task_readable"]:
        lines.insert(
            -1, "           Candidates can read the task's file: move it out of the libraries' folders"
        )
    calls = evidence["calls"]
    worst = [item["worst"] for call in calls for item in call["comparisons"] if item.get("worst") is not None]
    compared = sum(item["elements"] for call in calls for item in call["comparisons"])
    lines += [
        f"{'results':<12} {len(calls)} calls, {compared:,} elements"
        + (f", the largest error is {max(worst):.2g} of the allowed error" if worst else ""),
        f"{'time':<12} {_time(evidence)}",
        "",
    ]
    if found:
        width = max(map(len, found))
        for code, message in found.items():
            seen = "" if RULES[code].where == "judge" else "  [observed in the candidate's process]"
            lines.append(f"  {code:<{width}}  {message}{seen}")
        lines.append("")
    if found and evidence.get("printed", "").strip() and not any(c["comparisons"] for c in calls):
        lines += ["Output of the candidate:", evidence["printed"].strip()[-800:], ""]
    lines.append(_VERDICTS[evidence["verdict"]])
    return lines


def _time(evidence: dict[str, Any]) -> str:
    figures = evidence["time"]
    if not figures:
        return "not measured"
    least = f", the machine's lower bound is {_seconds(figures['least'])}" if figures["least"] else ""
    return (
        f"{_seconds(figures['seconds'])} per call{least}; hidden time above {_seconds(figures['hidden_allowed'])} "
        "would have been detected"
    )


def _seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"
