"""Checks of the compile cache, which holds code that is executed: who can write to it, and whether files are intact.

The kernel's metadata has a digest of every artefact. A cached file that does not match it (truncated, overwritten, from
somewhere else) is rebuilt, with a warning, from the nearest earlier artefact that does.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from pathlib import Path
from typing import Any, Protocol

from triton_porting_kit import trust, untrusted
from triton_porting_kit.compiler.pipeline import Pipeline
from triton_porting_kit.compiler.record import DIGESTS, OVERRIDDEN, SOURCE
from triton_porting_kit.errors import CorruptCacheError, CorruptCacheWarning
from triton_porting_kit.toolchain import compat


class Compiler(Protocol):
    """The part of `PipelineBackend` that rebuilds artefacts."""

    def parse_options(self, options: dict[str, Any]) -> Any: ...

    def pipeline(self, options: Any) -> Pipeline: ...


def check_cached(metadata: Any, compiler: Compiler) -> None:
    """Check the cached files of a kernel before its binary is loaded.

    Raises `InsecureCacheError` for a cache that others can write, `CorruptCacheError` if a damaged file cannot be
    rebuilt.
    """
    folder = compat.kernel_cache_folder(metadata.hash)
    if folder is None:
        return
    check_folder(compat.cache_root(), folder)
    cached = _CachedKernel(folder, metadata, compiler)
    for name in cached.names:
        try:
            cached.mend(name)
        except CorruptCacheError as error:
            if not cached.can_do_without(name):
                raise
            warnings.warn(f"{error}; the binary is intact, and is used", CorruptCacheWarning, stacklevel=3)


class _CachedKernel:
    """The artefacts of one kernel in its cache folder."""

    def __init__(self, folder: Path, metadata: Any, compiler: Compiler) -> None:
        self._folder = folder
        self._files: dict[str, Path] = {}
        """The file of each stage; the file's extension is the stage's name."""
        for file in os.listdir(folder):
            self._files.setdefault(file.rpartition(".")[2], folder / file)
        self._metadata = dict(metadata._asdict())
        self._digests: dict[str, str] = self._metadata.get(DIGESTS, {})
        self._compiler = compiler
        self.names = [name for name in (SOURCE, *self._digests) if name in self._files]

    def mend(self, name: str) -> None:
        """Rebuild an artefact unless its file is intact."""
        if self._intact(name):
            return
        path = self._files[name]
        artefact = self._remake(name, f"{path} is not the file that was compiled (damaged or replaced)")
        try:
            trust.write_private(path, artefact if isinstance(artefact, bytes) else str(artefact).encode())
        except OSError as error:
            raise CorruptCacheError(
                f"{path} is not the file that was compiled, and cannot be replaced: {error}; "
                f"delete the folder {self._folder}"
            ) from error
        warnings.warn(
            f"{path} is not the file that was compiled (damaged or replaced); it was made again",
            CorruptCacheWarning,
            stacklevel=4,
        )

    def can_do_without(self, name: str) -> bool:
        """Whether a damaged artefact is not needed to run the kernel: the binary is intact and was made by the
        compiler.

        If two processes compile a kernel at once, from files of the same text at two paths, the artefacts may be those
        of one and the metadata that of the other. They differ in the paths, but the binary does not.
        """
        binary = [*self._digests][-1:]
        return not self._metadata.get(OVERRIDDEN) and name not in binary and all(map(self._intact, binary))

    def _intact(self, name: str) -> bool:
        path, expected = self._files.get(name), self._digests.get(name)
        if path is None:
            return False
        try:
            content = untrusted.read_bytes(path, untrusted.ARTEFACT, CorruptCacheError)
        except CorruptCacheError:
            return False
        return expected is None or hashlib.sha256(content).hexdigest() == expected

    def _artefact(self, name: str, complaint: str) -> Any:
        """An artefact as the next stage takes it, read from its file or rebuilt."""
        if not self._intact(name):
            return self._remake(name, complaint)
        path = self._files[name]
        if name in (SOURCE, "ttir"):
            return compat.read_ttir(path)
        return untrusted.read_text(path, untrusted.ARTEFACT, CorruptCacheError)

    def _remake(self, name: str, complaint: str) -> Any:
        pipeline = self._compiler.pipeline(self._compiler.parse_options(self._metadata))
        before = (SOURCE, *pipeline.names)
        # The compiler cannot rebuild what the user has put in by an override.
        if name not in pipeline.names or name in self._metadata.get(OVERRIDDEN, ()):
            raise CorruptCacheError(
                f"{complaint}, nor is anything that it could be made from; delete the folder {self._folder}"
            )
        at = pipeline.index(name)
        return pipeline.stages[at].run(self._artefact(before[at], complaint), dict(self._metadata))


def check_folder(root: Path, folder: Path) -> None:
    """Raise `InsecureCacheError` for a cache that others can write: they could put code there that would be run."""
    remedy = "take the permission away (chmod), or set TRITON_CACHE_DIR to a folder that only you can write"
    trust.check_way(root, remedy)
    resolved = root.resolve()
    for path in (resolved, folder, *folder.iterdir()):
        trust.check_private(path, remedy, group_may_write=True)
    if os.path.exists(root) and trust.group_can_write(resolved):
        warnings.warn(
            f"the compile cache {root} can be written by its group, who could replace the code in it; "
            f"run `chmod g-w {root}` if that is not meant",
            UserWarning,
            stacklevel=5,
        )
