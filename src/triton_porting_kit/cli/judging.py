"""The command `tpk judge`; `triton_porting_kit.conformance.judge` implements it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triton_porting_kit.cli.errors import UserError

EPILOG = """Examples:

tpk judge softmax.py --task tasks/softmax.py --backend cpu --out judged/softmax

tpk judge model_new.py --task KernelBench/level1/23_Softmax.py

tpk judge submission.py --task reference-kernels/problems/pmpp/vectoradd_py/

tpk verify judged/softmax

docs/judge.md describes the formats of tasks, what the judge detects and how, and its limits.
"""


def judge(
    candidate: Annotated[Path, typer.Argument(metavar="CANDIDATE", help="The Python file with the kernel.")],
    task: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="The task: a file in the kit's format or in KernelBench's, or the folder of a gpu-mode task. Keep it "
            "where the candidate's author cannot write.",
        ),
    ],
    backend: Annotated[str, typer.Option(metavar="NAME", help="The backend, by its name in Triton.")] = "cpu",
    arrays: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="The arrays that the candidate gets: torch, or device (the kit's). Default: as the task says.",
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Write the evidence to this folder, for `tpk verify`."
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(metavar="N", min=3, max=1000, help="Number of timed calls.")] = 15,
    seconds: Annotated[float, typer.Option(min=1.0, help="Time limit of one call in seconds.")] = 60.0,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="OPERATOR",
            help="A torch operator that the candidate may compute with, such as aten.sum. Repeatable.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Stop after the first phase with a finding.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the evidence as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the judgement.")] = False,
) -> None:
    """Judge a kernel of an untrusted author, such as a model: is it correct, written in Triton, and as fast as claimed?

    The candidate runs in separate processes that never see the reference. Every call, timed or not, gets fresh inputs.
    Results start poisoned and are compared with float64 in this process. Times are checked against this process's clock
    and against what the machine can do. The task's file is executed here, so use only tasks that you trust. The exit
    status is 0 only if every result is correct and there are no findings.
    """
    from triton_porting_kit.conformance.execution.importing import import_triton

    import_triton()
    from triton_porting_kit.conformance.judge.command import Options, run_judge

    if arrays not in ("", "torch", "device"):
        raise UserError(f"--arrays must be torch or device, not {arrays!r}")
    if not candidate.is_file():
        raise UserError(f"there is no file {candidate}")
    if not task.exists():
        raise UserError(f"there is no task {task}")
    options = Options(
        candidate,
        task,
        backend,
        arrays,
        out,
        rounds,
        seconds,
        tuple(allow or ()),
        quick,
        as_json=json,
        quiet=quiet,
    )
    raise typer.Exit(run_judge(options))
