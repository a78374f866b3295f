"""The folder of recorded launches: what is in it, whether more fits, and the number of the next launch."""

from __future__ import annotations

import fcntl
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from triton_porting_kit.errors import CaptureWarning
from triton_porting_kit.replay.capture import launches_in
from triton_porting_kit.replay.settings import COUNT, FOLDER, LIMIT, Settings, readable, size_of

_told: set[tuple[Path, str]] = set()


@dataclass
class _Content:
    """What is in a folder: what this process found there first, and what it has added."""

    launches: int
    size: int


_contents: dict[Path, _Content] = {}


def fits(settings: Settings, kernel: str, need: int) -> bool:
    """Whether another launch may be recorded. Where not, it is said, once for each reason."""
    folder = settings.folder
    if folder not in _contents:
        _contents[folder] = _Content(len(launches_in(folder)), size_of(folder))
    there = _contents[folder]
    if settings.count is not None and there.launches >= settings.count:
        _warn_once(
            folder, COUNT, f"{folder} has the {settings.count} launches of {COUNT}: no more are recorded"
        )
        return False
    if there.size + need <= settings.limit:
        there.launches += 1
        there.size += need
        return True
    _warn_once(
        folder,
        kernel,
        f"a launch of kernel '{kernel}' is not recorded: with its {readable(need)}, the folder of {FOLDER}, {folder}, "
        f"would have more than {readable(settings.limit)} ({readable(there.size)} are there); set {LIMIT} to more, "
        "such as 4G, or record fewer kernels",
    )
    return False


def give_back(folder: Path, size: int) -> None:
    """Note that a launch took fewer bytes of a folder than `fits` was asked for."""
    _contents[folder].size -= size


def forget(folder: Path) -> None:
    """Look anew what is in a folder, of which something may have been removed."""
    _contents.pop(folder, None)


def _warn_once(folder: Path, reason: str, text: str) -> None:
    if (folder, reason) not in _told:
        _told.add((folder, reason))
        warn(text)


@contextmanager
def numbering(folder: Path) -> Iterator[int]:
    """The next number for a launch in a folder, which several processes may write to."""
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        numbers = [int(match[1]) for path in folder.iterdir() if (match := re.match(r"(\d+)-", path.name))]
        yield max(numbers, default=0) + 1
    finally:
        os.close(descriptor)


def warn(text: str) -> None:
    """Warn of what is not recorded, or not as a whole."""
    warnings.warn(text, CaptureWarning, stacklevel=5)
