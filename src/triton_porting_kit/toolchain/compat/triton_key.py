"""Triton's digest of its own files, kept beside the kernels that it is part of the key of.

Every process hashes all of Triton before its first kernel, compiled or cached: half a gigabyte, which takes longer than
everything else that a cached kernel needs. The digest is kept under the names, sizes and times of these files, in
``$TPK_CACHE_DIR`` where that is set: programs with a compile cache of their own find it there, too.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import triton

from triton_porting_kit import trust, untrusted

from .caches import cache_root
from .releases import internal

_PREFIX = ".triton-key-"
_HASHED = ("_C", "backends", "compiler", "language", "runtime")
"""The folders with the files that Triton hashes."""


@functools.cache
@internal
def keep_triton_key() -> None:
    """Let Triton read the digest that was kept, unless its files have changed since then."""
    from triton.runtime import cache

    by_triton = cache.triton_key

    @functools.cache
    def triton_key() -> str:
        folder = os.environ.get("TPK_CACHE_DIR") or cache_root()
        path = Path(folder, f"{_PREFIX}{_fingerprint(Path(triton.__file__).parent)}")
        with contextlib.suppress(ValueError):
            kept = untrusted.read_text(path, untrusted.METADATA, ValueError)
            if kept.startswith(triton.__version__):
                return kept
        key: str = by_triton()
        # A cache that cannot be written is reported when a kernel is.
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            trust.write_private(path, key.encode())
        return key

    cache.triton_key = triton_key


@internal
def make_triton_key() -> None:
    """Let the processes that are forked from this one have the digest in memory."""
    from triton.runtime import cache

    cache.triton_key()


def _fingerprint(package: Path) -> str:
    """A digest of the names, sizes and times of Triton's files.

    The time of the last change of an inode is included: unlike that of the content, no program sets it back.
    """
    digest = hashlib.sha256()
    for folder in _HASHED:
        for path in sorted(_files(package / folder)):
            status = os.stat(path)
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ctime_ns}\n".encode())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (os.path.join(parent, name) for name in names)
