"""`make` creates a repository from the template, completely or not at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from triton_porting_kit.errors import TemplateError
from triton_porting_kit.porting import engine, git
from triton_porting_kit.porting.names import Names
from triton_porting_kit.porting.template import Template


class Shape(StrEnum):
    """What chip a repository begins with."""

    NPU = "npu"
    """Cores with scratchpads, DMA engines, and vector and matrix units, which a file describes."""
    CORES = "cores"
    """Cores that read global memory, as CPUs do."""
    MLIR = "mlir"
    """A chip whose compiler is an external program that takes the form linalg."""
    OPENCL = "opencl"
    """A chip whose runtime is OpenCL, with a compiler in its driver."""


@dataclass(frozen=True)
class Made:
    """A repository that was created."""

    path: Path
    files: tuple[str, ...]
    """Paths relative to `path`, sorted."""
    git: str
    """A sentence about the git repository."""


def make(
    names: Names,
    *,
    vendor: str,
    chip: str,
    into: Path,
    template: Template | None = None,
    own_repository: bool | None = None,
    shape: Shape = Shape.NPU,
) -> Made:
    """Create `into`/triton-NAME, for a chip of a shape.

    `own_repository`: whether it becomes a git repository with a first commit; None: if git is installed and `into` is
    not in a repository. Raises `TemplateError`, and leaves nothing behind, if it cannot be created.
    """
    template = template or Template.own()
    target = into.absolute() / names.repository
    if os.path.lexists(target):
        raise TemplateError(
            f"{target} already exists: choose another name or another --dest, or move it away"
        )
    if own_repository and not git.available():
        raise TemplateError("git is not installed, and --git needs it: install git, or leave out --git")
    with _workshop(into.absolute()) as workshop:
        # Created beside the target and moved when complete, so that an incomplete repository is never visible.
        made = workshop / names.repository
        engine.copy(template.root, made, answers(names, vendor, chip, template.version, shape), workshop)
        files = sorted(path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file())
        said = _start(made, into, template, own_repository)
        try:
            made.rename(target)
        except OSError as error:
            raise TemplateError(f"{target} cannot be created: {error.strerror}") from error
    return Made(target, tuple(files), said)


def answers(names: Names, vendor: str, chip: str, version: str, shape: Shape) -> dict[str, str]:
    """The variables of the template."""
    return {
        "name": names.name,
        "backend": names.backend,
        "package": names.package,
        "class_prefix": names.class_prefix,
        "torch_device": names.torch_device,
        "vendor": vendor,
        "chip": chip,
        "shape": str(shape),
        "kit_version": version,
    }


@contextmanager
def _workshop(into: Path) -> Iterator[Path]:
    """A temporary folder in `into`, which is created if it is missing. On failure, all that was created is removed."""
    there = next(path for path in (into, *into.parents) if os.path.lexists(path))
    created = into.parents[into.parents.index(there) - 1] if there in into.parents[1:] else into
    workshop: Path | None = None
    try:
        try:
            into.mkdir(parents=True, exist_ok=True)
            workshop = Path(tempfile.mkdtemp(prefix=".triton-", dir=into))
        except OSError as error:
            raise TemplateError(
                f"nothing can be written to {into} ({error.strerror}): choose another --dest"
            ) from error
        yield workshop
    except BaseException:
        if there != into:
            shutil.rmtree(created, ignore_errors=True)
        raise
    finally:
        if workshop is not None:
            shutil.rmtree(workshop, ignore_errors=True)


def _start(made: Path, into: Path, template: Template, own: bool | None) -> str:
    if own is False:
        return "No git repository was created, because of --no-git."
    if not git.available():
        return "No git repository was created, because git is not installed. `tpk update` will need one."
    around = git.top(into)
    if around is not None and own is None:
        return f"It is in the git repository {around}: commit it there. --git creates a separate repository."
    known = git.knows_user(into)
    try:
        git.start(
            made,
            f"Start from the template of the Triton Porting Kit {template.version}",
            () if known else git.IDENTITY,
        )
    except subprocess.CalledProcessError as error:
        raise TemplateError(f"git could not create the repository: {error.stderr.strip()}") from error
    who = "" if known else ", by `tpk@localhost`, because git does not know your name"
    return f"It is a git repository with a first commit{who}."
