"""Running the programs of this folder, in a process of their own for each level of instructions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


def trial(program: str, level: str, part: int, parts: int, folder: Path) -> Mapping[str, Any]:
    """What a program of this folder reports, with its caches in `folder`.

    Fails for findings. Where the level cannot run here, the test is skipped, which says why, after all has been compiled
    for it.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRITON_", "TPK_CPU"))}
    environment = {**kept, "TRITON_DEFAULT_BACKEND": "cpu", "TRITON_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, str(HERE / f"{program}.py"), level, str(part), str(parts)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: Mapping[str, Any] = json.loads(done.stdout)
    assert found["findings"] == []
    assert found["compiled"] > 0
    if found["lacks"]:
        pytest.skip(f"{level}: {found['compiled']} cases compiled, none run: {found['lacks']}")
    assert found["run"] == found["compiled"]
    return found
