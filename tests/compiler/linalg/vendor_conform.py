"""The conformance suite with launches of the CPU backend by a vendor's compiler: see `vendor_site`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SITE = Path(__file__).parent / "vendor_site"


def conform(vendor: str, environment: Path, folder: Path, level: str, select: str) -> list[dict[str, str]]:
    """The records of checks. `vendor` is one of `sitecustomize.LAUNCHERS`; its modules go to ``folder/modules``."""
    variables = {
        **os.environ,
        "PYTHONPATH": str(SITE),
        vendor: str(environment.resolve()),
        f"{vendor}_MODULES": str(folder / "modules"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
    }
    command = [
        sys.executable,
        "-m",
        "triton_porting_kit.cli",
        "conform",
        "--backend",
        "cpu",
        "--level",
        level,
    ]
    command += ["--select", select, "--report", str(folder / "report")]
    subprocess.run(command, env=variables, capture_output=True, text=True, timeout=1200)
    lines = (folder / "report" / "records.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]
