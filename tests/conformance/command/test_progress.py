"""What is printed of a check as it fails."""

from __future__ import annotations

import io
from pathlib import Path

from conform_helpers import conform
from rich.console import Console

from triton_porting_kit.conformance.command.progress import Watcher
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.status import Evidence


def record(name: str, *evidence: Evidence) -> Record:
    return Record(name, "runtime", "", 0.0, 0, list(evidence))


def error(message: str) -> Evidence:
    return {"kind": "error", "type": "ValueError", "message": message, "stage": "launch"}


def printed(*records: Record, quiet: bool = False) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, emoji=False, width=40)
    with Watcher(console, 1000, Path("run/records.jsonl"), quiet=quiet) as watcher:
        for each in records:
            watcher.saw(each)
    return out.getvalue().splitlines()


PLACE = "    full messages: run/records.jsonl"


def test_a_failure_has_its_message_and_the_first_one_its_place() -> None:
    assert printed(record("a/b", error("no such chip")), record("a/c", error("it burns\nand how"))) == [
        "fail a/b launch", "    ValueError: no such chip", PLACE, "fail a/c launch", "    ValueError: it burns",
    ]  # fmt: skip


def test_what_a_terminal_would_obey_is_shown() -> None:
    message = "\x1b[31mred\x07 \u202eturned [bold]x[/bold] kernel.cpp:100: \\"
    shown = r"    ValueError: \x1b[31mred\x07 \u202eturned [bold]x[/bold] kernel.cpp:100: " + "\\"
    assert printed(record("a/b", error(message)))[1] == shown


def test_a_long_message_is_cut_and_stays_a_line() -> None:
    line = printed(record("a/b", error("x" * 5000)))[1]
    assert line == f"    ValueError: {'x' * 188} ..."


def test_a_check_without_evidence_says_so() -> None:
    assert printed(record("a/b"))[1] == "    the check left no evidence"


def test_what_passes_and_what_is_quiet_prints_nothing() -> None:
    passed = record("a/b", {"kind": "expectation", "what": "one is one", "holds": True})
    assert printed(passed) == []
    assert printed(record("a/b", error("no")), quiet=True) == []


def test_the_place_is_there(tmp_path: Path) -> None:
    _, out = conform(tmp_path / "run", selections=("runtime/fake/computes_garbage",))
    assert "    two is two: it is 3\n" in out.partition("rerun")[0]
    place = tmp_path / "run" / "records.jsonl"
    assert f"full messages: {place}\n" in out
    assert "it is 3" in place.read_text()
