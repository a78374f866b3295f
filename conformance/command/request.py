"""`Request`: the options of the command, also those of a run that is gone on with."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from triton_porting_kit.conformance.execution.plan import PlanError
from triton_porting_kit.conformance.execution.run import Choice
from triton_porting_kit.conformance.execution.runfolder import RunFolderError, records_in
from triton_porting_kit.conformance.execution.selection import SelectionError
from triton_porting_kit.conformance.execution.settings import CATALOGUE
from triton_porting_kit.conformance.execution.shards import ShardError
from triton_porting_kit.conformance.profile import ProfileError

SAME = (
    "suite_version",
    "kit_version",
    "commit",
    "triton_version",
    "python",
    "toolchain",
    "driver",
    "target",
    "profile",
    "planned",
)
"""What has to be as it was for a run to go on: all its records are about one thing."""

MISTAKES = (PlanError, ProfileError, RunFolderError, SelectionError, ShardError)
"""Errors of whoever typed the command."""


@dataclass(frozen=True)
class Request:
    """The options of the command; defaults where they were not given."""

    backend: str = ""
    levels: tuple[str, ...] = ()
    selections: tuple[str, ...] = ()
    shard: str = ""
    jobs: int = 1
    target: str = ""
    report: Path | None = None
    profile: str = ""
    resume: bool = False
    strict: bool = False
    quiet: bool = False
    seed: int = 0
    stress: int = 0
    catalogue: str = CATALOGUE
    captures: str = ""
    """The folder where launches of checks that fail are recorded; empty: they are not."""


def check_backend(name: str) -> None:
    """Raises `PlanError` unless a backend of this name is registered. Imports none."""
    registered = sorted({entry.name for entry in importlib.metadata.entry_points(group="triton.backends")})
    if not name:
        raise PlanError(
            f"the suite judges a backend: name it with --backend; there are {', '.join(registered)}"
        )
    if name not in registered:
        raise PlanError(
            f"Triton knows no backend {name!r}; registered are {', '.join(registered) or 'none'}. Install the package "
            "that registers it under the entry point group triton.backends"
        )


def default_folder(request: Request) -> Path:
    """Where a run leaves its files. One of a few checks does not replace the report of them all."""
    folder = Path("conformance-report")
    return folder / "selected" if request.selections else folder


def refuse_to_replace(folder: Path, before: Mapping[str, Any]) -> None:
    """Raises `RunFolderError` where a folder holds a run that was not ended."""
    done = len(records_in(folder))
    if not before.get("complete") and done:
        raise RunFolderError(
            f"{folder} holds a run that was not ended ({done} of {len(before.get('planned', ()))} checks). Go on with "
            "it: --resume; or name another folder: --report; or remove it"
        )


def resumed(request: Request, before: Mapping[str, Any]) -> Request:
    """The request with what an earlier one had asked for. Raises `RunFolderError` where both do, differently."""
    options = before["options"]
    choice = Choice.from_json(options)
    earlier = {
        "backend": before["backend"],
        "levels": choice.levels,
        "selections": choice.selections,
        "shard": str(choice.shard or ""),
        "target": options.get("target") or "",
        "profile": before["profile"].get("source", ""),
        "seed": before["seed"],
        "stress": options.get("stress", 0),
    }
    defaults = {field.name: field.default for field in fields(Request)}
    for name, value in earlier.items():
        given = getattr(request, name)
        if given not in (defaults[name], value):
            raise RunFolderError(
                f"the run that is to go on was started with {name} {value!r}, and is now given {given!r}; leave that "
                "out, or start another run with another --report"
            )
    return replace(request, **earlier)
