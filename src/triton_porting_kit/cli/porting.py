"""The commands about a backend of one's own and their options; what they do is in `triton_porting_kit.porting`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triton_porting_kit.cli.errors import UserError

NEW_EPILOG = """Examples:

tpk new acme

tpk new acme --vendor "Acme Corporation" --chip "A100 NPU" --dest ~/work

A name is 1 to 24 ASCII letters, digits and single dashes, and begins with a letter. What is taken is refused.
"""


def new(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="What Triton is to know the backend by; the repository is triton-NAME."
        ),
    ],
    vendor: Annotated[
        str, typer.Option(help="The chip's vendor. Default: NAME, capitalised.", show_default=False)
    ] = "",
    chip: Annotated[str, typer.Option(help="The chip's name.")] = "NPU",
    dest: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder that the repository goes into; made if need be.")
    ] = Path(),
    git: Annotated[
        bool | None,
        typer.Option(
            "--git/--no-git",
            help="Make a git repository with a first commit; by default where DIR is in no repository.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make the repository of a backend for your chip, which works from the first minute on a virtual NPU.

    It holds a compiler, a launcher and a driver that you replace hook by hook, with tests, a profile for the
    conformance suite, and what continuous integration runs. Nothing is left behind where that fails.
    """
    from triton_porting_kit.errors import NamingError
    from triton_porting_kit.porting.names import names_of, title
    from triton_porting_kit.porting.new import make

    try:
        names = names_of(name)
        titles = title(vendor or names.words, "vendor"), title(chip, "chip")
    except NamingError as error:
        raise UserError(str(error)) from error
    made = make(names, vendor=titles[0], chip=titles[1], into=dest, own_repository=git)
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
    typer.echo("docs/PORTING.md there says what to replace, in which order.")


def update(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="A repository that `tpk new` made.", show_default=False)
    ] = Path(),
) -> None:
    """Bring what this kit's template has that is new into a repository that an older kit made.

    What was changed there is kept; where both changed the same lines, both are left in the file, marked. Nothing is
    committed. The exit status is 1 if something is marked.
    """
    from triton_porting_kit.porting.update import update as bring

    done = bring(folder)
    if done.old == done.new:
        typer.echo(f"Up to date: this is the template of {done.new}.")
        return
    typer.echo(
        f"Brought from the template of {done.old} to that of {done.new}: {len(done.changed)} files changed."
    )
    for path in done.changed:
        typer.echo(f"  {'conflict  ' if path in done.conflicts else '          '}{path}")
    if done.conflicts:
        typer.echo(
            "\nWhere it says conflict, your lines stand between `<<<<<<< before updating` and `=======`, the "
            "template's from there to `>>>>>>> after updating`.\nLeave what is right, take the marks away, then "
            "`git add` the file. `git checkout HEAD -- FILE` takes yours as it was."
        )
        typer.echo("`git restore --staged --worktree . && git clean -fd` takes the whole update back.")
        raise typer.Exit(1)
    typer.echo("\nLook at `git diff`, install it again, run the tests, and commit.")


def _missing() -> list[str]:
    """What building a backend takes and is not there, as pip takes it: the kit's extra `backend`."""
    import shutil
    from importlib.util import find_spec

    modules = {"scikit_build_core": '"scikit-build-core>=0.11"', "pybind11": '"pybind11>=3.0,<4"'}
    missing = [requirement for module, requirement in modules.items() if find_spec(module) is None]
    return missing + ([] if shutil.which("cmake") or find_spec("cmake") else ['"cmake>=3.20"', "ninja"])


def _shown(path: Path) -> str:
    """As it is typed from here."""
    import shlex

    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
