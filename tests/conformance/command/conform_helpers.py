"""Running `tpk conform` on the fake catalogue, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = """
import sys
from pathlib import Path
from triton_porting_kit.conformance.command.conform import run_conform
from triton_porting_kit.conformance.command.request import Request
options = {"backend": "cpu", "catalogue": "fake_catalogue", "report": Path(sys.argv[1])} | eval(sys.argv[2])
sys.exit(run_conform(Request(**options)))
"""


def start(folder: Path, **options: Any) -> subprocess.Popen[str]:
    """`options`: fields of `Request`."""
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), repr(options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def conform(folder: Path, **options: Any) -> tuple[int, str]:
    """Its exit status and what it printed."""
    process = start(folder, **options)
    printed, _ = process.communicate(timeout=300)
    return process.returncode, printed


def run_in(folder: Path) -> dict[str, Any]:
    """The content of ``run.json``."""
    found: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return found


def statuses_in(folder: Path) -> list[tuple[str, str]]:
    """Of every line of ``records.jsonl``, name and status."""
    lines = (folder / "records.jsonl").read_text().splitlines()
    return [(record["name"], record["status"]) for record in map(json.loads, lines)]
