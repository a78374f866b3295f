"""Planted faults are caught, shrunk to a few statements, and printed as scripts that reproduce them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from triton_porting_kit.conformance.stress import outcome
from triton_porting_kit.conformance.stress.generator import ADDRESSES, generate
from triton_porting_kit.conformance.stress.isolation import Isolated, WorkerFailed
from triton_porting_kit.conformance.stress.launching import Launch
from triton_porting_kit.conformance.stress.outcome import Outcome
from triton_porting_kit.conformance.stress.program import Loop, Program, size_of, walk
from triton_porting_kit.conformance.stress.reductions import candidates, cost
from triton_porting_kit.conformance.stress.script import script_of
from triton_porting_kit.conformance.stress.shrinking import Shrunk, patience, shrink
from triton_porting_kit.conformance.stress.source import source_of

Write = Callable[[Program], str]


def replacing(pattern: str, by: str) -> Write:
    """Writes programs as a compiler with a fault would understand them."""
    return lambda program: re.sub(pattern, by, source_of(program), flags=re.MULTILINE)


FAULTS = {
    "subtraction adds": replacing(r"(v\d+) - (v\d+)$", r"\1 + \2"),
    "maximum is minimum": replacing(r"tl\.maximum\(", "tl.minimum("),
    "shift right is one short": replacing(r">> \((v\d+) & (\d+)\)", r">> ((\1 & \2) // 2)"),
    "masks let one more through": replacing(r"(tl\.arange\(0, \d+\)(?:\[[^]]*\])?) < (\d+)\)", r"\1 < \2 + 1)"),
    "sums leave the other axis": replacing(r"tl\.sum\((v\d+), 0", r"tl.sum(\1 * 1 + \1, 0"),
    "flip does not": replacing(r"= tl\.flip\((v\d+), \d\)", r"= \1"),
    "scans go forward": replacing(r"reverse=True", "reverse=False"),
    "branches go the other way": replacing(r"if (v\d+):", r"if \1 == 0:"),
    "loops stop early": replacing(r"in range\((iterations\d+)\)", r"in range(\1 - 1)"),
    "argmax counts from the end": replacing(r"tl\.argmax\(", "tl.argmin("),
    "programs are all the first": replacing(r"^(    v\d+ =.*)tl\.program_id\(0\)", r"\1(tl.program_id(0) * 0)"),
    "atomic additions replace": replacing(r"tl\.atomic_add", "tl.atomic_xchg"),
    "products are transposed": replacing(r"tl\.trans\((v\d+)\)", r"tl.reshape(\1, (\1.shape[1], \1.shape[0]))"),
}  # fmt: skip


@pytest.fixture(scope="module")
def worker() -> Iterator[Isolated]:
    with Isolated("cpu", seconds=60) as found:
        yield found


def first_failure(write: Write, run: Callable[[Launch], Outcome], seeds: range) -> tuple[Program, Outcome]:
    """The first program that a fault makes fail; programs that the fault does not touch are not run."""
    for seed in seeds:
        program = generate(seed)
        if write(program) == source_of(program):
            continue
        found = run(Launch.of(program, write))
        if found.failed:
            return program, found
    raise AssertionError("the fault was not found")


USUAL = ("subtraction adds", "masks let one more through", "scans go forward", "loops stop early")
"""The other faults are left to the slow tests."""


@pytest.mark.parametrize(
    "name", [name if name in USUAL else pytest.param(name, marks=pytest.mark.slow) for name in FAULTS]
)
def test_faults_are_caught_and_shrunk(name: str, worker: Isolated) -> None:
    write = FAULTS[name]
    program, failure = first_failure(write, worker.run, range(3000, 3150))
    assert failure.kind in (outcome.WRONG, outcome.OUT_OF_BOUNDS)
    small = shrink(program, failure, worker.run, write=write, seconds=60)
    assert small.outcome.kind == failure.kind
    assert size_of(small.program) <= 6, small.launch.source
    assert len(small.launch.source.splitlines()) <= 16, small.launch.source


@pytest.fixture(scope="module")
def shrunk(worker: Isolated) -> Shrunk:
    write = FAULTS["subtraction adds"]
    program, failure = first_failure(write, worker.run, range(3000, 3150))
    return shrink(program, failure, worker.run, write=write, seconds=60)


@pytest.mark.parametrize("memory", ["kit", pytest.param("torch:cpu", marks=pytest.mark.slow)])
def test_scripts_reproduce_the_failure(shrunk: Shrunk, memory: str, tmp_path: Path) -> None:
    if memory.startswith("torch"):
        pytest.importorskip("torch")
    path = tmp_path / "fails.py"
    path.write_text(script_of(shrunk.launch, "cpu", memory, str(shrunk.outcome)))
    failing = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert failing.returncode == 1, failing.stderr
    assert re.search(r"O\d+: \d+ of \d+ differ; element \d+ is", failing.stdout)
    path.write_text(script_of(Launch.of(shrunk.program), "cpu", memory, "mended"))
    passing = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert (passing.returncode, passing.stdout) == (0, ""), passing.stderr


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_scripts_of_whole_programs_pass(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "passes.py"
    path.write_text(script_of(Launch.of(generate(seed)), "cpu", "kit", 'quotes """ and \\ backslashes'))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize("memory", ["host", "kit"])
def test_arrays_next_to_pages_are_for_host_memory(memory: str, tmp_path: Path) -> None:
    """A chip with memory of its own refuses pointers to the host's."""
    launch = next(launch for k in range(99) if (launch := Launch.of(generate(ADDRESSES + k))).place == "end")
    path = tmp_path / "passes.py"
    path.write_text(text := script_of(launch, "cpu", memory, "passes"))
    assert ("mprotect" in text) == (memory == "host")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_candidates_cost_less() -> None:
    for seed in range(5):
        program = generate(seed)
        found = list(candidates(program))
        assert len(found) > 10
        assert all(cost(candidate) < cost(program) for candidate in found)


def with_body(launch: Launch, *lines: str) -> Launch:
    """The same arguments for another kernel."""
    head = re.search(r"def kernel\(.*\):", launch.source)
    assert head is not None
    source = head[0] + "\n" + "".join(f"    {line}\n" for line in lines)
    return replace(launch, source=source, grid=(1,), warps=4, place="zones")


CRASH = ("tl.store(tl.cast(tl.full((), 16, tl.int64), tl.pointer_type(tl.int32)), 1)",)
HANG = ("i = tl.program_id(0)", "while i < 5:", "    tl.store({}, i)", "    i = i * 0")


def test_crashes_hangs_and_errors_are_outcomes() -> None:
    good = Launch.of(generate(0))
    hang = [line.format(good.names[0]) for line in HANG]
    with Isolated("cpu", seconds=60) as worker:
        assert worker.run(good) == Outcome(outcome.PASS)
        crash = worker.run(with_body(good, *CRASH))
        assert (crash.kind, crash.message) == (outcome.CRASH, "the process died of SIGSEGV")
        assert worker.run(good) == Outcome(outcome.PASS)
        error = worker.run(with_body(good, "nothing + 1"))
        assert error.kind == outcome.ERROR
        assert "compiled: frontend" in error.detail
        assert "nothing" in error.message
        assert worker.run(with_body(good, *hang), 5).kind == outcome.TIMEOUT
        assert worker.run(good) == Outcome(outcome.PASS)


@pytest.mark.slow  # a process for every candidate that crashes
def test_crashes_are_shrunk() -> None:
    """A fault of loops kills the process; what is left is a loop."""

    def write(program: Program) -> str:
        return re.sub(r"(?m)^( +)(for .*|while .*)$", rf"\1{CRASH[0]}\n\1\2", source_of(program))

    with Isolated("cpu", seconds=30) as worker:
        program, failure = first_failure(write, worker.run, range(3000, 3150))
        assert failure.kind == outcome.CRASH
        small = shrink(program, failure, worker.run, write=write, seconds=90)
    assert any(isinstance(s, Loop) for s in walk(small.program.body))
    assert size_of(small.program) <= 6, small.launch.source


@pytest.mark.slow  # waits for every candidate that hangs
def test_hangs_are_shrunk() -> None:
    """A fault of ``while`` never ends; what is left is such a loop."""

    def write(program: Program) -> str:
        return re.sub(r"(?m)^( +)(v\d+) = \2 \+ 1$", r"\1\2 = \2 + 0", source_of(program))

    with Isolated("cpu", seconds=60) as worker:
        program, failure = first_failure(write, lambda launch: worker.run(launch, 15), range(3000, 3150))
        assert failure.kind == outcome.TIMEOUT
        small = shrink(program, failure, lambda launch: worker.run(launch, 15), write=write, seconds=240)
    assert any(s.style == "while" for s in walk(small.program.body) if isinstance(s, Loop))
    assert size_of(small.program) < size_of(program)


def test_hangs_are_looked_for_with_less_patience() -> None:
    assert patience(Outcome(outcome.TIMEOUT), 60) == 15
    assert patience(Outcome(outcome.WRONG), 60) == 60


def test_a_backend_that_is_not_there_is_said() -> None:
    with pytest.raises(WorkerFailed, match="knows no backend 'abacus'"):
        Isolated("abacus").start()


def test_failures_of_one_kind_are_alike() -> None:
    wrong = Outcome(outcome.WRONG, "a")
    assert wrong.is_like(Outcome(outcome.WRONG, "b"))
    assert not wrong.is_like(Outcome(outcome.CRASH))
    assert not Outcome(outcome.ERROR, "", "launched, A").is_like(Outcome(outcome.ERROR, "", "launched, B"))
    assert Outcome(outcome.PASS).failed is False
