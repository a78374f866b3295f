"""`python -m benchmarks.amd_comparison`: the kit's AMD backend beside Triton's own, kernel by kernel. No GPU is needed.

Both compile the same kernels with the same options, each in a process of its own with an empty cache; then registers,
LDS, code size and families of instructions are compared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

if not __package__:  # run as a file: find the package that it is part of
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.amd_kernels import Figures

ARCHITECTURES = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
TOLERANCE = 0.10
#: Numbers of which a row is judged, with their headings.
JUDGED = {
    "vgprs": "VGPR",
    "agprs": "AGPR",
    "sgprs": "SGPR",
    "spills": "spills",
    "lds": "LDS",
    "code": "code",
    "instructions": "instructions",
}


@dataclass(frozen=True)
class Row:
    """One kernel for one architecture, as the two backends compile it; text is why one could not."""

    arch: str
    name: str
    ours: Figures | str
    theirs: Figures | str

    @property
    def beyond(self) -> list[str]:
        """What differs by more than `TOLERANCE` of Triton's own, for people; empty where the row is fine."""
        ours, theirs = self.ours, self.theirs
        if isinstance(ours, str) or isinstance(theirs, str):
            # What neither backend compiles is equal.
            return [] if isinstance(ours, str) and isinstance(theirs, str) else ["compiled by one only"]
        found = [
            f"{heading} {_change(getattr(ours, key), getattr(theirs, key))}"
            for key, heading in JUDGED.items()
            if _is_beyond(getattr(ours, key), getattr(theirs, key))
        ]
        more, less = set(ours.families) - set(theirs.families), set(theirs.families) - set(ours.families)
        found += [f"+{family}" for family in sorted(more)] + [f"-{family}" for family in sorted(less)]
        options = ours.options.keys() & theirs.options.keys()
        different = sorted(key for key in options if ours.options[key] != theirs.options[key])
        return found + [f"{key}={ours.options[key]} for {theirs.options[key]}" for key in different]

    def to_json(self) -> dict[str, Any]:
        """Plain data for the results file."""
        ours, theirs = (
            {"error": side} if isinstance(side, str) else vars(side) for side in (self.ours, self.theirs)
        )
        return {
            "arch": self.arch,
            "kernel": self.name,
            "beyond": self.beyond,
            "ours": ours,
            "theirs": theirs,
        }


def _is_beyond(ours: int, theirs: int) -> bool:
    return abs(ours - theirs) > TOLERANCE * theirs


def _change(ours: int, theirs: int) -> str:
    return f"{(ours - theirs) / theirs:+.0%}" if theirs else f"{ours} for 0"


def main(
    arch: Annotated[list[str] | None, typer.Option(help="An architecture; may be repeated.")] = None,
    only: Annotated[
        str, typer.Option(help="Compile the kernels whose checks or cases match this regular expression.")
    ] = "",
    ours: Annotated[str, typer.Option(help="Backend and name of its targets.")] = "amdgpu:amdgpu",
    theirs: Annotated[str, typer.Option(help="The backend that it is compared with.")] = "amd:hip",
    out: Annotated[Path | None, typer.Option(help="Write all figures to this file, as JSON.")] = None,
) -> None:
    """Compile kernels with two backends and compare the code that they make.

    By default these are one kernel of each kind of the conformance suite's, one product of matrices of each type, and
    the demo's; `--only .` takes all. A row is beyond tolerance where registers, spills, LDS, code size or the number of
    instructions differ by more than 10% of Triton's own, or instructions of a family, or an option, are with one
    backend only. Times are those of one compilation, of a machine that may do other things: they are not judged.

    The exit status is 1 where a row is beyond tolerance, 2 where nothing was compiled or a backend failed altogether.
    """
    from rich.console import Console

    console = Console(width=None if os.isatty(1) else 200)
    rows: list[Row] = []
    for name in arch or ARCHITECTURES:
        console.print(f"compiling for {name}", style="dim")
        try:
            found = list(compare(name, ours, theirs, only))
        except RuntimeError as error:
            console.print(str(error), markup=False, style="red")
            raise typer.Exit(2) from None
        print_table(console, name, found)
        rows += found
    if not rows:
        console.print(f"nothing matches {only!r}", markup=False)
        raise typer.Exit(2)
    marked = sum(bool(row.beyond) for row in rows)
    console.print(f"{len(rows)} kernels, {marked} beyond {TOLERANCE:.0%}; {_times(rows)}")
    if out:
        text = json.dumps({"tolerance": TOLERANCE, "rows": [row.to_json() for row in rows]}, indent=1)
        out.write_text(text + "\n", encoding="utf-8")
        console.print(f"wrote {out}", markup=False)
    if marked:
        raise typer.Exit(1)
    if all(isinstance(row.ours, str) for row in rows):
        raise typer.Exit(2)


def compare(arch: str, ours: str, theirs: str, only: str = "") -> Iterator[Row]:
    """The rows of one architecture. `ours` and `theirs` are ``BACKEND:TARGET``. Raises `RuntimeError` as `compiled`."""
    left, right = (compiled(backend, arch, only) for backend in (ours, theirs))
    for name in dict.fromkeys((*left, *right)):
        missing = "nothing of this name was compiled"
        yield Row(arch, name, left.get(name, missing), right.get(name, missing))


def compiled(backend: str, arch: str, only: str) -> dict[str, Figures | str]:
    """What a backend makes of the kernels, in a process of its own. Raises `RuntimeError` where that fails."""
    entry, _, target = backend.partition(":")
    warp = 64 if arch.startswith("gfx9") else 32
    command = [sys.executable, "-m", "benchmarks.amd_kernels", entry, f"{target}:{arch}:{warp}", only]
    done = subprocess.run(
        command, cwd=Path(__file__).resolve().parents[1], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{entry} for {arch} ended with status {done.returncode}:\n{done.stderr[-2000:]}")
    found: dict[str, Figures | str] = {}
    for line in done.stdout.splitlines():
        if line.startswith('{"name"'):
            read = json.loads(line)
            result = read["result"]
            found[read["name"]] = result if isinstance(result, str) else Figures(**result)
    return found


def print_table(console: Any, arch: str, rows: Sequence[Row]) -> None:
    """Print rows; where the two differ, ours stands before theirs."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(title=f"{arch}: ours, or ours:theirs", box=SIMPLE)
    table.add_column("kernel", overflow="fold")
    for heading in (*JUDGED.values(), "matrix", "ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("beyond 10%", overflow="fold")
    for row in rows:
        ours, theirs = row.ours, row.theirs
        style = "bold red" if row.beyond else ""
        if isinstance(ours, str) or isinstance(theirs, str):
            reasons = {side: side for side in (ours, theirs) if isinstance(side, str)}
            blanks = [""] * (len(JUDGED) + 2)
            told = "; ".join([*row.beyond, *(reason[:100] for reason in reasons)])
            table.add_row(row.name, *blanks, told, style=style)
            continue
        numbers = [_pair(getattr(ours, key), getattr(theirs, key)) for key in JUDGED]
        matrix = _pair(_matrix(ours), _matrix(theirs))
        times = f"{ours.compile_ms:.0f}:{theirs.compile_ms:.0f}"
        table.add_row(row.name, *numbers, matrix, times, ", ".join(row.beyond), style=style)
    console.print(table)


def _pair(ours: int, theirs: int) -> str:
    return str(ours) if ours == theirs else f"{ours}:{theirs}"


def _matrix(figures: Figures) -> int:
    return sum(count for family, count in figures.families.items() if family.startswith("v_"))


def _times(rows: Sequence[Row]) -> str:
    both = [(row.ours, row.theirs) for row in rows]
    pairs = [(a.compile_ms, b.compile_ms) for a, b in both if not (isinstance(a, str) or isinstance(b, str))]
    ours, theirs = (sum(pair[side] for pair in pairs) / 1e3 for side in (0, 1))
    return f"{len(pairs)} compiled by both, in {ours:.1f} s and by Triton's own in {theirs:.1f} s"


if __name__ == "__main__":
    typer.run(main)
