"""`tpk conform --capture-failures`: what failed is recorded, and the report says how to replay it."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conform_helpers import conform

from triton_porting_kit.conformance.command.conform import run_conform
from triton_porting_kit.conformance.command.request import MISTAKES, Request
from triton_porting_kit.conformance.execution.run import Probe
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report.evidence import in_text

pytestmark = pytest.mark.xdist_group("conform")

CRASH = "runtime/fake/crashes_in_a_launch"


def evidence_in(folder: Path) -> dict[str, list[dict[str, Any]]]:
    report = json.loads((folder / "report.json").read_text())
    return {check["name"]: check["evidence"] for check in report["checks"]}


def test_what_fails_is_recorded(tmp_path: Path) -> None:
    captures = tmp_path / "captures"
    selection = "crashes_in_a_launch or stores_garbage or never_comes_back or computes_garbage or passes"
    status, printed = conform(tmp_path / "run", selections=(selection,), captures=str(captures))
    assert status == 1, printed
    found = evidence_in(tmp_path / "run")

    # A launch that killed the worker.
    crash = captures / "runtime--fake--crashes_in_a_launch" / "0001-wild_store"
    (item,) = found[CRASH]
    assert item["kind"] == "process"
    assert item["captured"] == f"1 launch in {crash.parent}"
    assert item["replay"] == f"tpk replay {crash}"
    assert f"replay: tpk replay {crash}" in printed
    command = [sys.executable, "-m", "triton_porting_kit.cli", *shlex.split(item["replay"])[1:]]
    assert subprocess.run(command, check=False, capture_output=True).returncode == -11

    # One that came back with wrong results, and one that did not come back.
    wrong = found["runtime/fake/stores_garbage"]
    assert [item.get("captured") for item in wrong] == [
        None,
        f"2 launches in {captures}/runtime--fake--stores_garbage",
    ]
    assert wrong[1]["replay"].endswith("/0002-one_store")
    (item,) = found["runtime/fake/never_comes_back"]
    assert item["timeout"] == 8  # run again alone, with twice its limit
    assert item["replay"].endswith("/0002-endless")
    assert json.loads((Path(item["replay"].split()[-1]) / "manifest.json").read_text())["state"] == "launched"

    # One that launches nothing, and one that passes.
    (item,) = found["runtime/fake/computes_garbage"]
    assert item["captured"] == "nothing: the check launched no kernel through Triton"
    assert "captured" not in found["runtime/fake/passes"][0]
    assert not (captures / "runtime--fake--passes").exists()


def test_reports_show_the_command() -> None:
    items = [
        {
            "kind": "expectation",
            "what": "a",
            "holds": False,
            "captured": "1 launch in c",
            "replay": "tpk replay c/1",
        },
        {"kind": "error", "type": "E", "message": "m", "stage": "launched", "replay": "tpk replay c/2"},
    ]
    text = in_text(Record("runtime/x", "runtime", "It works.", 0.0, 0, list(items)))
    assert "captured: 1 launch in c" in text
    assert text.count("replay: tpk replay c/") == 2


def test_flaky_checks_are_told(tmp_path: Path) -> None:
    status, _ = conform(tmp_path / "run", selections=("fails_once",), captures=str(tmp_path / "captures"))
    assert status == 1
    (item,) = evidence_in(tmp_path / "run")["runtime/fake/fails_once"]
    assert item["when run again"] == "pass, so the recorded launch succeeded"


def test_other_drivers_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Probe({"driver": "elsewhere.Driver", "kit_driver": False})
    monkeypatch.setattr("triton_porting_kit.conformance.command.conform.probe", lambda settings: found)
    request = Request(
        backend="cpu", report=tmp_path / "run", captures=str(tmp_path), catalogue="fake_catalogue"
    )
    with pytest.raises(MISTAKES, match=r"the driver of backend cpu, elsewhere\.Driver, is not"):
        run_conform(request)
    with pytest.raises(MISTAKES, match="--compile-only launches nothing"):
        run_conform(replace(request, target="hip:gfx942:64"))
