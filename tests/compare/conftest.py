"""`tpk compare` in processes of its own, on the CPU reference or on the suite's test backend with a planted fault."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from compare_helpers import PROGRAMS, Compared, Comparer

from triton_porting_kit.conformance.faults import plugin


@pytest.fixture(scope="session")
def faulty_backend() -> Iterator[Path]:
    with plugin.installed() as folder:
        yield folder


@pytest.fixture
def compare(cpu_backend: None, faulty_backend: Path, tmp_path: Path) -> Comparer:
    """Runs `tpk compare` on a program of `compared_programs.py`; `fault`: on the test backend with that fault."""

    def run(program: str, *options: str, fault: str = "", script: Path = PROGRAMS) -> Compared:
        environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
        if fault:
            environment |= plugin.environment(faulty_backend, fault)
            environment["TRITON_DEFAULT_BACKEND"] = plugin.NAME
        result = tmp_path / "result.json"
        command = [sys.executable, "-m", "triton_porting_kit.cli", "compare", str(script), "--against", "cpu"]
        command += ["--dest", str(tmp_path / "kept"), "--json", str(result), *options, "--", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        document = json.loads(result.read_text()) if result.exists() else {}
        return Compared(done.returncode, done.stdout, done.stderr, document, environment)

    return run
