"""Runs a program and judges its launches one by one, while the program waits."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from triton_porting_kit.compare.judging import Judgement, Status, judge
from triton_porting_kit.compare.locating import Cause, locate
from triton_porting_kit.compare.reference import Kernels
from triton_porting_kit.errors import CaptureError
from triton_porting_kit.replay import launches_in, read
from triton_porting_kit.replay import settings as names
from triton_porting_kit.replay.journal import Entry, Journal
from triton_porting_kit.replay.manifest import Manifest
from triton_porting_kit.replay.settings import Settings as Recording
from triton_porting_kit.replay.settings import parse_size, readable, size_of

_LOOK = 0.002
_PATIENCE = 10.0
"""Seconds that the program has to end after SIGTERM."""
_UNBOUNDED = "1000T"


@dataclass(frozen=True)
class Request:
    """The options of a comparison."""

    script: Path
    arguments: tuple[str, ...] = ()
    kernel: str = "*"
    """A shell pattern for the names of kernels."""
    every: int = 1
    most: int = 1 << 30
    """The maximum size of one launch in bytes."""
    keep_going: bool = False
    dest: Path = Path("compared")
    locate: bool = True
    """Whether to find the wrong operation of the first launch of each kernel that differs."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for the program, in addition to those of this process."""


@dataclass(frozen=True)
class Judged:
    """One launch of the program."""

    number: int
    """The number of the launch in the program, from 1."""
    kernel: str
    judgement: Judgement
    manifest: Manifest | None = None
    """None if the launch is not recorded."""
    folder: Path | None = None
    """The folder to replay the launch from; None if it is not kept."""
    cause: Cause | None = None
    """The cause of a wrong result; None if tpk did not look for it."""


@dataclass
class Outcome:
    """The result of comparing a program."""

    judged: list[Judged] = field(default_factory=list)
    status: int = 0
    """The program's exit status; negative: the signal that killed it."""
    ended_early: bool = False
    """Whether the program was stopped after the first launch that differs."""
    seconds: float = 0.0

    @property
    def wrong(self) -> list[Judged]:
        """The launches that differ."""
        return [one for one in self.judged if one.judgement.status is Status.DIFFERS]

    @property
    def counts(self) -> Counter[Status]:
        return Counter(one.judgement.status for one in self.judged)


Watch = Callable[[Judged, Outcome], None]


def run(request: Request, watch: Watch) -> Outcome:
    """Run the program, and call `watch` after each launch. Raises `CaptureError` if launches cannot be recorded."""
    dest = request.dest
    Recording(dest, "*", None, 0).make_folder()
    outcome, start = Outcome(), time.monotonic()
    with Journal(dest).held() as journal:
        before = set(launches_in(dest))
        process = subprocess.Popen(
            [sys.executable, str(request.script), *request.arguments], env=_environment(request)
        )
        try:
            session = _Session(request, journal, outcome, watch)
            while process.poll() is None:
                session.look()
                if outcome.wrong and not request.keep_going:
                    outcome.ended_early = True
                    break
                time.sleep(_LOOK)
        finally:
            _end(process)
        if not outcome.ended_early:
            session.look()
            session.left(set(launches_in(dest)) - before)
        outcome.status = process.returncode
    outcome.seconds = time.monotonic() - start
    if not launches_in(dest):
        (dest / ".lock").unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # The folder contains other files.
            dest.rmdir()
    return outcome


def _environment(request: Request) -> dict[str, str]:
    wanted = {
        names.FOLDER: str(request.dest.absolute()),
        names.KERNEL: request.kernel,
        names.EVERY: str(request.every),
        names.BYTES: str(request.most),
        names.JUDGED: "1",
        names.LIMIT: _UNBOUNDED,  # There is one launch at a time; this process limits what is kept.
    }
    environment = {**os.environ, **request.environment, **wanted}
    environment.pop(names.COUNT, None)
    return environment


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class _Session:
    def __init__(self, request: Request, journal: Journal, outcome: Outcome, watch: Watch) -> None:
        self._request, self._journal, self._outcome, self._watch = request, journal, outcome, watch
        self._kernels = Kernels()
        self._room = parse_size(os.environ.get(names.LIMIT, "")) - size_of(request.dest)
        self._known: set[Path] = set()
        self._located: set[str] = set()
        # The size of one launch is limited by a command-line option instead.
        os.environ[names.LIMIT] = str(4 * request.most + (64 << 20))

    def look(self) -> None:
        """Judge the launches that were recorded since the last call."""
        for entry in self._journal.entries():
            self._add(self._judged(entry))
            if self._outcome.wrong and not self._request.keep_going:
                return

    def left(self, folders: set[Path]) -> None:
        """Add launches during which the program ended."""
        for folder in sorted(folders - self._known):
            try:
                manifest = read(folder).manifest
            except CaptureError:
                continue
            if manifest.state == "launched":
                reason = "the program ended during it"
                self._add(
                    self._one(manifest.kernel.name, Judgement(Status.NOT_COMPARED, reason), manifest, folder)
                )

    def _add(self, judged: Judged) -> None:
        self._outcome.judged.append(judged)
        self._watch(judged, self._outcome)

    def _one(
        self, kernel: str, judgement: Judgement, manifest: Manifest | None = None, folder: Path | None = None
    ) -> Judged:
        return Judged(len(self._outcome.judged) + 1, kernel, judgement, manifest, folder)

    def _judged(self, entry: Entry) -> Judged:
        if not entry.folder:
            return self._one(entry.kernel, Judgement(Status.NOT_COMPARED, entry.why))
        folder = self._request.dest / entry.folder
        self._known.add(folder)
        try:
            capture = read(folder)
        except CaptureError as error:
            shutil.rmtree(folder, ignore_errors=True)
            return self._one(entry.kernel, Judgement(Status.NOT_COMPARED, str(error)))
        judgement = judge(capture, self._kernels)
        cause = None
        if judgement.status is Status.DIFFERS and self._request.locate and entry.kernel not in self._located:
            self._located.add(entry.kernel)
            cause = locate(capture, judgement, self._kernels, self._request.environment)
        size = size_of(folder)
        kept = judgement.status is Status.DIFFERS and size <= self._room
        if kept:
            self._room -= size
            self._journal.judged(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
        found = self._one(entry.kernel, judgement, capture.manifest, folder if kept else None)
        return replace(found, cause=cause)


def room_is_used_up(outcome: Outcome) -> str:
    """The message about launches that differ and were not kept; empty if all were."""
    missing = sum(one.folder is None for one in outcome.wrong)
    if not missing:
        return ""
    limit = readable(parse_size(os.environ.get(names.LIMIT, "")))
    return (
        f"{missing} of them are not kept, because the folder would exceed {limit}: set {names.LIMIT} to more"
    )
