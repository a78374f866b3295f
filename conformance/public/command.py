"""`tpk public`: fetches packages, runs the level `public`, and writes its page."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from triton_porting_kit.conformance.command.conform import list_checks, run_conform
from triton_porting_kit.conformance.command.request import Request
from triton_porting_kit.conformance.public import page, table
from triton_porting_kit.conformance.public.options import Options
from triton_porting_kit.conformance.public.packages import ensure

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


def selections(only: tuple[str, ...]) -> tuple[str, ...]:
    """The expressions of the suite for what was asked for. Raises `UnknownCollection`."""
    found = []
    for word in only:
        name, _, entry = word.partition("/")
        if not any(letter in name for letter in "*?["):
            table.collection(name)
        found.append(f"{LEVEL}/{name}/{entry or '*'}")
    return tuple(found)


def _request(request: PublicRequest) -> Request:
    return Request(
        backend=request.backend,
        levels=(LEVEL,),
        selections=selections(request.only),
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
    for collection in table.collections():
        if not request.only or any(word.partition("/")[0] == collection.name for word in request.only):
            if not request.quiet:
                print(f"{collection.name}: {collection.package} {collection.version}", file=sys.stderr)
            ensure(collection, request.options)
    status = run_conform(conform)
    if request.page is not None:
        page.write([request.report], request.page)
    return status


def list_public(request: PublicRequest) -> int:
    """Print the names of the entries that a run would try."""
    return list_checks(_request(request))
