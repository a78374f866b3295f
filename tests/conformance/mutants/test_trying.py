"""Mutants made by hand, whose verdicts are known, on a few checks."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from triton_porting_kit.conformance.mutants import corpus, loading, sources, verdict
from triton_porting_kit.conformance.mutants.baseline import measure
from triton_porting_kit.conformance.mutants.client import Nursery, Server
from triton_porting_kit.conformance.mutants.mutation import PYTHON, Mutation
from triton_porting_kit.conformance.mutants.native_build import NativeBuild
from triton_porting_kit.conformance.mutants.reach import Reach
from triton_porting_kit.conformance.mutants.trying import Bench, Effort, Job
from triton_porting_kit.conformance.mutants.unit import CHECKS, Unit

pytest.importorskip("coverage")

UNITS = [
    Unit(CHECKS, name, (name,))
    for name in (
        "runtime/copies/htod-65-at-7",
        "registration/hashes/backend-in-fresh-process",
        "language/arithmetic/add-i32-tile_17x4",
    )
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    files = sources.files((PYTHON,))
    reach = Reach()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "TRACED", 3)
        units = [*UNITS, *islice(corpus.corpus(), 3)]
        assert measure(reach, units, files, jobs=1, threads=2, save=lambda: None, report=print, end=math.inf)
        folder = tmp_path_factory.mktemp("mutants")
        reach.save(folder / "reach.gz", "about")
        again = Reach.load(folder / "reach.gz", "about")
        assert again.units == reach.units
        assert Reach.load(folder / "reach.gz", "other").units == []
        contents = {path: file.read_bytes() for path, file in files.items()}
        known = {unit.name: unit for unit in UNITS}
        made = Bench(again, known, contents, Effort(60, 0, 1.0), 2, NativeBuild(folder))
        yield made
        made.close()


def planted(bench: Bench, path: str, before: str, after: str) -> Mutation:
    """The change of the first `before` in a file."""
    source = bench.contents[path]
    start = source.index(before.encode())
    line = source.count(b"\n", 0, start) + 1
    return Mutation(path, PYTHON, "planted", start, start + len(before.encode()), after, line, (line, line))


@pytest.mark.parametrize(
    ("path", "before", "after", "expected"),
    [
        # A compiler that fails.
        ("backends/cpu/compiler.py", "return cpu_pipeline(", "raise KeyError(", verdict.CAUGHT),
        # What cannot be imported.
        ("compiler/pipeline.py", "from __future__", "1 / 0\nfrom __future__", verdict.CAUGHT),
        # A wrong result of one operation.
        ("driver/host/device.py", "self._next_module = 1", "os.abort()", verdict.CAUGHT),
        # Other words for the same.
        (
            "backends/cpu/compiler.py",
            "return cpu_pipeline(",
            "return (cpu_pipeline if True else None)(",
            verdict.EQUIVALENT,
        ),
        # What these checks and programs do not ask for.
        (
            "backends/cpu/compiler.py",
            "return {name: level.options()",
            "return {}; {0: 1",
            verdict.NOT_REACHED,
        ),
    ],
)
def test_verdicts(bench: Bench, path: str, before: str, after: str, expected: str) -> None:
    mutation = planted(bench, path, before, after)
    if after.startswith("1 / 0"):
        mutation = Mutation(path, PYTHON, "planted", 0, 0, "1 / 0\n", 1, (1, 1))
    with Job(bench) as job:
        found = job.try_mutant(mutation)
    assert found.verdict == expected, found
    assert found.diff.count("\n+") == 2
    if expected == verdict.EQUIVALENT:
        assert (found.tried, found.reaching, found.other_code) == (2, 2, 0)
        assert found.running >= 1


def test_children_of_checks_have_the_mutant_too(bench: Bench) -> None:
    """The backend's hash is compared with that in a fresh process: a mutant of it that only one had would show."""
    mutation = planted(bench, "backends/cpu/compiler.py", 'return "-".join((', 'return "+".join((')
    with Job(bench) as job:
        found = job.try_mutant(mutation)
    assert found.verdict != verdict.CAUGHT, found


def test_a_process_that_is_started_loads_the_changed_module(tmp_path: Path) -> None:
    changed = tmp_path / "changed.py"
    changed.write_text("NAME = 'mutant'\n")
    there = tmp_path / "there"
    there.mkdir()
    (there / "sitecustomize.py").write_text("import builtins; builtins.there = True\n")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(there))
        added = loading.prepare({"json.tool": changed}, scratch)
    script = "import json, json.tool as t; print(json.dumps([t.NAME, t.__file__, there]))"
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | added, capture_output=True, text=True, check=True
    )
    name, file, customized = json.loads(done.stdout)
    assert (name, customized) == ("mutant", True)
    assert file.endswith("json/tool.py")


def test_a_hang_and_a_death_are_outcomes() -> None:
    with Nursery("driver") as nursery:
        path = sources.files((PYTHON,))["driver/host/device.py"]
        text = path.read_text()
        hangs = text.replace(
            "    def properties(self)",
            "    def memalloc(self, *args, **options):\n        while True: pass\n\n    def properties(self)",
            1,
        )
        with Server(nursery, {"triton_porting_kit.driver.host.device": hangs.encode()}) as server:
            assert server.failure is None
            found = server.run(UNITS[0], 2.0)
            assert (found.kind, found.caught) == ("timeout", True)
            assert server.alive
        dies = b"import os; os._exit(3)\n"
        with Server(nursery, {"triton_porting_kit.driver.host.device": dies}) as server:
            assert server.failure is not None
            assert server.failure.kind == "crash"
