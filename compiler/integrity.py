"""The compile cache holds code that is executed: who may write there, and are the files what was written?

The digest of each artefact goes into the kernel's metadata. When a cached binary does not match it (truncated,
overwritten, from somewhere else), it is made again from the last artefact that is intact, with a warning.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import tempfile
import warnings
from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triton_porting_kit.compiler.pipeline import Metadata, Pipeline, Stage, StageFunction
from triton_porting_kit.errors import CorruptCacheError, InsecureCacheError
from triton_porting_kit.toolchain import compat

if TYPE_CHECKING:
    from triton_porting_kit.compiler.backend import PipelineBackend

DIGESTS = "artefact_digests"


class CorruptCacheWarning(UserWarning):
    """A cached binary was not what the compiler had written, and has been made again."""


def digest(artefact: Any) -> str:
    """SHA-256 of an artefact as it is written to a file."""
    return hashlib.sha256(artefact if isinstance(artefact, bytes) else str(artefact).encode()).hexdigest()


def add_recorded(pipeline: Pipeline, stages: MutableMapping[str, StageFunction]) -> None:
    """Give Triton the pipeline's stages, each recording the digest of what it makes in the metadata."""

    def recorded(stage: Stage) -> StageFunction:
        def run(source: Any, metadata: Metadata) -> Any:
            artefact = stage.run(source, metadata)
            metadata.setdefault(DIGESTS, {})[stage.name] = digest(artefact)
            return artefact

        return run

    Pipeline(tuple(Stage(stage.name, recorded(stage)) for stage in pipeline.stages)).add_to(stages)


def check_cached(metadata: Any, backend: PipelineBackend) -> None:
    """Check the cached files of a kernel before its binary is loaded.

    Raises `InsecureCacheError` for a cache that others can write, `CorruptCacheError` when a damaged binary
    cannot be made again.
    """
    check_private(compat.cache_root())
    folder = compat.kernel_cache_folder(metadata.hash)
    digests: dict[str, str] = getattr(metadata, DIGESTS, {})
    binary = _file(folder, backend.binary_ext)
    if binary is None or _intact(binary, digests, backend.binary_ext):
        return
    options = backend.parse_options(metadata._asdict())
    pipeline = backend.pipeline(options)
    for stage in reversed(pipeline.names[:-1]):
        source = _file(folder, stage)
        if source is not None and stage != "ttir" and _intact(source, digests, stage):
            artefacts = pipeline.after(stage).run(source.read_text(), dict(metadata._asdict()))
            replace_file(binary, artefacts[backend.binary_ext])
            warnings.warn(
                f"{binary} is not the file that was compiled (damaged or replaced); "
                f"it was made again from {source.name}",
                CorruptCacheWarning,
                stacklevel=2,
            )
            return
    raise CorruptCacheError(
        f"{binary} is not the file that was compiled, nor is anything it could be made from; "
        f"delete the folder {folder}"
    )


def _file(folder: Path, extension: str) -> Path | None:
    return next(folder.glob(f"*.{extension}"), None)


def _intact(path: Path, digests: dict[str, str], stage: str) -> bool:
    # An artefact that the user put in by TRITON_KERNEL_OVERRIDE or ir_override has no digest of ours.
    expected = digests.get(stage)
    return expected is None or hashlib.sha256(path.read_bytes()).hexdigest() == expected


def replace_file(path: Path, data: bytes | str) -> None:
    """Write a file so that nobody ever sees half of it."""
    content = data if isinstance(data, bytes) else str(data).encode()
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    Path(temporary).replace(path)


@functools.cache
def check_private(folder: Path) -> None:
    """Refuse a folder that others can write: they could put code there that we would run."""
    if os.name != "posix" or not folder.exists():
        return
    status = folder.stat()
    if status.st_uid not in (os.getuid(), 0):
        raise InsecureCacheError(
            f"the compile cache {folder} belongs to user {status.st_uid}, who could replace the code in it; "
            "set TRITON_CACHE_DIR to a folder of your own"
        )
    if status.st_mode & stat.S_IWOTH:
        raise InsecureCacheError(
            f"the compile cache {folder} can be written by every user; run `chmod o-w {folder}` "
            "or set TRITON_CACHE_DIR to a folder of your own"
        )
    if status.st_mode & stat.S_IWGRP:
        warnings.warn(
            f"the compile cache {folder} can be written by its group, who could replace the code in it; "
            f"run `chmod g-w {folder}` if that is not meant",
            UserWarning,
            stacklevel=2,
        )
