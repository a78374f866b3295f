"""Run folders: what is on disk at any moment can be read, and gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.execution.durations import measured
from triton_porting_kit.conformance.execution.runfolder import (
    RunFolder,
    RunFolderError,
    is_final,
    metadata_in,
    records_in,
)
from triton_porting_kit.conformance.record import Record

ABOUT = {"planned": ["runtime/a", "runtime/b"], "complete": False}
HOLDS = {"kind": "expectation", "what": "it works", "holds": True}


def record(name: str, seconds: float = 1.0, **evidence: object) -> Record:
    return Record(name, "runtime", "It works.", seconds, 0, [evidence or HOLDS])


def test_a_run_is_complete_when_every_check_has_a_record(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, ABOUT)
    run.append(record("runtime/a"))
    assert list(records_in(tmp_path)) == ["runtime/a"]  # on disk at once
    assert not run.finish("later")
    found = metadata_in(tmp_path)
    assert found is not None
    assert (found["complete"], found["end"]) == (False, "later")
    run = RunFolder(tmp_path, ABOUT, keep=True)
    run.append(record("runtime/b"))
    assert run.finish("later still")


def test_the_last_record_counts_and_a_cut_line_does_not(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, ABOUT)
    run.append(record("runtime/a", 1.0))
    run.append(record("runtime/a", 2.0))
    run.finish("")
    with (tmp_path / "records.jsonl").open("a") as file:
        file.write('{"name": "runtime/b", "lev')
    assert {name: r.seconds for name, r in records_in(tmp_path).items()} == {"runtime/a": 2.0}
    run = RunFolder(tmp_path, ABOUT, keep=True)
    run.append(record("runtime/b"))
    assert run.finish("")


def test_a_new_run_replaces_the_old_one(tmp_path: Path) -> None:
    old = RunFolder(tmp_path, ABOUT)
    old.append(record("runtime/a"))
    old.add_figures({"launch": None})
    old.finish("")
    new = RunFolder(tmp_path, ABOUT)
    assert not new.has_figures
    new.finish("")
    assert records_in(tmp_path) == {}


def test_what_is_no_run(tmp_path: Path) -> None:
    assert metadata_in(tmp_path) is None
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RunFolderError, match="--report"):
        metadata_in(tmp_path)


def test_results_are_kept_and_accidents_are_not() -> None:
    error = {"type": "OSError", "message": "no", "stage": "imported"}
    assert is_final(record("runtime/a"))
    assert is_final(
        record("runtime/a", kind="process", signal="SIGSEGV", stage="launched", message="it died")
    )
    assert not is_final(record("runtime/a", kind="error", **error))
    assert not is_final(record("runtime/a", kind="harness", **error))


def test_durations_are_those_of_whole_batches() -> None:
    def check(name: str, batch: str = "") -> Check:
        return Check(f"runtime/{name}", "It works.", lambda context: None, batch=batch)

    checks = [check("a"), check("b", "x"), check("c", "x"), check("d", "y"), check("e", "y")]
    records = [record(f"runtime/{name}", 1.234) for name in "abcd"]
    assert measured(checks, records) == {"runtime/a": 1.23, "x": 2.47}
