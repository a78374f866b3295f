"""What a candidate's process may do, and what becomes of one that misbehaves."""

from __future__ import annotations

from pathlib import Path

import pytest
from judge_helpers import codes, judged

import triton_porting_kit
from triton_porting_kit.conformance.judge import sandbox
from triton_porting_kit.conformance.judge.process import Nursery

TASK = """
import numpy as np

NAME = "double"


def inputs(random):
    return random.standard_normal(100).astype(np.float32)


def reference(x):
    return 2 * x
"""
WITH_LANDLOCK = pytest.mark.skipif(not sandbox.landlock_version(), reason="the kernel has no Landlock")


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "double_task.py"
    path.write_text(TASK)
    return path


def errors(nursery: Nursery, source: str, task: Path) -> str:
    evidence, _ = judged(nursery, source, task, quick=True)
    return " ".join(item["message"] for item in evidence["findings"])


@WITH_LANDLOCK
def test_it_cannot_read_the_task(task: Path, nursery: Nursery) -> None:
    said = errors(nursery, f"import os\nos.open({str(task)!r}, os.O_RDONLY)\n", task)
    assert "PermissionError" in said
    assert "Permission denied" in said


def test_it_can_read_every_package_of_the_kit() -> None:
    found = sandbox.readable_folders()
    packages = [
        folder for place in triton_porting_kit.__path__ for folder in Path(place).glob("*/__init__.py")
    ]
    assert packages
    assert [folder for folder in packages if not sandbox.can_read(folder, found)] == []


@WITH_LANDLOCK
def test_it_cannot_write_outside(task: Path, nursery: Nursery) -> None:
    said = errors(nursery, f"import os\nos.open({str(task)!r} + 'x', os.O_WRONLY | os.O_CREAT)\n", task)
    assert "Permission denied" in said
    assert not Path(f"{task}x").exists()


def test_it_can_write_in_its_own_folder(task: Path, nursery: Nursery) -> None:
    said = errors(
        nursery, "open('notes', 'w').write('x')\nraise RuntimeError(open('notes').read() * 3)\n", task
    )
    assert "RuntimeError: xxx" in said


def test_it_does_not_see_the_environment(
    task: Path, nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = errors(nursery, "import os\nraise RuntimeError(sorted(os.environ))\n", task)
    assert "TRITON_DEFAULT_BACKEND" in said
    assert "PYTEST" not in said


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("import os\nos.kill(os.getpid(), 11)\n", "process"),
        ("def double(x):\n    import os\n    os.abort()\n", "ended"),
        ("def double(x):\n    while True:\n        pass\n", "late"),
        ("def double(x):\n    return x, x\n", "results"),
        ("def double(x):\n    return 3\n", "error"),
        ("def other(x):\n    return x\n", "error"),
        ("this is no Python", "error"),
        ("print('x' * 10_000_000)\nraise RuntimeError('after')\n", "error"),
    ],
)
def test_what_goes_wrong_is_a_finding(source: str, code: str, task: Path, nursery: Nursery) -> None:
    evidence, _ = judged(nursery, source, task, quick=True, seconds=1.5 if code == "late" else 60)
    assert code in codes(evidence), evidence["findings"]
    assert evidence["verdict"] != "right"


def test_shared_memory_cannot_be_taken_away(task: Path, nursery: Nursery) -> None:
    source = """
import os

for descriptor in range(3, 20):
    try:
        os.ftruncate(descriptor, 0)
    except OSError:
        pass


def double(x):
    return x
"""
    assert "wrong" in codes(judged(nursery, source, task, quick=True)[0])


def test_the_nursery_outlives_its_children(task: Path, nursery: Nursery) -> None:
    for _ in range(3):
        assert "ended" in codes(judged(nursery, "import os\nos._exit(0)\n", task, quick=True)[0])
