"""The private folder that built launch code lives in: what others can write must not be executed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from triton_porting_kit.errors import InsecureCacheError, LauncherBuildError

_REMEDY = "remove it, or set TPK_CACHE_DIR to a folder that only you can write"


def cache_folder() -> Path:
    """The folder, made with mode 0700 if it is not there: ``tpk-launchers`` under ``$TPK_CACHE_DIR``, else
    under Triton's cache (``$TRITON_CACHE_DIR``, ``$TRITON_HOME/.triton/cache``, ``~/.triton/cache``).

    Raises `InsecureCacheError` if another user owns it or can write it, or swap it for another;
    `LauncherBuildError` if it cannot be made.
    """
    folder = _base() / "tpk-launchers"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise LauncherBuildError(f"the launcher cache {folder} cannot be made: {error}; {_REMEDY}") from error
    check_private(folder)
    for parent in folder.resolve().parents:
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise InsecureCacheError(
                f"any user can replace the launcher cache {folder}, because {parent} has mode "
                f"{stat.S_IMODE(mode):04o}; {_REMEDY}"
            )
    return folder


def check_private(path: Path) -> None:
    """Raise `InsecureCacheError` unless `path` is this user's own and no one else can write it."""
    status = path.lstat()
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        reason = "it is a symbolic link"
    elif status.st_uid != os.geteuid():
        reason = f"it belongs to user {status.st_uid}, not {os.geteuid()}"
    elif mode & (stat.S_IWGRP | stat.S_IWOTH):
        reason = f"its mode {mode:04o} lets others write it"
    else:
        return
    raise InsecureCacheError(f"{path} holds code that would be executed, but {reason}; {_REMEDY}")


def _base() -> Path:
    if own := os.environ.get("TPK_CACHE_DIR"):
        return Path(own)
    if triton := os.environ.get("TRITON_CACHE_DIR"):
        return Path(triton)
    home = os.environ.get("TRITON_HOME") or os.path.expanduser("~/")
    return Path(home) / ".triton" / "cache"
