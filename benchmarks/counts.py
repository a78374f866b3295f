"""`python -m benchmarks.counts`: how many instructions compiling and launching take, against a baseline.

Callgrind counts them, so they hardly depend on what else the machine does. The counts are those of one set of
releases: with others, the baseline is written anew (`--write`) and its change is looked at.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from triton_porting_kit import untrusted

from .about import versions
from .compiling import FRONT_END, STAGES

ROOT = Path(__file__).resolve().parents[1]
BASELINE = ROOT / "benchmarks" / "counts.json"
TOLERANCE = 0.02
RELEASES = ("python", "triton", "numpy", "llvmlite", "numba-cuda-mlir")
#: One thread, and the same order of everything that is hashed.
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "TPK_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TRITON_DEFAULT_BACKEND": "cpu",
}


class CountError(Exception):
    """Nothing can be counted; the text says why, and what to do."""


def parse(text: str) -> tuple[str, int] | None:
    """The name and the instructions of one of callgrind's files; None for one without a name."""
    name = re.search(r"^desc: Trigger: Client Request: (.+)$", text, re.MULTILINE)
    total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
    return (name[1], int(total[1])) if name and total else None


def count() -> dict[str, int]:
    """Instructions of each section of `benchmarks.counted`. Raises `CountError`."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise CountError("valgrind is not installed; on Debian: apt-get install valgrind")
    if platform.machine() not in ("x86_64", "AMD64"):
        raise CountError(f"sections are marked by x86-64 instructions, and this is {platform.machine()}")
    with tempfile.TemporaryDirectory() as folder:
        command = [valgrind, "--tool=callgrind", "--instr-atstart=no"]
        command += [f"--callgrind-out-file={folder}/out", sys.executable, "-m", "benchmarks.counted"]
        if setarch := shutil.which("setarch"):
            command = [setarch, "--addr-no-randomize", *command]
        done = subprocess.run(
            command, env=os.environ | ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise CountError(
                f"{' '.join(command)} failed with status {done.returncode}:\n{done.stderr[-3000:]}"
            )
        files = sorted(
            Path(folder).iterdir(), key=lambda path: (len(path.name), path.name)
        )  # by their numbers
        counts: dict[str, int] = {}
        for entry in filter(None, (parse(path.read_text(errors="replace")) for path in files)):
            counts[entry[0]] = counts.get(entry[0], 0) + entry[1]  # a section may consist of several kernels
    if not counts:
        raise CountError("callgrind wrote no counts; is this valgrind's own callgrind?")
    return counts


def sums(counts: Mapping[str, int]) -> dict[str, int]:
    """The stages of all kernels together."""
    return {f"all {STAGES}": sum(n for name, n in counts.items() if name.endswith(f": {STAGES}"))}


def read(path: Path) -> dict[str, Any]:
    """The baseline. Raises `CountError` for a file that is none."""
    try:
        baseline: dict[str, Any] = untrusted.read_json(path, untrusted.RESULTS, ValueError)
        assert isinstance(baseline["counts"], dict)
        assert isinstance(baseline["versions"], dict)
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise CountError(f"{path} is no baseline: {error}; write one with --write") from error
    return baseline


def other_releases(baseline: Mapping[str, Any], now: Mapping[str, str | None]) -> list[str]:
    """What is installed in another release than when the baseline was written."""
    return [
        f"{name} {baseline['versions'].get(name)} → {now.get(name)}"
        for name in RELEASES
        if baseline["versions"].get(name) != now.get(name)
    ]


def worse(old: Mapping[str, int], new: Mapping[str, int], tolerance: float) -> list[str]:
    """The sections of ours that take more instructions than the tolerance allows, or are gone."""
    return [
        name
        for name, instructions in old.items()
        if not name.endswith(FRONT_END)  # Triton's own
        and (name not in new or new[name] > instructions * (1 + tolerance))
    ]


def main(
    write: Annotated[bool, typer.Option(help="Write the baseline.")] = False,
    baseline: Annotated[Path, typer.Option(help="The file with the baseline.")] = BASELINE,
    tolerance: Annotated[float, typer.Option(help="How much more is allowed, as a part of it.")] = TOLERANCE,
) -> None:
    """Count instructions of compiling and launching, and compare with the baseline.

    The exit status is 1 where something takes more, 2 where nothing can be counted or compared.
    """
    try:
        counts = count()
        releases = {name: versions().get(name) for name in RELEASES}
        if write:
            data = {"versions": releases, "counts": counts}
            baseline.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
            typer.echo(f"wrote {baseline}")
            return
        before = read(baseline)
    except CountError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    known = before["counts"] | sums(before["counts"])
    for name, instructions in (counts | sums(counts)).items():
        old = known.get(name)
        change = f" ({instructions / old - 1:+.2%})" if old else " (not in the baseline)"
        typer.echo(f"{instructions:>15,}  {name}{change}")
    if others := other_releases(before, releases):
        typer.echo(
            f"the baseline is of other releases: {', '.join(others)}; write one with --write", err=True
        )
        raise typer.Exit(2)
    more = worse(before["counts"], counts, tolerance)
    for name in more:
        typer.echo(f"WORSE: {name}: more than {tolerance:.1%} beyond the baseline", err=True)
    raise typer.Exit(1 if more else 0)


if __name__ == "__main__":
    typer.run(main)
