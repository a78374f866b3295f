"""`tpk conform`: plans a run, executes it, and writes the report."""

from __future__ import annotations

import shlex
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from triton_porting_kit.conformance.command import summary
from triton_porting_kit.conformance.command.driving import run_checks, scratch_folder
from triton_porting_kit.conformance.command.progress import Watcher, plain
from triton_porting_kit.conformance.command.request import (
    SAME,
    Request,
    check_backend,
    check_tools,
    default_folder,
    refuse_to_replace,
    resumed,
    run_in,
    target_of,
)
from triton_porting_kit.conformance.execution.plan import Plan, PlanError, load_checks, make_plan
from triton_porting_kit.conformance.execution.run import Choice, Probe, metadata, now, probe
from triton_porting_kit.conformance.execution.runfolder import (
    RECORDS,
    RunFolder,
    RunFolderError,
    is_final,
    records_in,
)
from triton_porting_kit.conformance.execution.settings import Settings
from triton_porting_kit.conformance.execution.shards import Shard
from triton_porting_kit.conformance.execution.supervisor import LOST_WORKER, OUT_OF_TIME, Supervisor
from triton_porting_kit.conformance.levels import DEFAULT_LEVELS, LEVELS
from triton_porting_kit.conformance.profile import ProfileError, load
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report.build import write_reports
from triton_porting_kit.conformance.report.model import GOOD
from triton_porting_kit.conformance.status import Status
from triton_porting_kit.conformance.torch import support as torch_support
from triton_porting_kit.untrusted import shown

INTERRUPTED = 130
FIGURES_SECONDS = 60.0
"""The time for measuring performance, in seconds."""


def run_conform(request: Request) -> int:
    """Run the suite, and return the exit status. Raises `PortingKitError`."""
    try:
        with scratch_folder() as scratch, _terminable():
            return _Conform(request, scratch).run()
    except KeyboardInterrupt:
        return INTERRUPTED


def list_checks(request: Request) -> int:
    """Print the names of the checks that a run would try."""
    with scratch_folder() as scratch:
        conform = _Conform(request, scratch)
        found = conform.ask()
        for check in conform.plan(found).checks:
            print(check.name)
    if found.failure is not None:
        print(f"tpk: no worker could be started: {shown(found.failure['message'])}", file=sys.stderr)
    return 0


def self_test(request: Request) -> int:
    """Test the suite itself: whether it catches planted faults of a test backend, or mutants of the kit."""
    if request.mutants:
        from triton_porting_kit.conformance.command.mutants import score_by_mutants

        try:
            with _terminable():
                return score_by_mutants(request)
        except KeyboardInterrupt:
            print("tpk: interrupted; repeat the command to continue", file=sys.stderr)
            return INTERRUPTED
    from triton_porting_kit.conformance.faults.selftest import run_self_test

    console = Console(quiet=request.quiet)

    def show(line: str) -> None:
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    result = run_self_test(request.selections or ("*",), request.jobs, show)
    show(result.summary())
    return 0 if result.passed else 1


class _Conform:
    def __init__(self, request: Request, scratch: Path) -> None:
        self._folder = request.report or default_folder(request)
        self._before = run_in(self._folder)
        if request.resume and self._before is not None:
            request = resumed(request, self._before)
        check_backend(request.backend)
        if request.arch:
            request = replace(request, target=target_of(request.backend, request.arch), arch="")
        check_tools(request.target)
        if request.profile:
            load(Path(request.profile))
        self._request = request
        self._settings = Settings(
            backend=request.backend,
            profile=request.profile,
            seed=request.seed,
            target=request.target,
            stress=request.stress,
            scratch=str(scratch),
            catalogue=request.catalogue,
            torch=torch_support.LEVEL in request.levels,
            captures=str(Path(request.captures).absolute()) if request.captures else "",
        )
        shard = Shard.parse(request.shard) if request.shard else None
        self._choice = Choice(request.levels, request.selections, shard)
        # Messages contain text such as kernel.cpp:100:, which rich would turn into an emoji.
        self._console = Console(quiet=request.quiet, soft_wrap=True, emoji=False)

    # --- preparation --------------------------------------------------------------------------------------

    def ask(self) -> Probe:
        """Start a worker to describe the backend."""
        found = probe(self._settings)
        if found.failure is not None and found.failure.get("type") == ProfileError.__name__:
            raise ProfileError(str(found.failure["message"]))
        self._settings = self._settings.with_profile(found.profile.source or self._settings.profile)
        return found

    def plan(self, found: Probe) -> Plan:
        """The checks of the run."""
        choice = self._choice
        if self._settings.torch:
            torch_support.verify(found.description)
        if found.profile.entries:
            # A profile may list any random program of the level `stress`, even if this run tries fewer.
            every = [replace(self._settings, stress=0), self._settings]
            levels = [level for level in LEVELS if level in (*DEFAULT_LEVELS, *choice.levels)]
            names = {c.name: c for settings in every for c in load_checks(settings, levels)}
            found.profile.verify_patterns(names.values(), levels)
        return make_plan(
            self._settings, choice.levels, choice.selections, choice.shard, found.description or None
        )

    # --- the run -------------------------------------------------------------------------------------

    def run(self) -> int:
        """Execute the run, and return the exit status."""
        if self._before is not None and not self._request.resume:
            refuse_to_replace(self._folder, self._before)
        found = self.ask()
        self._check_captures(found)
        plan = self.plan(found)
        about = metadata(self._settings, self._choice, found, plan)
        kept = self._kept(about)
        run = RunFolder(self._folder, about, keep=bool(kept))
        waiting = [check for check in plan.checks if check.name not in kept]
        self._introduce(found, len(plan.checks), len(waiting))
        finished = False
        try:
            quiet = self._request.quiet or found.failure is not None
            with Watcher(self._console, len(waiting), self._folder / RECORDS, quiet=quiet) as watcher:

                def saw(record: Record) -> None:
                    run.append(record)
                    watcher.saw(record)

                if found.failure is not None:
                    for check in waiting:
                        saw(Record.of(check, [found.failure], 0.0, 0, None))
                    finished = True
                elif waiting:
                    finished = run_checks(
                        self._settings, [check.name for check in waiting], self._request.jobs, saw
                    )
                else:
                    finished = True
            if finished and found.failure is None and self._measures(run):
                self._console.print("measuring", highlight=False)
                with Supervisor(self._settings) as supervisor:
                    run.add_figures(supervisor.measure(FIGURES_SECONDS))
        except KeyboardInterrupt:
            finished = False
        finally:
            complete = run.finish(now(), self._settings.incidents())
        status = self._conclude(complete, found.failure is not None)
        return status if finished else INTERRUPTED

    def _check_captures(self, found: Probe) -> None:
        """Raise `PlanError` if launches cannot be recorded."""
        if not self._settings.captures or found.failure is not None:
            return
        if self._settings.target:
            raise PlanError("--capture-failures records launches, but --compile-only launches nothing")
        if not found.description.get("kit_driver"):
            raise PlanError(
                "--capture-failures records launches of drivers made with the kit "
                "(triton_porting_kit.driver.adapter.TritonDriver); the driver of backend "
                f"{self._settings.backend}, {found.description.get('driver')}, is not one of them"
            )

    def _measures(self, run: RunFolder) -> bool:
        """Whether to measure performance: once, if the whole level `kernels` is tried."""
        choice = self._choice
        return (
            not run.has_figures
            and not self._settings.target
            and not choice.selections
            and (not choice.levels or "kernels" in choice.levels)
            and (choice.shard is None or choice.shard.number == 1)
        )

    def _kept(self, about: dict[str, Any]) -> set[str]:
        """The names of the checks that an earlier part of the run has finished."""
        if self._before is None or not self._request.resume:
            return set()
        different = [key for key in SAME if self._before.get(key) != about.get(key)]
        if different:
            shown = ", ".join(
                f"{key} ({self._before.get(key)!r:.60}, now {about.get(key)!r:.60})" for key in different
            )
            raise RunFolderError(
                f"the run in {self._folder} cannot be continued, because its parameters differ: {shown}. "
                "Start a new run with another --report"
            )
        about["start"] = self._before["start"]
        about["incidents"] = self._before.get("incidents", [])
        return {name for name, record in records_in(self._folder).items() if is_final(record)}

    def _introduce(self, found: Probe, planned: int, waiting: int) -> None:
        console, device = self._console, found.description.get("device", {})
        name = device.get("name") or device.get("memory", "")
        console.print(
            f"backend {plain(self._settings.backend)}{f' on {plain(name)}' if name else ''}", highlight=False
        )
        if self._settings.profile:
            console.print(f"profile {plain(self._settings.profile)}", highlight=False, soft_wrap=True)
        kept = f", {planned - waiting} of them done before" if waiting < planned else ""
        console.print(f"{planned} check{'' if planned == 1 else 's'}{kept}", highlight=False)
        if found.failure is not None:
            console.print(
                f"[bold red]no worker can be started[/]: {plain(found.failure['message'])}",
                highlight=False,
            )

    # --- conclusion ---------------------------------------------------------------------------------------

    def _conclude(self, complete: bool, told: bool) -> int:
        """Write the report, print a summary, and return the exit status of a run that was not interrupted.

        `told`: whether the reason why everything failed was already printed.
        """
        records = list(records_in(self._folder).values())
        report = write_reports(self._folder, self._folder)
        if not told:
            summary.show_failures(self._console, records, self._rerun())
        summary.show_levels(self._console, report)
        summary.show_fallbacks(self._console, records)
        happened = Counter(incident["what"] for incident in self._settings.incidents())
        if count := happened[LOST_WORKER]:
            batches = "a batch" if count == 1 else f"{count} batches"
            self._console.print(
                f"{batches} took the worker down, and each check was then run alone", highlight=False
            )
        if count := happened[OUT_OF_TIME]:
            checks = "a check" if count == 1 else f"{count} checks"
            self._console.print(
                f"{checks} exceeded the time limit next to others, but not when repeated alone: see run.json",
                highlight=False,
            )
        if not complete:
            self._console.print("the run is not complete; continue it with --resume", highlight=False)
        summary.show_place(self._console, self._folder)
        if report.bad or not complete or not records:
            return 1
        if self._request.strict and report.counts.get(Status.UNEXPECTED_PASS):
            return 1
        # Checks that --select or --shard exclude are not failures.
        return int(report.whole and report.verdict not in GOOD)

    def _rerun(self) -> list[str]:
        request = self._request
        command = ["tpk", "conform", "--backend", request.backend]
        for option, value in (
            ("--profile", request.profile),
            ("--target", request.target),
            ("--seed", request.seed),
            ("--stress", request.stress),
        ):
            if value:
                command += [option, str(value)]
        if request.target:
            command.append("--compile-only")
        return [shlex.quote(word) for word in command]


@contextmanager
def _terminable() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that results are kept."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
