"""Reports and run folders that were damaged or forged: a `ReportError`, or text that a terminal does not obey."""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzzing import BUDGETS, changed, damaged, fuzz
from hypothesis import strategies as st
from report_runs import PERFORMANCE, every_status, metadata, write_run

from triton_porting_kit.conformance.execution.runfolder import RunFolderError, records_in
from triton_porting_kit.conformance.report import commands, document
from triton_porting_kit.conformance.report.build import write_reports
from triton_porting_kit.conformance.report.errors import ReportError

RUN_FILES = ("run.json", "records.jsonl", "performance.json")


def obeyed(text: str) -> set[str]:
    """What a terminal would do more with than show it."""
    return {character for character in text if ord(character) < 32 and character not in "\n\t"} & set(
        map(chr, range(32))
    )


def said(action: Callable[[], Any]) -> None:
    """Run a command; an error is a typed one, and what it prints is text."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(ReportError, RunFolderError):
        action()
    printed.getvalue().encode()
    assert not obeyed(printed.getvalue())


def all_commands(folder: Path, out: Path) -> None:
    """Every command that reads the report of a folder, on it."""
    said(lambda: commands.run_show(folder))
    said(lambda: commands.run_diff(folder, folder))
    said(lambda: commands.run_merge([folder], out))
    if (page := out / "report.html").exists():
        html = page.read_text(encoding="utf-8")
        assert html.count("<script") == 2
        assert html.count("</script>") == 2
        embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
        assert embedded is not None
        json.loads(embedded[1])
        ElementTree.parse(out / "junit.xml")
        page.unlink()


@pytest.fixture(scope="module")
def run() -> dict[str, bytes]:
    """The files of a run."""
    with tempfile.TemporaryDirectory() as place:
        folder = write_run(Path(place), every_status())
        (folder / "performance.json").write_text(json.dumps(PERFORMANCE))
        write_reports(folder, folder)
        return {name: (folder / name).read_bytes() for name in (*RUN_FILES, document.NAME)}


@pytest.mark.parametrize("times", BUDGETS)
def test_reports_that_were_forged(run: dict[str, bytes], times: int) -> None:
    good = json.loads(run[document.NAME])
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place, "report"), Path(place, "out")
        folder.mkdir()

        def body(data: st.DataObject) -> None:
            forged = changed(data, good)
            with contextlib.suppress(ValueError, TypeError):
                forged["digest"] = document.digest(forged)
            (folder / document.NAME).write_text(json.dumps(forged))
            said(lambda: commands.run_verify(folder))
            all_commands(folder, out)

        fuzz(30 * times, body)


@pytest.mark.parametrize("times", BUDGETS)
def test_run_folders_that_were_forged(run: dict[str, bytes], times: int) -> None:
    lines = [json.loads(line) for line in run["records.jsonl"].splitlines()]
    good = {"run": json.loads(run["run.json"]), "records": lines, "performance": PERFORMANCE}
    assert good["run"].keys() >= metadata().keys()
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place, "run"), Path(place, "out")
        folder.mkdir()

        def body(data: st.DataObject) -> None:
            forged = changed(data, good)
            for part, name in zip(("run", "performance"), ("run.json", "performance.json"), strict=True):
                (folder / name).write_text(json.dumps(forged.get(part)))
            records = forged.get("records")
            text = "\n".join(map(json.dumps, records if isinstance(records, list) else [records]))
            (folder / "records.jsonl").write_text(text)
            said(lambda: records_in(folder))
            all_commands(folder, out)

        fuzz(30 * times, body)


@pytest.mark.parametrize("times", BUDGETS)
def test_files_that_were_damaged(run: dict[str, bytes], times: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place, "run"), Path(place, "out")
        folder.mkdir()

        def body(data: st.DataObject) -> None:
            name = data.draw(st.sampled_from([*RUN_FILES, document.NAME]))
            (folder / document.NAME).unlink(missing_ok=True)
            for other in RUN_FILES if name != document.NAME else ():
                (folder / other).write_bytes(run[other])
            (folder / name).write_bytes(damaged(data, run[name]))
            all_commands(folder, out)

        fuzz(30 * times, body)
