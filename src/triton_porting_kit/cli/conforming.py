"""The options of `tpk conform`, and which of them can be combined."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triton_porting_kit.cli.errors import UserError
from triton_porting_kit.conformance.levels import DEFAULT_LEVELS, LEVELS

EPILOG = """Examples:

tpk conform --backend cpu --jobs 2

tpk conform --backend cpu --level language --select "language/*/add-* and not fp64"

tpk conform --backend amdgpu --compile-only --arch gfx942 --level language

docs/conformance.md describes statuses, profiles, shards and resuming.
"""


def conform(
    backend: Annotated[
        str, typer.Option(metavar="NAME", help="The backend to test, by its name in Triton.")
    ] = "",
    level: Annotated[
        list[str] | None,
        typer.Option(
            "--level",
            metavar="LEVEL",
            help=f"One of {', '.join(LEVELS)}; may be repeated. Default: {', '.join(DEFAULT_LEVELS)}.",
        ),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar="EXPR",
            help="Checks by name: words and patterns with and, or, not and parentheses. Repeatable.",
        ),
    ] = None,
    shard: Annotated[str, typer.Option(metavar="K/N", help="Run only part K of N equally long parts.")] = "",
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of worker processes.")] = 1,
    compile_only: Annotated[
        bool, typer.Option("--compile-only", help="Compile for --arch or --target without running anything.")
    ] = False,
    arch: Annotated[
        str,
        typer.Option(
            "--arch",  # Some releases of typer derive --ARCH from the metavar.
            metavar="ARCH",
            help="The architecture for --compile-only, such as gfx942.",
        ),
    ] = "",
    target: Annotated[
        str,
        typer.Option(
            metavar="BACKEND:ARCH:WARP",
            help="The exact target for --compile-only, for any backend: hip:gfx942:64.",
        ),
    ] = "",
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The report's folder. Default: conformance-report, or selected in it with --select.",
        ),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The vendor's profile. Default: conformance.toml in the backend's package.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in the report's folder.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Treat unexpected passes as failures.")] = False,
    list_names: Annotated[
        bool, typer.Option("--list", help="Print the names of the checks without running them.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of all random data.")] = 0,
    stress: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Number of random programs in the level stress. Default: as many as are mandatory.",
            show_default=False,
        ),
    ] = 0,
    capture_failures: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Run each failing check again and record its launches in DIR, for `tpk replay`.",
        ),
    ] = None,
    self_test: Annotated[
        bool,
        typer.Option(
            "--self-test",
            help="Test the suite itself: does it detect faults in a test backend? --select chooses faults.",
        ),
    ] = False,
    mutants: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="With --self-test: test N mutants of the kit's own sources instead of planted faults. --seed and "
            "--select (file patterns) choose them. Repeat the command to continue an unfinished run.",
            show_default=False,
        ),
    ] = 0,
    minutes: Annotated[
        float,
        typer.Option(
            metavar="M", min=0, help="With --mutants: start no mutant after M minutes.", show_default=False
        ),
    ] = 0.0,
    effort: Annotated[
        list[str] | None,
        typer.Option(
            "--effort",
            metavar="KEY=SECONDS",
            help="With --mutants: seconds per mutant. suite=120, stress=0 (more random programs), corpus=60, also=0. "
            "Repeatable.",
        ),
    ] = None,
) -> None:
    """Run the conformance suite on a backend.

    Checks run in worker processes, so a crash or a hang affects only its own check. The exit status is 0 only if
    nothing failed and no mandatory check is missing. Ctrl-C leaves a report of the finished checks and exits with 130.
    """
    from triton_porting_kit.conformance.execution.importing import import_triton

    import_triton()
    from triton_porting_kit.conformance.command.conform import list_checks, run_conform
    from triton_porting_kit.conformance.command.conform import self_test as run_self_test
    from triton_porting_kit.conformance.command.request import MISTAKES, Request

    if compile_only != bool(target or arch) or (target and arch):
        raise UserError(
            "--compile-only requires exactly one of --arch ARCH and --target BACKEND:ARCH:WARP, and these require "
            "--compile-only"
        )
    request = Request(
        backend=backend,
        levels=tuple(level or ()),
        selections=tuple(select or ()),
        shard=shard,
        jobs=jobs,
        target=target,
        arch=arch,
        report=report,
        profile=str(profile or ""),
        resume=resume,
        strict=strict,
        quiet=quiet,
        seed=seed,
        stress=stress,
        captures=str(capture_failures or ""),
        mutants=mutants,
        minutes=minutes,
        effort=tuple(effort or ()),
    )
    if (mutants or minutes or effort) and not (self_test and mutants):
        raise UserError("--mutants requires --self-test; --minutes and --effort require --mutants")
    action = run_self_test if self_test else list_checks if list_names else run_conform
    try:
        raise typer.Exit(action(request))
    except MISTAKES as error:
        raise UserError(str(error)) from error
