"""The command `tpk compare`; what it does is in `triton_porting_kit.compare`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from triton_porting_kit.cli.captures import Arguments, Script
from triton_porting_kit.cli.errors import UserError

EPILOG = """Examples:

tpk compare model.py --against cpu

tpk compare model.py --against cpu -- --batch 4        (what stands behind -- is the program's)

tpk compare model.py --against cpu --kernel "attention*" --every 10 --keep-going --json compared.json

docs/compare.md says how far results may be off, what cannot be seen, and what is not compared.
"""


def compare(
    script: Script,
    arguments: Arguments = None,
    against: Annotated[
        str, typer.Option(metavar="NAME", help="The reference: cpu is the one there is.")
    ] = "cpu",
    kernel: Annotated[
        str, typer.Option(metavar="PATTERN", help="Kernels by name, as files in a shell: `matmul_*`.")
    ] = "*",
    every: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Compare the first launch of each kernel and every N-th after it."
        ),
    ] = 1,
    max_bytes: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="Skip launches that use more memory, before and after together: 500M, 2G."
        ),
    ] = "1G",
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Compare all launches; otherwise end with the first that differs."),
    ] = False,
    dest: Annotated[
        Path, typer.Option(metavar="DIR", help="Where launches that differ are kept, to be replayed.")
    ] = Path("compared"),
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON, too.")
    ] = None,
    seconds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Time limit of one launch on the reference.")
    ] = 60,
    locate: Annotated[
        bool, typer.Option(help="Look for the operation, by compiling the kernel with its values stored.")
    ] = True,
) -> None:
    """Run a Python program and find the first launch with a wrong result.

    Each launch is run again on the CPU reference, with the memory that the backend had before it, and in float64: one
    that is wrong does not make those after it look wrong. The program waits meanwhile. It has to run on a backend whose
    driver is made with the kit, as `TRITON_DEFAULT_BACKEND` says. What stands behind `--` is the program's.

    The exit status is 0 if nothing differs and the program ended well, 1 if a launch differs or the program failed, 2
    if the command was called wrongly or nothing could be compared.
    """
    if not script.is_file():
        raise UserError(f"there is no file {script}")
    if against != "cpu":
        raise UserError(f"there is no reference {against!r}; the one there is is cpu")
    from triton_porting_kit.errors import CaptureError
    from triton_porting_kit.replay.settings import FOLDER, parse_size

    # Of this process, whose device is the reference.
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
