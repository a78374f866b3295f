"""Files whose contents are executed: who else could have written, or could swap, them?

Used by the compile cache and by the cache of built launch code.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from triton_porting_kit.errors import InsecureCacheError


def check_private(path: Path, remedy: str, *, group_may_write: bool = False) -> None:
    """Raise `InsecureCacheError`, ending in `remedy`, unless only this user and root can write a file or folder.

    A symbolic link is refused. `group_may_write` lets the members of its group write. Nothing is asked of the
    folders above; see `check_way`. A path that is not there passes.
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
        reason = f"its mode {mode:04o} lets others write it"
    else:
        return
    raise InsecureCacheError(f"{path} holds code that would be executed, but {reason}; {remedy}")


def check_way(folder: Path, remedy: str) -> None:
    """Raise `InsecureCacheError` if another user could put something else in the place of `folder`.

    So it is where a folder above can be written by everyone (unless it is sticky, as /tmp is, and what lies
    in it is ours), and where a symbolic link on the way is someone else's.
    """
    for place in _places(folder):
        status = _lstat(place)
        if status is None:
            continue
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            if not _trusted(status):
                raise InsecureCacheError(
                    f"{folder} holds code that would be executed, but the symbolic link {place} on the way "
                    f"belongs to user {status.st_uid}; {remedy}"
                )
        elif place != folder and mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise InsecureCacheError(
                f"any user can replace {folder}, whose code would be executed, because {place} has mode "
                f"{mode:04o}; {remedy}"
            )


def group_can_write(path: Path) -> bool:
    """Whether the members of a group of several users can write a file or folder that is there."""
    status = path.lstat()
    if not status.st_mode & stat.S_IWGRP:
        return False
    try:
        group, user = grp.getgrgid(status.st_gid), pwd.getpwuid(status.st_uid)
    except KeyError:
        return True
    # Where everyone has a group of their own (the usual reason for such a mode), it has the user's name.
    return group.gr_name != user.pw_name or bool(set(group.gr_mem) - {user.pw_name})


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only this user can read, so that nobody ever sees half of it."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".tmp-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _places(folder: Path) -> Iterator[Path]:
    """The folder, what it points to if it is a link, and everything above each of them."""
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
        if place.is_symlink():
            waiting.append(Path(os.path.normpath(place.parent / os.readlink(place))))


def _trusted(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0)


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None
