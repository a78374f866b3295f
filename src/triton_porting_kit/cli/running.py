"""The command `tpk run`: a program on a backend of one's choice, also one that is written for CUDA."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from triton_porting_kit.cli.captures import Arguments
from triton_porting_kit.cli.errors import UserError

EPILOG = """Examples:

tpk run --backend acme train.py --steps 10

tpk run --as-cuda --backend cpu train.py            (the program says device="cuda")

tpk run --as-cuda -m pytest tests/test_layers.py

docs/pytorch.md lists what --as-cuda maps, and what it does not.
"""

_AS_CUDA = """
import runpy, sys
import triton_porting_kit.pytorch.as_cuda
kind, name, sys.argv[1:] = sys.argv[1], sys.argv[2], sys.argv[3:]
if kind == "module":
    sys.path[0] = ""
    runpy.run_module(name, run_name="__main__", alter_sys=True)
else:
    import os
    sys.argv[0], sys.path[0] = name, os.path.dirname(os.path.abspath(name))
    runpy.run_path(name, run_name="__main__")
"""


def run(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="A Python program, or a module with -m.")],
    arguments: Arguments = None,
    backend: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The Triton backend. Default: that of TRITON_DEFAULT_BACKEND, or the active one.",
        ),
    ] = "",
    as_cuda: Annotated[
        bool,
        typer.Option(
            "--as-cuda", help="Let the program's device `cuda` be the backend's torch device, or the CPU."
        ),
    ] = False,
    module: Annotated[
        bool, typer.Option("-m", "--module", help="PROGRAM is the name of a module, as for `python -m`.")
    ] = False,
) -> None:
    """Run a Python program on a Triton backend.

    With --as-cuda, programs that are written for NVIDIA GPUs run unchanged: `device="cuda"`, `.cuda()`, `is_cuda`,
    streams, events, generators and queries of the device refer to the backend's torch device; if it has none, to the
    CPU. A line on standard error says so. What cannot be mapped raises `CudaNotMapped`, which says what to do.
    Only this process is changed, not those that the program starts.

    Options go before PROGRAM; everything after it is passed to the program. The exit status is the program's.
    """
    if not module and not Path(program).is_file():
        raise UserError(f"there is no file {program}")
    environment = dict(os.environ)
    if backend:
        environment["TRITON_DEFAULT_BACKEND"] = _known(backend)
    if as_cuda:
        _require_torch()
        command = ["-c", _AS_CUDA, "module" if module else "file", program]
    else:
        command = ["-m", program] if module else [program]
    status = subprocess.run(
        [sys.executable, *command, *(arguments or [])], env=environment, check=False
    ).returncode
    if status < 0:
        typer.echo(f"tpk: {program} was killed by {signal.Signals(-status).name}", err=True)
    raise typer.Exit(status if status >= 0 else 128 - status)


def _known(backend: str) -> str:
    from triton.backends import backends

    if backend not in backends:
        raise UserError(
            f"there is no Triton backend {backend!r}; installed are {', '.join(sorted(backends))}"
        )
    return backend


def _require_torch() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise UserError("--as-cuda needs PyTorch: install torch")
