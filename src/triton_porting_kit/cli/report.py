"""The commands about reports and their options; what they do is in `triton_porting_kit.conformance.report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="report",
    help="Join, compare and show reports of the conformance suite.",
    no_args_is_help=True,
)

JUDGEMENT = "judge.json"
"""What `tpk judge` leaves, beside a report of the conformance suite."""

Source = Annotated[Path, typer.Argument(metavar="REPORT", help="A report.json, or the folder that it is in.")]


def verify(
    path: Annotated[
        Path,
        typer.Argument(metavar="REPORT", help="A report.json or a judge.json, or the folder that it is in."),
    ],
) -> None:
    """Compute every status and verdict of a report again, from its evidence and the mandatory lists.

    Of the evidence of `tpk judge`: every finding, time and verdict. The exit status is 0 if the report agrees, whatever
    its verdicts are, and 1 if it does not.
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
        typer.Argument(metavar="REPORT...", help="Reports of shards, or of levels, of the same run."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder of the joined report.")],
) -> None:
    """Join the reports of shards, and say which checks are missing. The exit status is 1 if any is."""
    from triton_porting_kit.conformance.report.commands import run_merge

    raise typer.Exit(run_merge(paths, out))


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A report.json, or the folder that it is in.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The one to compare it with.")],
) -> None:
    """Show what changed between two runs. The exit status is 1 if something got worse."""
    from triton_porting_kit.conformance.report.commands import run_diff

    raise typer.Exit(run_diff(old, new))


@app.command()
def show(path: Source) -> None:
    """Show the verdicts of a run and what failed. The exit status is 0 only if it is a pass."""
    from triton_porting_kit.conformance.report.commands import run_show

    raise typer.Exit(run_show(path))


@app.command()
def badge(
    path: Annotated[
        Path, typer.Argument(metavar="REPORT", help="A report.json, or the folder that it is in.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The SVG file to write.")] = Path(
        "badge.svg"
    ),
) -> None:
    """Draw the level that a backend has reached, from a report that agrees with its evidence.

    It is the highest level that is passed with all below it. The exit status is 1 if the report does not agree.
    """
    from triton_porting_kit.conformance.report.badge import run_badge

    raise typer.Exit(run_badge(path, out))
