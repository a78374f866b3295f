"""`tpk doctor`: run every check, then a kernel, and print the findings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from triton_porting_kit.cli.checks import CHECKS
from triton_porting_kit.cli.findings import Finding, Status, run_check

_TIMEOUT_SECONDS = 120
_STYLES = {Status.OK: "green", Status.NOTE: "yellow", Status.PROBLEM: "bold red"}


def kernel() -> Iterator[Finding]:
    """A kernel, compiled and run in its own process, so that a crash or a hang is reported as well."""
    try:
        result = subprocess.run(
            [sys.executable, "-m", "triton_porting_kit.cli.tiny_kernel"],
            env={**os.environ, "TRITON_ALWAYS_COMPILE": "1", "TRITON_INTERPRET": "0"},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        yield Finding(
            "kernel",
            Status.PROBLEM,
            f"it did not finish within {_TIMEOUT_SECONDS} s",
            "the device hangs: reset it, or select another backend with TRITON_DEFAULT_BACKEND",
        )
        return
    if result.returncode == 0:
        seconds = json.loads(result.stdout.splitlines()[-1])["seconds"]
        yield Finding("kernel", Status.OK, f"compiled and ran in {seconds * 1e3:.0f} ms")
        return
    if result.returncode < 0:
        what = f"the process was killed by signal {-result.returncode}"
    else:
        what = (result.stderr.strip().splitlines() or [f"it ended with status {result.returncode}"])[-1]
    remedy = (
        "fix the problems above first; `python -m triton_porting_kit.cli.tiny_kernel` shows the whole message"
    )
    yield Finding("kernel", Status.PROBLEM, what, remedy)


def examine() -> list[Finding]:
    """All findings; the kernel's is the last."""
    findings = [finding for name, check in CHECKS.items() for finding in run_check(check, name)]
    return findings + run_check(kernel, "kernel")


def run_doctor(*, as_json: bool = False) -> int:
    """Print the findings. Returns the exit status: 0 if the kernel ran, else 1."""
    findings = examine()
    runs = findings[-1].status is Status.OK
    if as_json:
        print(json.dumps({"kernels_run": runs, "findings": [f.to_json() for f in findings]}, indent=1))
    else:
        _print(findings, runs)
    return 0 if runs else 1


def _print(findings: list[Finding], runs: bool) -> None:
    console = Console(width=None if sys.stdout.isatty() else 132)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        detail = Text(finding.detail)
        if finding.remedy:
            detail.append(f"\n→ {finding.remedy}", style="italic")
        table.add_row(Text(finding.name), Text(finding.status, style=_STYLES[finding.status]), detail)
    console.print(table)
    verdict = "Kernels run here." if runs else "Kernels do not run here. The arrows show what to do."
    console.print(Text(f"\n{verdict}", style="bold green" if runs else "bold red"))
