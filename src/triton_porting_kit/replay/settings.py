"""The settings for recording launches, from environment variables."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from triton_porting_kit import trust
from triton_porting_kit.errors import CaptureError

FOLDER = "TPK_CAPTURE"
KERNEL = "TPK_CAPTURE_KERNEL"
COUNT = "TPK_CAPTURE_COUNT"
LIMIT = "TPK_CAPTURE_LIMIT"
EVERY = "TPK_CAPTURE_EVERY"
BYTES = "TPK_CAPTURE_BYTES"
JUDGED = "TPK_CAPTURE_JUDGED"
"""EVERY, BYTES and JUDGED are set by `tpk compare` for the program that it runs: record the first launch of each kernel
and every EVERY-th after it, none of more than BYTES, and wait after each until it was judged (see `journal`)."""

DEFAULT_LIMIT = 1 << 30
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_REMEDY = "remove the permission (chmod go-w), or name a folder that only you can write to"


@dataclass(frozen=True)
class Settings:
    """Which launches are recorded, and in which folder."""

    folder: Path
    kernel: str
    """A shell pattern for the names of kernels."""
    count: int | None
    """The maximum number of launches in `folder`; None: no limit."""
    limit: int
    """The maximum size of `folder` in bytes."""
    every: int = 1
    """Record the first launch of each kernel and every `every`-th after it."""
    most: int | None = None
    """The maximum size of one launch in bytes; None: no limit."""
    judged: bool = False
    """Whether each launch is written to the journal, and the program waits until it was judged."""

    @classmethod
    def from_environment(cls) -> Settings | None:
        """The settings of this process; None if nothing is recorded. Raises `CaptureError` for an invalid value."""
        folder = os.environ.get(FOLDER)
        if not folder:
            return None
        count, every = os.environ.get(COUNT), os.environ.get(EVERY) or "1"
        for name, value in ((COUNT, count), (EVERY, every)):
            if value and not value.isdecimal():
                raise CaptureError(f"{name} is {value!r}; set it to a number of launches, or unset it")
        most = os.environ.get(BYTES)
        return cls(
            Path(folder),
            os.environ.get(KERNEL) or "*",
            int(count) if count else None,
            parse_size(os.environ.get(LIMIT, "")),
            max(int(every), 1),
            parse_size(most, BYTES) if most else None,
            bool(os.environ.get(JUDGED)),
        )

    def wants(self, kernel: str) -> bool:
        """Whether launches of the kernel with this name are recorded."""
        return fnmatchcase(kernel, self.kernel)

    def make_folder(self) -> None:
        """Create `folder` for this user only. Raises `InsecureCacheError` if others can write to it."""
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise CaptureError(
                f"the folder {self.folder} for recorded launches cannot be created: {error.strerror}"
            ) from error
        trust.check_way(self.folder, _REMEDY)
        trust.check_private(self.folder.resolve(), _REMEDY)


def parse_size(text: str, what: str = LIMIT) -> int:
    """Parse a number of bytes, with an optional suffix K, M, G or T. Empty text gives `DEFAULT_LIMIT`.

    Raises `CaptureError`, naming the setting `what`, for anything else.
    """
    if not text:
        return DEFAULT_LIMIT
    found = re.fullmatch(r"(\d+)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if found is None:
        raise CaptureError(f"{what} is {text!r}; set it to a number of bytes such as 500M or 2G")
    return int(found[1]) * _UNITS[found[2].upper()]


def size_of(folder: Path) -> int:
    """The total size in bytes of all files in a folder and its subfolders."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:  # The file was removed meanwhile.
                continue
    return total


def readable(size: int) -> str:
    """A number of bytes as text: ``1.5 MiB``."""
    if size < 1024:
        return f"{size} bytes"
    power = min((size.bit_length() - 1) // 10, 4)
    return f"{size / 1024**power:.1f} {'KMGT'[power - 1]}iB"
