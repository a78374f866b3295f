"""What the environment says about recording launches."""

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
"""What `tpk compare` sets for the program that it runs: record every so many launches of each kernel, none of more
bytes, and wait after each until it was judged (see `journal`)."""

DEFAULT_LIMIT = 1 << 30
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_REMEDY = "take the permission away (chmod go-w), or name a folder that only you can write"


@dataclass(frozen=True)
class Settings:
    """Where launches are recorded, and which."""

    folder: Path
    kernel: str
    """A pattern for the kernels' names, as of a shell."""
    count: int | None
    """Launches that may be in `folder`; None: any number."""
    limit: int
    """Bytes that may be in `folder`."""
    every: int = 1
    """Of the launches of a kernel, the first and every so many after it."""
    most: int | None = None
    """Bytes that one launch may take."""
    judged: bool = False
    """Whether each launch is written into the journal, and waited for until it was judged."""

    @classmethod
    def from_environment(cls) -> Settings | None:
        """None where nothing is to be recorded. Raises `CaptureError` for a value that makes no sense."""
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
        """Whether launches of the kernel of that name are to be recorded."""
        return fnmatchcase(kernel, self.kernel)

    def make_folder(self) -> None:
        """Make `folder`, for this user only. Raises `InsecureCacheError` where others can write it."""
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise CaptureError(
                f"{self.folder} cannot be made for recorded launches: {error.strerror}"
            ) from error
        trust.check_way(self.folder, _REMEDY)
        trust.check_private(self.folder.resolve(), _REMEDY)


def parse_size(text: str, what: str = LIMIT) -> int:
    """Bytes: a number, perhaps with K, M, G or T behind it. Raises `CaptureError` for anything else, by its name."""
    if not text:
        return DEFAULT_LIMIT
    found = re.fullmatch(r"(\d+)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if found is None:
        raise CaptureError(f"{what} is {text!r}; set it to a number of bytes such as 500M or 2G")
    return int(found[1]) * _UNITS[found[2].upper()]


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder and the folders in it."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:  # removed meanwhile
                continue
    return total


def readable(size: int) -> str:
    """``1.5 MiB``."""
    if size < 1024:
        return f"{size} bytes"
    power = min((size.bit_length() - 1) // 10, 4)
    return f"{size / 1024**power:.1f} {'KMGT'[power - 1]}iB"
