"""Kernels that write to the region which the chip shares with its library: the caller gets DeviceLost or what is right."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NATIVE = HERE.parents[2] / "driver" / "virtual" / "native" / "shared"
PARTS = {
    "header": (0, [0]),
    "queue": (1, [0, 1, 2, 3]),
    "submitted": (2, [0, 1, 2]),
    "completed": (3, [0, 1, 2]),
    "failure": (4, [0, 1, 2]),
    "event": (5, [0, 1]),
    "answers": (6, [0]),
    "slot": (7, [0, 1]),
    "ring": (8, [0, 1, 2]),
    "losing and slots": (9, [0]),
    "all of it": (10, [0]),
}
"""Of each part that overwrites.cpp knows, its number and the indices of the queues, events or slots."""


@pytest.fixture(scope="session")
def folder(kernels: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels of both sources."""
    folder = tmp_path_factory.mktemp("overwrites")
    (folder / "kernels.so").write_bytes(kernels)
    command = ["c++", "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{NATIVE}", HERE / "overwrites.cpp"]
    subprocess.run([*command, "-o", folder / "overwrites.so"], check=True)
    return folder


@pytest.fixture
def outcomes(folder: Path) -> Callable[[list[list[int]]], list[str]]:
    """Runs cases in a program of their own, which must live to their end."""

    def run(cases: list[list[int]]) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", HERE / "overwritten.py", folder, json.dumps(cases)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        lines = done.stdout.splitlines()
        assert len(lines) == len(cases)
        assert not [line for line in lines if "WRONG" in line], done.stdout
        return [line.rpartition("] ")[2].split()[0] for line in lines]

    return run


@pytest.mark.parametrize("part", PARTS)
def test_the_host_survives_what_is_written_there(
    part: str, outcomes: Callable[[list[list[int]]], list[str]]
) -> None:
    number, indices = PARTS[part]
    found = outcomes([[number, i, pattern, 7 * i + 1, 0] for i in indices for pattern in (-1, 0, 255)])
    if part in ("queue", "submitted", "completed", "failure", "all of it"):
        assert "lost" in found


def test_the_host_survives_what_is_written_there_again_and_again(
    outcomes: Callable[[list[list[int]]], list[str]],
) -> None:
    cases = [[n, indices[-1], -1, n, 30_000_000] for n, indices in PARTS.values()]
    assert "lost" in outcomes(cases)
