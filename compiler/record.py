"""A record of the cached artefacts: the digest of each, and which of them the user has overridden.

The digests are part of the kernel's metadata. Triton's modules take long to print, but Triton has printed them into its
cache by the time the next stage runs, so their digests are taken from there. An artefact that the user overrides
(``TRITON_KERNEL_OVERRIDE``, ``ir_override``) replaces the stage's own, in the record too.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

from triton_porting_kit.compiler.pipeline import Metadata, Pipeline, Stage, StageFunction
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain import compat

DIGESTS = "artefact_digests"
"""Metadata: SHA-256 of each artefact's file by stage name."""

OVERRIDDEN = "overridden_stages"
"""Metadata: names of the stages whose artefact came from the user's file."""

SOURCE = "source"
"""The name of the input of the first stage: Triton's own output, which it caches beside the artefacts."""


def digest(artefact: Any) -> str:
    """SHA-256 of an artefact as it is written to a file."""
    return hashlib.sha256(artefact if isinstance(artefact, bytes) else str(artefact).encode()).hexdigest()


def _stored(metadata: Metadata, name: str) -> bytes | None:
    """The file that Triton has written of an artefact; None if it has not."""
    folder = compat.artefact_folder(metadata, name)
    if folder is None:
        return None
    try:
        file = next((file for file in os.listdir(folder) if file.endswith(f".{name}")), None)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return None if file is None else (folder / file).read_bytes()


def add_recorded(pipeline: Pipeline, stages: MutableMapping[str, StageFunction]) -> None:
    """Register the pipeline's stages with Triton, each recording its artefact or the user's override of it."""
    *_, binary = pipeline.names
    previous = SOURCE
    recorded = []
    for stage in pipeline.stages:
        name = compat.binary_stage_name(stage.name) if stage.name == binary else stage.name
        recorded.append(Stage(name, _recorded(stage, previous, stage.name == binary)))
        previous = stage.name
    Pipeline(tuple(recorded)).add_to(stages)


def _recorded(stage: Stage, previous: str, is_binary: bool) -> StageFunction:
    def run(source: Any, metadata: Metadata) -> Any:
        digests = metadata.setdefault(DIGESTS, {})
        overridden = metadata.setdefault(OVERRIDDEN, [])
        if previous not in digests:  # the start of the compilation, or a module
            stored = _stored(metadata, previous) if compat.is_module(source) else None
            digests[previous] = digest(source if stored is None else stored)
        artefact = stage.run(source, metadata)
        if not compat.is_module(artefact):
            digests[stage.name] = digest(artefact)

        def read(path: Path, by_triton: Callable[[], Any]) -> Any:
            replaced = _read_override(stage, path, by_triton, is_binary)
            digests[stage.name] = digest(replaced)
            overridden.append(stage.name)
            return replaced

        compat.expect_override(stage.name, read)
        return artefact

    return run


def _read_override(stage: Stage, path: Path, by_triton: Callable[[], Any], is_binary: bool) -> Any:
    try:
        artefact = path.read_bytes() if is_binary else path.read_text()
        if not artefact.strip():
            raise ValueError("it is empty")
        if stage.name in compat.MODULE_STAGES:
            return by_triton()
        if stage.check is not None:
            stage.check(artefact)
        return artefact
    except Exception as error:
        problem = error.problem if isinstance(error, CompilationError) else error
        raise CompilationError(
            f"{path}, which overrides the stage {stage.name}, cannot be used: {problem}",
            remedy="correct that file, or remove it",
        ) from error
