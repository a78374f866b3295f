"""`Request`: the options of the command, also those of a run that is gone on with."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from triton_porting_kit.conformance.execution.plan import PlanError
from triton_porting_kit.conformance.execution.run import Choice
from triton_porting_kit.conformance.execution.runfolder import RUN, RunFolderError, metadata_in, records_in
from triton_porting_kit.conformance.execution.selection import SelectionError
from triton_porting_kit.conformance.execution.settings import CATALOGUE
from triton_porting_kit.conformance.execution.shards import ShardError
from triton_porting_kit.conformance.profile import ProfileError
from triton_porting_kit.conformance.report import document
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.torch.support import TorchLevelUnavailable
from triton_porting_kit.errors import PortingKitError

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

MISTAKES = (PlanError, ProfileError, RunFolderError, SelectionError, ShardError, TorchLevelUnavailable)
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
    """``BACKEND:ARCH:WARP`` to compile for; empty: kernels run."""
    arch: str = ""
    """Instead of the target: an architecture, whose target the backend knows."""
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
    mutants: int = 0
    """Of the self-test: how many mutants are tried, instead of planted faults; 0: none."""
    minutes: float = 0.0
    """After which no more mutant is begun; 0: never."""
    effort: tuple[str, ...] = ()
    """What is done for each mutant, as ``KEY=SECONDS``."""


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


def target_of(backend: str, arch: str) -> str:
    """``BACKEND:ARCH:WARP`` of an architecture that a registered backend compiles for.

    Raises `PlanError` where it compiles for no such architecture, or does not say for which it does.
    """
    from triton.backends import backends

    compiler = backends[backend].compiler if backend in backends else None
    name = getattr(compiler, "target_of", None)
    if name is None:
        raise PlanError(
            f"backend {backend!r} does not say which architectures it compiles for (`target_of` of the kit's "
            f"PipelineBackend does): name all of the target instead, as --target BACKEND:{arch}:WARP"
        )
    try:
        target = name(arch)
    except PortingKitError as error:
        raise PlanError(str(error)) from error
    return f"{target.backend}:{target.arch}:{target.warp_size}"


def check_tools(target: str) -> None:
    """Raises `PlanError` for what is no target, and where what is compiled for it could not be judged here."""
    from triton_porting_kit.conformance.code_objects.architectures import find
    from triton_porting_kit.conformance.compile_only import TargetError, parse_target
    from triton_porting_kit.toolchain import amdgpu_disassembler

    try:
        judged = bool(target) and find(parse_target(target).arch) is not None
    except TargetError as error:
        raise PlanError(str(error)) from error
    if judged and not amdgpu_disassembler.is_available():
        raise PlanError(
            "code objects for AMD's GPUs are judged by their instructions, and there is no disassembler: install the "
            "kit with its extra `amd`: pip install 'triton-porting-kit[amd]'"
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


def run_in(folder: Path) -> dict[str, Any] | None:
    """The metadata of the run in a folder; None where there is none. Raises `RunFolderError` for what is none."""
    found = metadata_in(folder)
    if found is not None:
        try:
            document.validate(found, str(folder / RUN), "run")
        except ReportError as error:
            raise RunFolderError(f"{error}; name another folder with --report") from error
    return found


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
