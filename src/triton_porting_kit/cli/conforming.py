"""``tpk conform``: its options, and what goes together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triton_porting_kit.cli.errors import UserError

EPILOG = """Examples:

tpk conform --backend cpu --jobs 2

tpk conform --backend cpu --level language --select "language/*/add-* and not fp64"

tpk conform --backend amdgpu --compile-only --arch gfx942 --level language

docs/conformance.md describes statuses, profiles, shards, and how a run is gone on with.
"""


def conform(
    backend: Annotated[
        str, typer.Option(metavar="NAME", help="The backend to judge, as it is registered with Triton.")
    ] = "",
    level: Annotated[
        list[str] | None,
        typer.Option(
            "--level",
            metavar="LEVEL",
            help="registration, runtime, language, kernels or stress; may be repeated. All by default.",
        ),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar="EXPR",
            help="Checks by name: words and patterns with and, or, not and parentheses. May be repeated.",
        ),
    ] = None,
    shard: Annotated[
        str, typer.Option(metavar="K/N", help="Only part K of N, of about the same length.")
    ] = "",
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Checks that run at a time.")] = 1,
    compile_only: Annotated[
        bool, typer.Option("--compile-only", help="Compile for --arch or --target, and run nothing.")
    ] = False,
    arch: Annotated[
        str,
        typer.Option(
            "--arch",  # some releases of typer make --ARCH of what shows as ARCH
            metavar="ARCH",
            help="What --compile-only compiles for: an architecture of the backend's, gfx942.",
        ),
    ] = "",
    target: Annotated[
        str,
        typer.Option(metavar="BACKEND:ARCH:WARP", help="The same for any backend: hip:gfx942:64."),
    ] = "",
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where the report goes; conformance-report, or selected in it, by default."
        ),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What the vendor declares; conformance.toml beside the backend's package by default.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in the report's folder.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Unexpected passes fail, too.")] = False,
    list_names: Annotated[bool, typer.Option("--list", help="Print the names of checks; run none.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    seed: Annotated[int, typer.Option(help="The seed of all random data.")] = 0,
    stress: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Random programs of the level stress; as many as are mandatory by default.",
            show_default=False,
        ),
    ] = 0,
    capture_failures: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Run each check that fails again, and record its launches there, for `tpk replay`.",
        ),
    ] = None,
    self_test: Annotated[
        bool,
        typer.Option(
            "--self-test",
            help="Judge the suite instead: does it notice faults in a test backend? --select chooses faults.",
        ),
    ] = False,
    mutants: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="With --self-test: N mechanical changes of the kit's own sources instead of planted faults; --seed "
            "and --select (patterns of files) choose them. The same command goes on with an unfinished run.",
            show_default=False,
        ),
    ] = 0,
    minutes: Annotated[
        float,
        typer.Option(
            metavar="M", min=0, help="With --mutants: begin none after M minutes.", show_default=False
        ),
    ] = 0.0,
    effort: Annotated[
        list[str] | None,
        typer.Option(
            "--effort",
            metavar="KEY=SECONDS",
            help="With --mutants, for each: suite=120, stress=0 (more random programs), corpus=60, also=0. May be "
            "repeated.",
        ),
    ] = None,
) -> None:
    """Judge a backend by the conformance suite.

    Checks run in a process of their own: one that crashes or hangs costs its own result. The exit status is 0 only
    if nothing failed and nothing that is mandatory is missing; 130 after Ctrl-C, which leaves a report of what was
    done.
    """
    from triton_porting_kit.conformance.execution.importing import import_triton

    import_triton()
    from triton_porting_kit.conformance.command.conform import list_checks, run_conform
    from triton_porting_kit.conformance.command.conform import self_test as run_self_test
    from triton_porting_kit.conformance.command.request import MISTAKES, Request

    if compile_only != bool(target or arch) or (target and arch):
        raise UserError(
            "--compile-only and what to compile for go together: name --arch ARCH, or --target BACKEND:ARCH:WARP"
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
        raise UserError("--mutants is an option of --self-test, and --minutes and --effort are of --mutants")
    action = run_self_test if self_test else list_checks if list_names else run_conform
    try:
        raise typer.Exit(action(request))
    except MISTAKES as error:
        raise UserError(str(error)) from error
