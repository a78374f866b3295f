"""`tpk judge` from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from judge_helpers import HERE

from triton_porting_kit.conformance.judge import formats
from triton_porting_kit.conformance.judge.errors import TaskError

HONEST = """
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    total = tl.load(x_ptr + offsets, mask=inside) + tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, total, mask=inside)


def add(x, y, out):
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
"""


def tpk(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "triton_porting_kit.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def candidate(tmp_path: Path) -> Path:
    path = tmp_path / "add.py"
    path.write_text(HONEST)
    return path


def test_an_honest_kernel(candidate: Path, tmp_path: Path) -> None:
    out = tmp_path / "judged"
    done = tpk("judge", candidate, "--task", HERE / "tasks" / "add.py", "--out", out, "--rounds", 4)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "RIGHT" in done.stdout
    assert json.loads((out / "judge.json").read_text())["verdict"] == "right"
    verified = tpk("verify", out)
    assert (verified.returncode, "follows from its evidence" in verified.stdout) == (0, True)


def test_a_cheat_has_status_1() -> None:
    done = tpk(
        "judge", HERE / "cheats" / "zeros.py", "--task", HERE / "tasks" / "add.py", "--quick", "--json"
    )
    assert done.returncode == 1
    assert {item["code"] for item in json.loads(done.stdout)["findings"]} >= {"wrong"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("missing.py", "--task", HERE / "tasks" / "add.py"), "there is no file"),
        ((HERE / "cheats" / "zeros.py", "--task", "missing.py"), "there is no task"),
        ((HERE / "cheats" / "zeros.py", "--task", HERE / "tasks" / "add.py", "--arrays", "x"), "--arrays"),
    ],
)
def test_wrong_calls_have_status_2(arguments: tuple[object, ...], text: str) -> None:
    done = tpk("judge", *arguments)
    assert done.returncode == 2
    assert text in done.stderr


def test_an_unknown_backend_is_said(candidate: Path) -> None:
    done = tpk("judge", candidate, "--task", HERE / "tasks" / "add.py", "--backend", "nobody", "-q")
    assert done.returncode == 1
    assert "nobody" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("x = 1\n", "is not a task"),
        ("def inputs(", "cannot be loaded"),
        ("raise SystemExit(0)\n", "cannot be loaded"),
        ("CASES = []\ndef inputs(r): pass\ndef reference(x): pass\n", "CASES is empty"),
        ("def generate_input(): pass\ndef ref_kernel(x): pass\n", "task.yml"),
    ],
)
def test_what_is_no_task_is_said(source: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "task_file.py"
    path.write_text(source)
    with pytest.raises(TaskError, match=text):
        formats.load(path, 1)
