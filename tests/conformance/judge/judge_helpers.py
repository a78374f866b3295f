"""Shared by the tests of the judge."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from triton_porting_kit.conformance.judge import formats
from triton_porting_kit.conformance.judge.judging import Kept, Request, judge
from triton_porting_kit.conformance.judge.process import Nursery

HERE = Path(__file__).parent
HAS_TORCH = importlib.util.find_spec("torch") is not None


def task_path(name: str) -> Path:
    path = HERE / "tasks" / name
    return path if path.is_dir() else path.with_suffix(".py")


def judged(
    nursery: Nursery, candidate: bytes | str, task: str | Path, **options: Any
) -> tuple[dict[str, Any], Kept]:
    """The evidence about a candidate's source."""
    path = task if isinstance(task, Path) else task_path(task)
    source = candidate if isinstance(candidate, bytes) else candidate.encode()
    file = path / "reference.py" if path.is_dir() else path
    request = Request(formats.load(path, 7), file, source, "candidate", "cpu", **{"rounds": 4, **options})
    return judge(request, nursery)


def codes(evidence: dict[str, Any]) -> set[str]:
    return {item["code"] for item in evidence["findings"]}
