"""Launches of the programs in `recorded_programs.py`, recorded in processes of their own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from replay_helpers import PROGRAMS, Recorded, Recorder


@pytest.fixture(scope="session")
def recorder(cpu_backend: None, tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """Runs a program under `tpk capture`, each once: where its launches are, its status, and what it printed."""
    found: dict[str, Recorded] = {}

    def record(program: str) -> Recorded:
        if program not in found:
            folder = tmp_path_factory.mktemp("recorded") / program
            command = [sys.executable, "-m", "triton_porting_kit.cli", "capture", "--dest", str(folder)]
            done = subprocess.run(
                [*command, str(PROGRAMS), program], capture_output=True, text=True, check=False
            )
            launches = sorted(path for path in folder.glob("[0-9]*") if path.is_dir())
            found[program] = Recorded(launches, done.returncode, done.stdout + done.stderr)
        return found[program]

    return record


@pytest.fixture
def plain(recorder: Recorder, tmp_path: Path) -> Path:
    """A recorded launch of a plain kernel, to be changed."""
    (launch,) = recorder("plain").launches
    return Path(shutil.copytree(launch, tmp_path / "launch"))
