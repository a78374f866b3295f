"""`Request`: the options of the command, including those of a resumed run."""

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
"""Metadata that must not change for a run to be resumed."""

MISTAKES = (PlanError, ProfileError, RunFolderError, SelectionError, ShardError, TorchLevelUnavailable)
"""Errors of whoever typed the command."""


@dataclass(frozen=True)
class Request:
    """The options of the command."""

    backend: str = ""
    levels: tuple[str, ...] = ()
    selections: tuple[str, ...] = ()
    shard: str = ""
    jobs: int = 1
    target: str = ""
    """``BACKEND:ARCH:WARP`` to compile for; empty: kernels run."""
    arch: str = ""
    """An architecture, used instead of `target`; the backend derives the target."""
    report: Path | None = None
    profile: str = ""
    resume: bool = False
    strict: bool = False
    quiet: bool = False
    seed: int = 0
    stress: int = 0
    catalogue: str = CATALOGUE
    captures: str = ""
    """The folder in which launches of failed checks are recorded; empty: nothing is recorded."""
    mutants: int = 0
    """The number of mutants that the self-test tries instead of planted faults; 0: planted faults."""
    minutes: float = 0.0
    """The number of minutes after which no mutant is started; 0: no limit."""
    effort: tuple[str, ...] = ()
    """The effort for each mutant, as ``KEY=SECONDS``."""


def check_backend(name: str) -> None:
    """Raise `PlanError` unless a backend with this name is registered. Does not import backends."""
    registered = sorted({entry.name for entry in importlib.metadata.entry_points(group="triton.backends")})
    if not name:
        raise PlanError(
            f"the suite judges a backend: name it with --backend; there are {', '.join(registered)}"
        )
    if name not in registered:
        raise PlanError(
            f"Triton knows no backend {name!r}; the registered ones are "
            f"{', '.join(registered) or 'none'}. Install the package "
            "that registers it under the entry point group triton.backends"
        )


def target_of(backend: str, arch: str) -> str:
    """The target ``BACKEND:ARCH:WARP`` for an architecture of a registered backend.

    Raises `PlanError` if the backend does not support the architecture, or does not report its architectures.
    """
    from triton.backends import backends

    compiler = backends[backend].compiler if backend in backends else None
    name = getattr(compiler, "target_of", None)
    if name is None:
        raise PlanError(
            f"backend {backend!r} does not report which architectures it compiles for (`target_of` of the kit's "
            f"PipelineBackend does): give the whole target instead, as --target BACKEND:{arch}:WARP"
        )
    try:
        target = name(arch)
    except PortingKitError as error:
        raise PlanError(str(error)) from error
    return f"{target.backend}:{target.arch}:{target.warp_size}"


def check_tools(target: str) -> None:
    """Raise `PlanError` for an invalid target, or if the tools to judge its binaries are not installed."""
    from triton_porting_kit.conformance.code_objects.architectures import find
    from triton_porting_kit.conformance.compile_only import TargetError, parse_target
    from triton_porting_kit.toolchain import amdgpu_disassembler

    try:
        judged = bool(target) and find(parse_target(target).arch) is not None
    except TargetError as error:
        raise PlanError(str(error)) from error
    if judged and not amdgpu_disassembler.is_available():
        raise PlanError(
            "code objects for AMD's GPUs are judged by their instructions, but no disassembler is installed: install "
            "the kit with its extra `amd`: pip install 'triton-porting-kit[amd]'"
        )


def default_folder(request: Request) -> Path:
    """The default folder of a run. A run of selected checks does not replace the report of a full run."""
    folder = Path("conformance-report")
    return folder / "selected" if request.selections else folder


def refuse_to_replace(folder: Path, before: Mapping[str, Any]) -> None:
    """Raise `RunFolderError` if a folder holds an unfinished run."""
    done = len(records_in(folder))
    if not before.get("complete") and done:
        raise RunFolderError(
            f"{folder} holds an unfinished run ({done} of {len(before.get('planned', ()))} checks). Continue it "
            "with --resume, name another folder with --report, or remove it"
        )


def run_in(folder: Path) -> dict[str, Any] | None:
    """The metadata of the run in a folder; None if there is no run. Raises `RunFolderError` if they are invalid."""
    found = metadata_in(folder)
    if found is not None:
        try:
            document.validate(found, str(folder / RUN), "run")
        except ReportError as error:
            raise RunFolderError(f"{error}; name another folder with --report") from error
    return found


def resumed(request: Request, before: Mapping[str, Any]) -> Request:
    """Add the options of an earlier request. Raises `RunFolderError` if both give an option different values."""
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
                f"the run to resume was started with {name} {value!r}, but now has {given!r}; omit this option, "
                "or start a new run with another --report"
            )
    return replace(request, **earlier)
