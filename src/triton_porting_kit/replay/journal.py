"""The protocol between a program whose launches are recorded and `tpk compare`, which judges them one by one.

For every launch, recorded or not, the program writes a line to a file in the folder. After a recorded launch it waits
until `tpk compare` has judged it, so each process has at most one unjudged launch on disk. A launch is judged when its
folder is removed or contains the mark. If no process holds the lock, nothing is recorded.
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
"""The polling interval in seconds."""

NOT_CHOSEN = "--kernel leaves it out"
NOT_SAMPLED = "--every leaves it out"
TOO_LARGE = "it has more memory than --max-bytes allows"
"""Reasons why a launch is not recorded, as shown to users."""

_seen: Counter[str] = Counter()


@dataclass(frozen=True)
class Entry:
    """One launch. Entries are in the order in which launches end."""

    kernel: str
    folder: str = ""
    """The name of its folder; empty if the launch is not recorded."""
    why: str = ""
    """Why the launch is not recorded."""


def is_sampled(settings: Settings, kernel: str) -> bool:
    """Whether this launch of a kernel is recorded. It counts launches, so call it once for each."""
    number = _seen[kernel]
    _seen[kernel] += 1
    return number % settings.every == 0


def add(settings: Settings, entry: Entry) -> None:
    """Add a launch to the journal."""
    line = (json.dumps(asdict(entry)) + "\n").encode()
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(settings.folder / _NAME, flags, 0o600)
    try:
        os.write(descriptor, line)  # One write: lines of several processes do not mix.
    finally:
        os.close(descriptor)


def is_judged(settings: Settings) -> bool:
    """Whether a `tpk compare` still judges the recorded launches."""
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
    """Wait until a recorded launch was judged, or until no process judges any more."""
    while launch.exists() and not (launch / _MARK).exists() and is_judged(settings):
        time.sleep(_LOOK)


class Journal:
    """The journal as `tpk compare` reads it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = 0
        self._rest = b""

    @contextmanager
    def held(self) -> Iterator[Journal]:
        """Hold the lock while this process judges. Raises `CaptureError` if another process judges in this folder."""
        descriptor = os.open(
            self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise CaptureError(
                f"another `tpk compare` is using {self._folder}; name another folder with --dest"
            ) from error
        try:
            (self._folder / _NAME).unlink(missing_ok=True)
            yield self
        finally:
            os.close(descriptor)
            for name in (_NAME, _LOCK):
                (self._folder / name).unlink(missing_ok=True)

    def entries(self) -> list[Entry]:
        """The entries that were added since the last call."""
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
        """Let the program continue, and keep the launch."""
        trust.write_private(launch / _MARK, b"")


def _fields(line: bytes) -> dict[str, Any]:
    found = json.loads(line)
    return {name: str(found[name]) for name in ("kernel", "folder", "why")}
