"""The program `tpk-linalg-opt`, in the place of `triton-shared-opt`: from TTIR to the linalg form."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from triton_porting_kit.errors import CompilationError, PortingKitError
from triton_porting_kit.untrusted import shown

NAME = "tpk-linalg-opt"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program with these arguments (by default those of the process) and exit.

    Exit status 1: the module has no form, or is no TTIR. Exit status 2: the command line is wrong, as with an option
    that the program does not know.
    """
    given = _arguments(arguments)
    try:
        text = sys.stdin.read() if given.input == "-" else Path(given.input).read_text(encoding="utf-8")
        made = linalg_of(text, locations=given.mlir_print_debuginfo)
        if given.output == "-":
            sys.stdout.write(made)
        else:
            Path(given.output).write_text(made, encoding="utf-8")
    except (PortingKitError, OSError, UnicodeDecodeError) as error:
        print(f"{NAME}: {shown(error)}", file=sys.stderr)
        sys.exit(1)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        NAME,
        description="Write a kernel's TTIR in the linalg form, in the convention of triton-shared.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "input", nargs="?", default="-", help="TTIR as Triton prints it; - is the standard input"
    )
    parser.add_argument("-o", dest="output", default="-", metavar="FILE", help="where the form is written")
    parser.add_argument(
        "--triton-to-linalg-experimental", action="store_true", required=True, help="what the program does"
    )
    parser.add_argument("--mlir-print-debuginfo", action="store_true", help="write the locations, too")
    return parser.parse_args(arguments)


def linalg_of(ttir: str, *, locations: bool = False) -> str:
    """The linalg form, in the convention triton-shared, of a kernel's TTIR in any syntax that this Triton reads.

    Raises `CompilationError` if it is no TTIR, or for an operation that has no form.
    """
    from triton_porting_kit.compiler import CpuTarget, artefacts, cpu_pipeline, linalg_stage
    from triton_porting_kit.toolchain import compat

    with tempfile.TemporaryDirectory(prefix=f"{NAME}-") as folder:
        path = Path(folder) / "kernel.ttir"
        path.write_text(ttir, encoding="utf-8")
        try:
            module: Any = compat.read_ttir(path)
        except RuntimeError as error:
            raise CompilationError(
                f"Triton {compat.release()} does not read the module as TTIR: {error}",
                remedy="give TTIR as str(module) prints it, of the installed release of Triton",
            ) from error
    stages = cpu_pipeline(CpuTarget.portable()).until("structured")
    structured = stages.run(module, {})["structured"]
    made = linalg_stage().run(structured, {})
    if locations:
        return str(made)
    return str(artefacts.mlir_module(made))
