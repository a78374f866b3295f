"""Checks of files whose contents are executed: could other users have written or replaced them?

Used by the compile cache and by the cache of built launch code.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import grp
import os
import pwd
import secrets
import shutil
import stat
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from triton_porting_kit.errors import CacheError, CacheWarning, InsecureCacheError


def check_private(path: Path, remedy: str, *, group_may_write: bool = False) -> None:
    """Raise `InsecureCacheError`, ending in `remedy`, unless only this user and root can write to a file or folder.

    A symbolic link is refused. `group_may_write` allows write permission for the group. The folders above are not
    checked; see `check_way`. A missing path passes.
    """
    status = _lstat(path)
    if status is None:
        return
    mode = stat.S_IMODE(status.st_mode)
    others = stat.S_IWOTH if group_may_write else stat.S_IWOTH | stat.S_IWGRP
    if stat.S_ISLNK(status.st_mode):
        reason = "it is a symbolic link"
    elif not _trusted(status):
        reason = f"it belongs to user {status.st_uid}, not {os.geteuid()}"
    elif mode & others:
        reason = f"its mode {mode:04o} lets others write to it"
    else:
        return
    raise InsecureCacheError(f"{path} holds code that would be executed, but {reason}; {remedy}")


def check_way(folder: Path, remedy: str) -> None:
    """Raise `InsecureCacheError` if another user could replace `folder`.

    Another user can do so if they own a folder above or a symbolic link on the path, or if everyone can write to a
    folder above. A sticky folder such as /tmp is allowed if the entry in it belongs to this user.
    """
    for place in _places(folder):
        status = _lstat(place)
        if status is None:
            continue
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            if not _trusted(status):
                raise InsecureCacheError(
                    f"{folder} holds code that would be executed, but the symbolic link {place} on its path "
                    f"belongs to user {status.st_uid}; {remedy}"
                )
        elif place == folder:
            continue
        elif not _trusted(status) and not _is_unmapped(status.st_uid):
            raise InsecureCacheError(
                f"{folder} holds code that would be executed, but the folder {place} above it belongs to user "
                f"{status.st_uid}, who can replace it; {remedy}"
            )
        elif mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise InsecureCacheError(
                f"any user can replace {folder}, whose code would be executed, because {place} has mode "
                f"{mode:04o}; {remedy}"
            )


def group_can_write(path: Path) -> bool:
    """Whether a group of several users can write to an existing file or folder."""
    status = path.lstat()
    if not status.st_mode & stat.S_IWGRP:
        return False
    try:
        group, user = grp.getgrgid(status.st_gid), pwd.getpwuid(status.st_uid)
    except KeyError:
        return True
    # Such a mode is common where every user has a private group, which has the user's name.
    return group.gr_name != user.pw_name or bool(set(group.gr_mem) - {user.pw_name})


def write_private(path: Path, content: bytes, *, mode: int = 0o600, folder: int | None = None) -> None:
    """Write a file atomically, by default readable only by this user. A symbolic link at `path` is replaced.

    `mode`: its permissions before the umask is applied. `folder`: a descriptor that `path` is relative to.
    """
    temporary = path.with_name(f".tmp-{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, mode, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


_told: set[tuple[int, str]] = set()


def temporary_folder(folder: Path, error: OSError, variable: str) -> Path:
    """A private folder for the lifetime of this process, in place of `folder`, which cannot be written.

    Warns once for each folder; the environment `variable` names another folder. Raises `CacheError` if no temporary
    folder can be created.
    """
    reason = f"{folder} cannot be written: {error.strerror or error}"
    remedy = f"set {variable} to a folder that you can write to, on a disk with free space"
    try:
        found = _temporary_folder(os.getpid())
    except OSError as other:
        raise CacheError(f"{reason}, nor can a temporary folder: {other}; {remedy}") from error
    if (told := (os.getpid(), str(folder))) not in _told:
        _told.add(told)
        warnings.warn(
            f"compiled code is not kept: {reason}. This process uses a temporary folder; {remedy}",
            CacheWarning,
            stacklevel=3,
        )
    return found


@functools.cache
def _temporary_folder(process: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="triton-not-kept-"))  # mode 0700

    @atexit.register
    def remove() -> None:
        if os.getpid() == process:  # Not in a forked child.
            shutil.rmtree(folder, ignore_errors=True)

    return folder


def _places(folder: Path) -> Iterator[Path]:
    """The folder, the targets of symbolic links on its path, and all folders above these."""
    seen: set[Path] = set()
    waiting = [Path(os.path.abspath(folder))]
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        yield place
        if place.parent != place:
            waiting.append(place.parent)
        if os.path.islink(place):
            waiting.append(Path(os.path.normpath(place.parent / os.readlink(place))))


def _trusted(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0)


@functools.cache
def _is_unmapped(user: int) -> bool:
    """Whether this is the ID of all users that the user namespace does not map, possibly including root outside."""
    try:
        unknown = int(Path("/proc/sys/kernel/overflowuid").read_text())
        spans = [map(int, line.split()) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    except (OSError, ValueError):
        return False
    return user == unknown and not any(first <= user < first + count for first, _, count in spans)


def _lstat(path: Path) -> os.stat_result | None:
    """The status of a path; None if it is missing or unreachable, so that nothing in it is executed."""
    try:
        return path.lstat()
    except OSError:
        return None
