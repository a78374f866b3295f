"""`tpk public`: fetches packages, runs the level `public`, and writes its page."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from triton_porting_kit.conformance.command.conform import list_checks, run_conform
from triton_porting_kit.conformance.command.request import Request
from triton_porting_kit.conformance.public import page, table
from triton_porting_kit.conformance.public.options import Options
from triton_porting_kit.conformance.public.packages import ensure
from triton_porting_kit.conformance.report.folder import read_run

LEVEL = "public"


@dataclass(frozen=True)
class PublicRequest:
    """The options of the command."""

    backend: str
    only: tuple[str, ...]
    """Collections, or patterns for ``COLLECTION/ENTRY``."""
    options: Options
    report: Path
    jobs: int = 1
    shard: str = ""
    resume: bool = False
    quiet: bool = False
    page: Path | None = None
    """Where the page is written; None: nowhere."""
    without: tuple[Path, ...] = ()
    """Reports whose entries are left out: they have a result already."""


def selections(only: tuple[str, ...], tried: Iterable[str] = ()) -> tuple[str, ...]:
    """The expressions of the suite for what was asked for, without what was tried. Raises `UnknownCollection`."""
    found = []
    for word in only:
        name, _, entry = word.partition("/")
        if not any(letter in name for letter in "*?["):
            table.collection(name)
        found.append(f"{LEVEL}/{name}/{entry or '*'}")
    names = " or ".join(sorted(tried))
    return tuple(f"{word} and not ({names})" for word in found or [f"{LEVEL}/*"]) if names else tuple(found)


def _tried(reports: Iterable[Path]) -> set[str]:
    """The names of the checks that reports have a result of. Raises `ReportError`."""
    return {record.name for folder in reports for record in read_run(folder).records if record.level == LEVEL}


def _request(request: PublicRequest) -> Request:
    return Request(
        backend=request.backend,
        levels=(LEVEL,),
        selections=selections(request.only, _tried(request.without)),
        shard=request.shard,
        jobs=request.jobs,
        report=request.report,
        resume=request.resume,
        quiet=request.quiet,
    )


def run_public(request: PublicRequest) -> int:
    """Run the entries, and return the exit status of the suite. Raises `PortingKitError`."""
    conform = _request(request)
    os.environ.update(request.options.variables())
    fetch_public(request)
    status = run_conform(conform)
    if request.page is not None:
        page.write([request.report], request.page)
    return status


def fetch_public(request: PublicRequest) -> int:
    """Fetch the packages of the collections that were asked for. Raises `PackageUnavailable`."""
    selections(request.only)
    for collection in table.collections():
        patterns = [word.partition("/")[0] for word in request.only] or ["*"]
        if any(fnmatchcase(collection.name, pattern) for pattern in patterns):
            if not request.quiet:
                print(f"{collection.name}: {collection.package} {collection.version}", file=sys.stderr)
            ensure(collection, request.options)
    return 0


def list_public(request: PublicRequest) -> int:
    """Print the names of the entries that a run would try."""
    return list_checks(_request(request))
