"""Preparing a run: probing the backend with a worker, and the metadata of the report."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import triton_porting_kit
from triton_porting_kit.conformance.execution.description import versions
from triton_porting_kit.conformance.execution.plan import Plan
from triton_porting_kit.conformance.execution.settings import Settings
from triton_porting_kit.conformance.execution.shards import Shard
from triton_porting_kit.conformance.execution.supervisor import CannotStart, Supervisor
from triton_porting_kit.conformance.profile import Profile
from triton_porting_kit.conformance.status import Evidence


@dataclass(frozen=True)
class Choice:
    """The checks that a run tries."""

    levels: tuple[str, ...] = ()
    """The levels; all if empty."""
    selections: tuple[str, ...] = ()
    shard: Shard | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "levels": list(self.levels) or None,
            "select": list(self.selections) or None,
            "shard": [self.shard.number, self.shard.count] if self.shard else None,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Choice:
        shard = data.get("shard")
        return cls(
            tuple(data.get("levels") or ()),
            tuple(data.get("select") or ()),
            Shard(*shard) if shard else None,
        )


@dataclass(frozen=True)
class Probe:
    """The result of starting a worker to describe the backend."""

    description: Mapping[str, Any] = field(default_factory=dict)
    """The description of the session; empty if no worker could be started."""
    profile: Profile = field(default_factory=Profile)
    failure: Evidence | None = None
    """Why no worker could be started, or None."""


def probe(settings: Settings) -> Probe:
    """Start a worker, get the description of its session, and end it."""
    with Supervisor(settings) as supervisor:
        try:
            description = supervisor.start()
        except CannotStart as error:
            return Probe(failure=error.evidence)
        return Probe(description, supervisor.profile)


def metadata(settings: Settings, choice: Choice, found: Probe, plan: Plan) -> dict[str, Any]:
    """The content of ``run.json`` when a run starts."""
    from triton_porting_kit.conformance.mandatory import SUITE_VERSION

    about = found.description
    commit, dirty = revision()
    return {
        "suite_version": SUITE_VERSION,
        "kit_version": triton_porting_kit.__version__,
        "commit": commit,
        "dirty": dirty,
        "triton_version": about.get("triton_version") or importlib.metadata.version("triton"),
        "python": sys.version.split()[0],
        "platform": _platform(),
        "toolchain": versions(),
        "backend": settings.backend,
        "driver": about.get("driver"),
        "target": about.get("target"),
        "device": about.get("device", {"memory": "none: no worker could be started"}),
        "profile": found.profile.to_json(),
        "seed": settings.seed,
        "options": {
            **choice.to_json(),
            "compile_only": bool(settings.target),
            "target": settings.target or None,
            "stress": settings.stress,
        },
        "start": now(),
        "end": None,
        "complete": False,
        "planned": [check.name for check in plan.checks],
        "not_applicable": list(plan.not_applicable),
    }


def now() -> str:
    """The current time in the format of reports."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def revision() -> tuple[str | None, bool | None]:
    """The commit of the kit and whether tracked files were changed, if it runs from a checkout; else None."""
    folder = Path(__file__).resolve().parent
    commit = _git(folder, "rev-parse", "HEAD")
    tracked = _git(folder, "ls-files", "--error-unmatch", Path(__file__).name)
    if commit is None or tracked is None:
        return None, None
    return commit, bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))


def _git(folder: Path, *arguments: str) -> str | None:
    command: Sequence[str] = ("git", "-C", str(folder), *arguments)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _platform() -> str:
    """System, processor and C library."""
    return " ".join(filter(None, (platform.system(), platform.machine(), *platform.libc_ver())))
