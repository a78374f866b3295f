"""The commands about reports and their options; `triton_porting_kit.conformance.report` implements them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="report",
    help="Merge, compare and show reports of the conformance suite.",
    no_args_is_help=True,
)

JUDGEMENT = "judge.json"
"""The file that `tpk judge` writes."""

Source = Annotated[Path, typer.Argument(metavar="REPORT", help="A report.json, or its folder.")]


def verify(
    path: Annotated[
        Path,
        typer.Argument(metavar="REPORT", help="A report.json or a judge.json, or its folder."),
    ],
) -> None:
    """Verify a report: derive every status and verdict again from its evidence and the mandatory lists.

    For the evidence of `tpk judge`, verify every finding, time and verdict. The exit status is 0 if the report is
    consistent, whatever its verdicts are, and 1 if it is not.
    """
    if path.name == JUDGEMENT or (path / JUDGEMENT).is_file():
        from triton_porting_kit.conformance.judge.command import run_verify as verify_judgement

        raise typer.Exit(verify_judgement(path))
    from triton_porting_kit.conformance.report.commands import run_verify

    raise typer.Exit(run_verify(path))


@app.command()
def merge(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="REPORT...", help="Reports of shards or levels of the same run."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder of the merged report.")],
) -> None:
    """Merge the reports of shards, and list missing checks. The exit status is 1 if any check is missing."""
    from triton_porting_kit.conformance.report.commands import run_merge

    raise typer.Exit(run_merge(paths, out))


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A report.json, or its folder.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The newer report.")],
) -> None:
    """Show what changed between two runs. The exit status is 1 if there are regressions."""
    from triton_porting_kit.conformance.report.commands import run_diff

    raise typer.Exit(run_diff(old, new))


@app.command()
def show(path: Source) -> None:
    """Show the verdicts and the failures of a run. The exit status is 0 only if the run passed."""
    from triton_porting_kit.conformance.report.commands import run_show

    raise typer.Exit(run_show(path))


@app.command()
def badge(
    path: Annotated[Path, typer.Argument(metavar="REPORT", help="A report.json, or its folder.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The SVG file to write.")] = Path(
        "badge.svg"
    ),
) -> None:
    """Draw a badge with the level that a backend has reached, after verifying the report.

    This is the highest level that passes together with all levels below it. The exit status is 1 if the report is
    inconsistent.
    """
    from triton_porting_kit.conformance.report.badge import run_badge

    raise typer.Exit(run_badge(path, out))
