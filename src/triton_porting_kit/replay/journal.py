"""What passes between a program whose launches are recorded and `tpk compare`, which judges them one by one.

The program writes a line for every launch into a file of the folder, recorded or not, and waits until a recorded one
was judged: so there is never more than one of a process on disk that nobody has looked at. A launch was judged when its
folder is gone, or has the mark. Where nobody holds the lock any more, nothing is recorded.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from triton_porting_kit import trust
from triton_porting_kit.errors import CaptureError
from triton_porting_kit.replay.settings import Settings

_NAME, _LOCK, _MARK = "journal.jsonl", ".judge", "judged"
_LOOK = 0.002
"""Seconds between two looks at what the other side has done."""

NOT_CHOSEN = "--kernel leaves it out"
NOT_SAMPLED = "--every leaves it out"
TOO_LARGE = "it has more memory than --max-bytes allows"
"""Why a launch is not recorded, for people."""

_seen: Counter[str] = Counter()


@dataclass(frozen=True)
class Entry:
    """One launch, in the order in which they ended."""

    kernel: str
    folder: str = ""
    """The name of its folder; empty where it is not recorded."""
    why: str = ""
    """Why not."""


def is_sampled(settings: Settings, kernel: str) -> bool:
    """Whether this launch of a kernel is one of those that are recorded; to be asked once for each."""
    number = _seen[kernel]
    _seen[kernel] += 1
    return number % settings.every == 0


def add(settings: Settings, entry: Entry) -> None:
    """Write a launch down."""
    line = (json.dumps(asdict(entry)) + "\n").encode()
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(settings.folder / _NAME, flags, 0o600)
    try:
        os.write(descriptor, line)  # whole: it is shorter than a page, or nobody else writes
    finally:
        os.close(descriptor)


def is_judged(settings: Settings) -> bool:
    """Whether there is still somebody who judges what is recorded."""
    try:
        descriptor = os.open(settings.folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def wait(settings: Settings, launch: Path) -> None:
    """Until a recorded launch was judged, or nobody is there any more who would."""
    while launch.exists() and not (launch / _MARK).exists() and is_judged(settings):
        time.sleep(_LOOK)


class Journal:
    """The side that judges."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = 0
        self._rest = b""

    @contextmanager
    def held(self) -> Iterator[Journal]:
        """As long as this side judges. Raises `CaptureError` where another process does, in the same folder."""
        descriptor = os.open(
            self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise CaptureError(
                f"another `tpk compare` works in {self._folder}; name another folder with --dest"
            ) from error
        try:
            (self._folder / _NAME).unlink(missing_ok=True)
            yield self
        finally:
            os.close(descriptor)
            for name in (_NAME, _LOCK):
                (self._folder / name).unlink(missing_ok=True)

    def entries(self) -> list[Entry]:
        """What was added since the last time."""
        try:
            with (self._folder / _NAME).open("rb") as file:
                file.seek(self._read)
                content = file.read()
        except FileNotFoundError:
            return []
        self._read += len(content)
        *lines, self._rest = (self._rest + content).split(b"\n")
        return [Entry(**_fields(line)) for line in lines]

    def judged(self, launch: Path) -> None:
        """Let the program go on, and keep the launch."""
        trust.write_private(launch / _MARK, b"")


def _fields(line: bytes) -> dict[str, Any]:
    found = json.loads(line)
    return {name: str(found[name]) for name in ("kernel", "folder", "why")}
