"""The private folder for built launch code: files that others can write must not be executed."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from triton_porting_kit import trust

NAME = "tpk-launchers"
_REMEDY = "remove it, or set TPK_CACHE_DIR to a folder that only you can write"


def cache_path() -> Path:
    """The path of the folder, which may not exist yet.

    It is ``tpk-launchers`` under ``$TPK_CACHE_DIR``, else under Triton's cache (``$TRITON_CACHE_DIR``,
    ``$TRITON_HOME/.triton/cache``, ``~/.triton/cache``).
    """
    return _base() / NAME


def cache_folder() -> Path:
    """The folder at `cache_path`, created with mode 0700 if necessary.

    Raises `InsecureCacheError` if another user owns it, can write it, or can replace it; `OSError` if it cannot be
    created.
    """
    folder = cache_path()
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    check_private(folder)
    trust.check_way(folder, _REMEDY)
    return folder


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`. One thread of one process holds it at a time."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def check_private(path: Path) -> None:
    """Raise `InsecureCacheError` unless this user owns `path` and no one else can write it."""
    trust.check_private(path, _REMEDY)


def _base() -> Path:
    if own := os.environ.get("TPK_CACHE_DIR"):
        return Path(own)
    if triton := os.environ.get("TRITON_CACHE_DIR"):
        return Path(triton)
    home = os.environ.get("TRITON_HOME") or os.path.expanduser("~/")
    return Path(home) / ".triton" / "cache"
