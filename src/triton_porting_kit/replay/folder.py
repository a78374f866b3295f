"""The folder of recorded launches: its content and limits, and the number of the next launch."""

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
    """The content of a folder: what this process found there first, plus what it has added."""

    launches: int
    size: int


_contents: dict[Path, _Content] = {}


def fits(settings: Settings, kernel: str, need: int) -> bool:
    """Whether another launch of `need` bytes may be recorded. If not, warns once for each reason."""
    folder = settings.folder
    if folder not in _contents:
        _contents[folder] = _Content(len(launches_in(folder)), size_of(folder))
    there = _contents[folder]
    if settings.count is not None and there.launches >= settings.count:
        _warn_once(
            folder,
            COUNT,
            f"no more launches are recorded: {folder} has {settings.count}, the limit that {COUNT} sets",
        )
        return False
    if there.size + need <= settings.limit:
        there.launches += 1
        there.size += need
        return True
    _warn_once(
        folder,
        kernel,
        f"a launch of kernel '{kernel}' is not recorded: it takes {readable(need)}, and the folder of {FOLDER}, "
        f"{folder}, already has {readable(there.size)} of at most {readable(settings.limit)}; set {LIMIT} to more, "
        "such as 4G, or record fewer kernels",
    )
    return False


def give_back(folder: Path, size: int) -> None:
    """Return bytes of a folder that `fits` reserved and a launch did not use."""
    _contents[folder].size -= size


def forget(folder: Path) -> None:
    """Measure a folder again at the next launch, because files may have been removed from it."""
    _contents.pop(folder, None)


def _warn_once(folder: Path, reason: str, text: str) -> None:
    if (folder, reason) not in _told:
        _told.add((folder, reason))
        warn(text)


@contextmanager
def numbering(folder: Path) -> Iterator[int]:
    """The next number for a launch in a folder, under a lock, as several processes may write to the folder."""
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        numbers = [int(match[1]) for path in folder.iterdir() if (match := re.match(r"(\d+)-", path.name))]
        yield max(numbers, default=0) + 1
    finally:
        os.close(descriptor)


def warn(text: str) -> None:
    """Issue a `CaptureWarning`: a launch is not recorded, or not completely."""
    warnings.warn(text, CaptureWarning, stacklevel=5)
