"""The command `tpk compare`; `triton_porting_kit.compare` implements it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from triton_porting_kit.cli.captures import Arguments, Script
from triton_porting_kit.cli.errors import UserError

EPILOG = """Examples:

tpk compare model.py --against cpu

tpk compare model.py --against cpu -- --batch 4        (arguments after -- are passed to the program)

tpk compare model.py --against cpu --kernel "attention*" --every 10 --keep-going --json compared.json

docs/compare.md lists the allowed errors, what tpk cannot see, and what it does not compare.
"""


def compare(
    script: Script,
    arguments: Arguments = None,
    against: Annotated[
        str, typer.Option(metavar="NAME", help="The reference backend. Only cpu exists.")
    ] = "cpu",
    kernel: Annotated[
        str, typer.Option(metavar="PATTERN", help="Compare only kernels with such names: `matmul_*`.")
    ] = "*",
    every: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Compare the first launch of each kernel, then every N-th."),
    ] = 1,
    max_bytes: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Skip launches whose memory before and after takes more than this in total: 500M, 2G.",
        ),
    ] = "1G",
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going", help="Compare all launches. By default tpk stops at the first wrong one."
        ),
    ] = False,
    dest: Annotated[
        Path, typer.Option(metavar="DIR", help="Keep wrong launches in this folder, for `tpk replay`.")
    ] = Path("compared"),
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the result as JSON.")
    ] = None,
    seconds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Time limit of one launch on the reference.")
    ] = 60,
    locate: Annotated[
        bool,
        typer.Option(
            help="Find the wrong operation: compile the kernel so that it stores intermediate values."
        ),
    ] = True,
) -> None:
    """Run a Python program and find the first launch with a wrong result.

    Each launch runs again on the CPU reference and in float64, starting from the memory that the backend had before it.
    A wrong launch therefore does not make later launches look wrong. The program waits meanwhile. It runs on the
    backend that `TRITON_DEFAULT_BACKEND` selects, whose driver must be made with the kit. Arguments after `--` are
    passed to the program.

    The exit status is 0 if nothing differs and the program succeeds, 1 if a launch differs or the program fails, and 2
    if the command line is wrong or nothing could be compared.
    """
    if not script.is_file():
        raise UserError(f"there is no file {script}")
    if against != "cpu":
        raise UserError(f"there is no reference {against!r}; the only one is cpu")
    from triton_porting_kit.errors import CaptureError
    from triton_porting_kit.replay.settings import FOLDER, parse_size

    # These settings are for this process, whose device is the reference.
    os.environ.pop(FOLDER, None)
    denormals, watchdog = os.environ.pop("TPK_DENORMALS", None), os.environ.get("TPK_WATCHDOG_MS")
    os.environ["TPK_WATCHDOG_MS"] = str(1000 * seconds)
    own = {
        name: value
        for name, value in (("TPK_DENORMALS", denormals), ("TPK_WATCHDOG_MS", watchdog or "0"))
        if value
    }
    try:
        most = parse_size(max_bytes, "--max-bytes")
    except CaptureError as error:
        raise UserError(str(error)) from error
    from triton_porting_kit.cli.comparison import run_compare
    from triton_porting_kit.compare.session import Request

    raise typer.Exit(
        run_compare(
            Request(
                script=script,
                arguments=tuple(arguments or ()),
                kernel=kernel,
                every=every,
                most=most,
                keep_going=keep_going,
                dest=dest,
                locate=locate,
                environment=own,
            ),
            json,
        )
    )
