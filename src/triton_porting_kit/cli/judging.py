"""The command `tpk judge`; what it does is in `triton_porting_kit.conformance.judge`."""

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

docs/judge.md has the formats of tasks, what is caught and how, and what is not promised.
"""


def judge(
    candidate: Annotated[Path, typer.Argument(metavar="CANDIDATE", help="The Python file with the kernel.")],
    task: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="The task: a plain one, one of KernelBench's, or the folder of one of gpu-mode's. Keep it where the "
            "candidate's author did not write.",
        ),
    ],
    backend: Annotated[
        str, typer.Option(metavar="NAME", help="The backend, as it is registered with Triton.")
    ] = "cpu",
    arrays: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="What the candidate gets: torch or device (the kit's arrays). By the task by default.",
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where the evidence goes, for tpk verify."),
    ] = None,
    rounds: Annotated[int, typer.Option(metavar="N", min=3, max=1000, help="Number of timed calls.")] = 15,
    seconds: Annotated[float, typer.Option(min=1.0, help="Time limit of one call in seconds.")] = 60.0,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="OPERATOR",
            help="An operator of torch that may compute: aten.sum. May be repeated.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Stop after the first phase that finds something.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the evidence as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the judgement only.")] = False,
) -> None:
    """Judge a kernel that a model or a stranger wrote: is it right, made by Triton, and as fast as it says?

    The candidate runs in processes of its own that never see the reference. Inputs are fresh in every call, also in
    those that are timed, results begin poisoned and are compared with float64 in this process, and times are held
    against this process's clock and against what the machine can do. The task's file is executed here: it has to be
    yours. The exit status is 0 only if every result is right and nothing was found.
    """
    from triton_porting_kit.conformance.execution.importing import import_triton

    import_triton()
    from triton_porting_kit.conformance.judge.command import Options, run_judge

    if arrays not in ("", "torch", "device"):
        raise UserError(f"--arrays is torch or device, and not {arrays!r}")
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
