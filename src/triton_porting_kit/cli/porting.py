"""The commands `tpk new` and `tpk update` and their options; `triton_porting_kit.porting` implements them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triton_porting_kit.cli.errors import UserError
from triton_porting_kit.porting.new import Shape

NEW_EPILOG = """Examples:

tpk new acme

tpk new acme --vendor "Acme Corporation" --chip "A100 NPU" --dest ~/work

tpk new acme --shape cores

tpk new acme --shape mlir

tpk new acme --shape opencl

A name consists of 1 to 24 ASCII letters, digits and single dashes and begins with a letter. Names that are taken are
refused.
"""


def new(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The backend's name in Triton. The repository is triton-NAME."),
    ],
    vendor: Annotated[
        str, typer.Option(help="The chip's vendor. Default: NAME, capitalised.", show_default=False)
    ] = "",
    chip: Annotated[str, typer.Option(help="The chip's name.")] = "NPU",
    dest: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="The parent folder of the repository. It is created if it is missing."
        ),
    ] = Path(),
    shape: Annotated[
        Shape,
        typer.Option(
            help="npu: cores with scratchpads, DMA engines, and vector and matrix units, which a file describes. "
            "cores: cores that read global memory, as CPUs do. "
            "mlir: a chip whose compiler is an external program that takes the form linalg. "
            "opencl: a chip whose runtime is OpenCL, with a compiler in its driver."
        ),
    ] = Shape.NPU,
    git: Annotated[
        bool | None,
        typer.Option(
            "--git/--no-git",
            help="Create a git repository with a first commit. Default: only if DIR is not in a repository.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Create the repository of a backend for your chip. It works from the start, on a virtual NPU.

    The virtual NPU has the shape of your chip. In the shape npu, a file describes the chip's memories and units: the
    compiler plans with it, and the virtual NPU simulates it. In the shape mlir, a program of the repository stands in
    for the vendor's compiler. In the shape opencl, any OpenCL device takes the place of the chip.

    The repository contains a compiler, a launcher and a driver that you replace hook by hook, tests, a profile for the
    conformance suite, and the configuration of continuous integration. If the command fails, it leaves nothing behind.
    """
    from triton_porting_kit.errors import NamingError
    from triton_porting_kit.porting.names import names_of, title
    from triton_porting_kit.porting.new import make

    try:
        names = names_of(name)
        titles = title(vendor or names.words, "vendor"), title(chip, "chip")
    except NamingError as error:
        raise UserError(str(error)) from error
    made = make(names, vendor=titles[0], chip=titles[1], into=dest, own_repository=git, shape=shape)
    typer.echo(f"Made {made.path}, {len(made.files)} files. {made.git}\n")
    typer.echo(f"  repository  {names.repository}, for {titles[0]}'s {titles[1]}")
    typer.echo(f"  package     {names.package}")
    typer.echo(f"  backend     {names.backend}, as in TRITON_DEFAULT_BACKEND={names.backend}")
    typer.echo(f"  classes     {names.class_prefix}Device and the like\n")
    typer.echo("Next:\n")
    typer.echo(f"  cd {_shown(made.path)}")
    if missing := _missing():
        typer.echo(f"  pip install {' '.join(missing)}")
    typer.echo('  pip install --no-build-isolation -e ".[test]"')
    typer.echo(f"  tpk conform --backend {names.backend} --level registration --level runtime")
    typer.echo("  tpk status\n")
    typer.echo("docs/PORTING.md in the repository lists what to replace, in which order.")


def update(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="A repository that `tpk new` made.", show_default=False)
    ] = Path(),
) -> None:
    """Update a repository that an older kit created: merge the changes of this kit's template into it.

    Your changes are kept. If the template changed the same lines, the file gets conflict markers around both versions.
    Nothing is committed. The exit status is 1 if there are conflicts.
    """
    from triton_porting_kit.porting.update import update as bring

    done = bring(folder)
    if done.old == done.new:
        typer.echo(f"Up to date: the repository matches the template of version {done.new}.")
        return
    typer.echo(
        f"Updated the template from version {done.old} to {done.new}: {len(done.changed)} files changed."
    )
    for path in done.changed:
        typer.echo(f"  {'conflict  ' if path in done.conflicts else '          '}{path}")
    if done.conflicts:
        typer.echo(
            "\nIn a file with conflicts, your lines are between `<<<<<<< before updating` and `=======`, and the "
            "template's lines between `=======` and `>>>>>>> after updating`.\nKeep the right lines, remove the "
            "markers, then `git add` the file. `git checkout HEAD -- FILE` restores your version."
        )
        typer.echo("`git restore --staged --worktree . && git clean -fd` undoes the whole update.")
        raise typer.Exit(1)
    typer.echo("\nReview `git diff`, reinstall the backend, run its tests, and commit.")


def _missing() -> list[str]:
    """The packages that building a backend needs and that are missing, as pip requirements: the extra `backend`."""
    import shutil
    from importlib.util import find_spec

    modules = {"scikit_build_core": '"scikit-build-core>=0.11"', "pybind11": '"pybind11>=3.0,<4"'}
    missing = [requirement for module, requirement in modules.items() if find_spec(module) is None]
    return missing + ([] if shutil.which("cmake") or find_spec("cmake") else ['"cmake>=3.20"', "ninja"])


def _shown(path: Path) -> str:
    """The path as typed in a shell in the current folder."""
    import shlex

    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
