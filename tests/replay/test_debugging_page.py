"""The worked example of docs/debugging.md, as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("replay")  # recorded programs are shared

ROOT = Path(__file__).resolve().parents[2]


def section() -> str:
    text = (ROOT / "docs" / "debugging.md").read_text()
    return text.partition("\n## Record a launch, and run it again\n")[2].partition("\n## ")[0]


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", section(), re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_example_runs(cpu_backend: None, tmp_path: Path) -> None:
    (tmp_path / "scale.py").write_text(block("python"))
    command = tmp_path / "bin" / "tpk"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m triton_porting_kit.cli "$@"\n')
    command.chmod(0o755)
    environment = os.environ | {"PATH": f"{command.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-ec", block("sh")], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all memory is identical to the recording, bit for bit, in all 10 runs\n" in done.stdout
    assert done.stdout.endswith("all memory is identical to the recording\n")


def test_every_part_of_a_manifest_is_described() -> None:
    import json

    from triton_porting_kit.replay.manifest import SCHEMA

    names = set(json.loads(SCHEMA.read_text())["properties"]) - {
        "format",
        "time",
        "backend",
        "runtime",
        "digest",
    }
    assert {name for name in names if f"`{name}`" not in section()} == set()
