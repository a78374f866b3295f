"""`tpk public --suite DIR`: runs a package's own tests as they are, and sorts the failures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from triton_porting_kit.conformance.public import sorting
from triton_porting_kit.errors import PortingKitError

RESULTS = "suite.json"
_PROGRAM = """
import sys
{as_cuda}
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""
_COLLECTED = 5
"""pytest's exit status if there are no tests."""
_EXACTLY = f"{__package__}.exactly"
UNSORTED, REFERENCE = "unsorted", "reference"
NAMES = {
    "right": "passed",
    "skipped": "skipped by the tests themselves",
    "kit": "refused or crashed in the kit",
    "package": "the package or its tests refuse or assert something that is not a number",
    "release": "needs another release of a library",
    "gpu": "needs a feature of a GPU",
    REFERENCE: "torch's operators are off, not the kernel: passes where they compute in float64",
    UNSORTED: "a wrong number, also where torch's operators compute in float64: the kernel is off",
}
"""What failures are sorted into."""

_KIT = re.compile(
    r"^E +triton_porting_kit\.errors\.|CompilerDefect|CompilationError|LaunchError|DeviceError|Fatal Python error"
    r"|crashed",
    re.MULTILINE,
)
_NUMBER = re.compile(r"Tensor-likes are not|Mismatched elements|allclose|not close|Max (abs|rel)|differ")


@dataclass(frozen=True)
class Outcome:
    """One test, and what it was sorted into."""

    name: str
    verdict: str
    """Of `NAMES`."""
    reason: str = ""


class SuiteFailed(PortingKitError):
    """The tests could not be run."""


def run_suite(suite: Path, backend: str, arguments: tuple[str, ...], report: Path) -> int:
    """Run pytest in a checkout, print how its failures are sorted, and write them to ``suite.json`` in `report`.

    Returns 1 if a failure is the kit's, else 0. Raises `SuiteFailed`.
    """
    if not suite.is_dir():
        raise SuiteFailed(f"--suite {suite}: there is no such folder")
    with tempfile.TemporaryDirectory() as scratch:
        results = Path(scratch) / "results.xml"
        cache = ["-o", f"cache_dir={scratch}/cache"]
        status = _pytest(suite, backend, [*arguments, *cache, f"--junit-xml={results}"])
        if not results.is_file():
            raise SuiteFailed(
                f"pytest ended with status {status} and wrote no results in {suite}: "
                + ("it found no tests" if status == _COLLECTED else "its output says why")
            )
        outcomes = _read(results)
        if any(outcome.verdict == UNSORTED for outcome in outcomes):
            print("wrong numbers: failed tests run again, with torch's operators in float64", flush=True)
            again = ["-p", _EXACTLY, "--last-failed", *cache, f"--junit-xml={results}"]
            _pytest(suite, backend, [*arguments, *again])
            outcomes = decided(outcomes, _read(results))
    report.mkdir(parents=True, exist_ok=True)
    found = [asdict(outcome) for outcome in outcomes]
    (report / RESULTS).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    counts = Counter(outcome.verdict for outcome in outcomes)
    for verdict, meaning in NAMES.items():
        if counts[verdict]:
            print(f"{counts[verdict]:6} {verdict}: {meaning}")
    for outcome in outcomes:
        if outcome.verdict in ("kit", UNSORTED):
            print(f"{outcome.verdict} {outcome.name}: {outcome.reason}")
    print(f"results: {report / RESULTS}")
    return int(counts["kit"] > 0)


def _pytest(suite: Path, backend: str, arguments: list[str]) -> int:
    as_cuda = "" if backend == "nvidia" else "import triton_porting_kit.pytorch.as_cuda"
    # Most time of a suite can go to tuning, and no test asks which configuration was the fastest.
    environment = {"TPK_TUNING": "first", **os.environ, "TRITON_DEFAULT_BACKEND": backend}
    command = [sys.executable, "-c", _PROGRAM.format(as_cuda=as_cuda), *arguments]
    return subprocess.run(command, cwd=suite, env=environment, check=False).returncode


def _read(results: Path) -> list[Outcome]:
    return list(sorted_tests(results.read_text(encoding="utf-8", errors="replace")))


def decided(outcomes: Iterable[Outcome], exact: Iterable[Outcome]) -> list[Outcome]:
    """The outcomes of tests, where those of tests that were repeated with torch in float64 decide wrong numbers."""
    passed = {outcome.name for outcome in exact if outcome.verdict == "right"}
    return [
        replace(outcome, verdict=REFERENCE)
        if outcome.verdict == UNSORTED and outcome.name in passed
        else outcome
        for outcome in outcomes
    ]


def sorted_tests(results: str) -> Iterable[Outcome]:
    """The tests in pytest's results (JUnit XML). Raises `SuiteFailed` if they cannot be read."""
    try:
        root = ElementTree.fromstring(results)
    except ElementTree.ParseError as error:
        raise SuiteFailed(f"pytest's results cannot be read: {error}") from error
    for test in root.iter("testcase"):
        name = f"{test.get('classname', '')}::{test.get('name', '')}"
        failure = next(
            (test.find(kind) for kind in ("failure", "error") if test.find(kind) is not None), None
        )
        if failure is not None:
            yield Outcome(name, *verdict_of(failure.get("message") or "", failure.text or ""))
        elif test.find("skipped") is not None:
            yield Outcome(name, "skipped")
        else:
            yield Outcome(name, "right")


def verdict_of(message: str, trace: str) -> tuple[str, str]:
    """What a failure is sorted into, and its first line."""
    message = re.sub(r"^(?:\w+\.)+(?=\w+(?::|$))", "", message)  # the module of the exception's type
    first = (message or trace).strip().splitlines()[0][:300] if (message or trace).strip() else ""
    for rule in sorting.RULES:
        if rule.place:
            continue  # places are those of the suite's own processes
        if re.search(rule.error, message, re.MULTILINE):
            return rule.verdict, first
    if _NUMBER.search(message) or _NUMBER.search(trace[-2000:]):
        return UNSORTED, first
    if _KIT.search(f"{message}\n{trace}"):
        return "kit", first
    if message.startswith("AssertionError") or message.startswith("assert "):
        return "package", first
    return UNSORTED, first
