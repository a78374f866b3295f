"""The options of `tpk public`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from triton_porting_kit.cli.errors import UserError
from triton_porting_kit.errors import PortingKitError

EPILOG = """Examples:

tpk public --backend cpu --jobs 2

tpk public --backend acme --only liger --only "fla/chunk_*"

tpk public --only liger --from liger=~/src/Liger-Kernel/src

tpk public --checked --only torchao

tpk public --times 1,2 --page docs/public-kernels.md

tpk public --fetch --python 3.12 --cache packages

tpk public --suite ~/src/Liger-Kernel --tests test/transformers/test_rms_norm.py

docs/public-kernels.md lists the collections and the last results.
"""


def public(
    backend: Annotated[
        str, typer.Option(metavar="NAME", help="The backend, by its name in Triton: cpu, acme, nvidia.")
    ] = "cpu",
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="NAME[/ENTRY]",
            help="A collection, or entries of it by a pattern such as liger/rms_norm*. Repeatable. Default: all.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of processes.")] = 1,
    shard: Annotated[str, typer.Option(metavar="K/N", help="Run only part K of N.")] = "",
    times: Annotated[
        str,
        typer.Option(
            metavar="COUNTS",
            help="Measure entries that are right, and torch eager, with these numbers of threads: 1,2.",
        ),
    ] = "",
    checked: Annotated[
        bool,
        typer.Option(
            "--checked",
            help="Run each entry a second time with the kit's checks of memory accesses (TPK_CHECK=memory).",
        ),
    ] = False,
    checkout: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="NAME=DIR",
            help="Import a collection from this folder instead of its pinned release. Repeatable.",
        ),
    ] = None,
    report: Annotated[Path, typer.Option(metavar="DIR", help="The report's folder.")] = Path("public-report"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in the report's folder.")
    ] = False,
    without: Annotated[
        list[Path] | None,
        typer.Option(
            "--without", metavar="DIR", help="Leave out the entries of the report in this folder. Repeatable."
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(metavar="S", min=0, help="Time limit of an entry, if its own is longer.")
    ] = 0.0,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Add the results to a page in Markdown. Its plot, and the results of all its runs, are beside it.",
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where packages are kept. Default: triton-porting-kit in the cache of the user.",
        ),
    ] = None,
    fetch: Annotated[
        bool,
        typer.Option(
            "--fetch", help="Only fetch the packages, for example into --cache for a machine without network."
        ),
    ] = False,
    python: Annotated[
        str,
        typer.Option(
            metavar="X.Y",
            help="With --fetch: the release of Python there. Triton is not fetched then. Default: this one.",
        ),
    ] = "",
    list_names: Annotated[
        bool, typer.Option("--list", help="Print the names of the entries without running them.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
    suite: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Run the tests in a checkout of a package by pytest, with `cuda` mapped, and sort the failures.",
        ),
    ] = None,
    tests: Annotated[
        list[str] | None,
        typer.Option("--tests", metavar="ARG", help="With --suite: arguments for pytest. Repeatable."),
    ] = None,
) -> None:
    """Run Triton kernels that others publish, unmodified, and compare them with float64.

    Each collection is a package of the index at a pinned release. It is installed without dependencies into a folder
    of its own and runs in processes of its own, where `cuda` is the backend's torch device. Inputs and references are
    the kit's. The verdict on an entry is right, or whose fault it is: the kit's, the package's own, another release or
    a GPU feature that it needs. The exit status is 0 only if nothing failed by the kit's fault.
    """
    from triton_porting_kit.conformance.execution.importing import import_triton

    import_triton()
    from triton_porting_kit.conformance.public.command import (
        PublicRequest,
        fetch_public,
        list_public,
        run_public,
    )
    from triton_porting_kit.conformance.public.options import THIS_PYTHON, Options
    from triton_porting_kit.conformance.public.suites import run_suite

    _require_torch()
    options = Options(
        _counts(times),
        checked,
        dict(_checkout(word) for word in checkout or ()),
        cache or Options.cache,
        seconds,
        _release(python) if python else THIS_PYTHON,
    )
    if options.python != THIS_PYTHON and not fetch:
        raise UserError("--python names the Python that packages are fetched for: add --fetch")
    try:
        if suite is not None:
            raise typer.Exit(run_suite(suite, backend, tuple(tests or ()), report))
        request = PublicRequest(
            backend,
            tuple(only or ()),
            options,
            report,
            jobs,
            shard,
            resume,
            quiet,
            page,
            tuple(without or ()),
        )
        action = fetch_public if fetch else list_public if list_names else run_public
        raise typer.Exit(action(request))
    except PortingKitError as error:
        raise UserError(str(error)) from error


def _counts(text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(word) for word in text.split(",") if word)
    except ValueError:
        raise UserError(f"--times takes numbers of threads, such as 1,2, not {text!r}") from None
    if any(count < 1 for count in found):
        raise UserError(f"--times takes numbers of threads from 1 on, not {text!r}")
    return found


def _release(text: str) -> str:
    if not re.fullmatch(r"3\.\d+", text):
        raise UserError(f"--python takes a release such as 3.12, not {text!r}")
    return text


def _checkout(word: str) -> tuple[str, Path]:
    name, _, folder = word.partition("=")
    if not folder:
        raise UserError(f"--from takes NAME=DIR, not {word!r}")
    return name, Path(folder).expanduser().absolute()


def _require_torch() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise UserError("public kernels take tensors of PyTorch: install torch")
