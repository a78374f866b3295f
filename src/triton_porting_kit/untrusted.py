"""Untrusted files: read as data within limits, and shown as text.

All readers of such files in the kit use this module, whatever the format. A file is opened without following symbolic
links, must be a regular file, and must not exceed the size limit of its kind. Its content is data of bounded depth and
never names code that is imported. Writers use `Folder`, which links cannot lead out of. `triton_porting_kit.trust`
checks files that are executed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from triton_porting_kit import trust

Error = Callable[[str], Exception]
"""Makes a reader's exception from a message."""

KIB, MIB = 1 << 10, 1 << 20
MANIFEST = 16 * MIB
"""Size limit in bytes of the manifest of a recorded launch."""
REPORT = 256 * MIB
"""Size limit of a report, of a run's records, and of each of the other files of a run."""
PROFILE = MIB
"""Size limit of a profile, and of a project's ``pyproject.toml``."""
ANSWERS = 64 * KIB
"""Size limit of the file that records how a repository was created."""
SOURCE = 4 * MIB
"""Size limit of a source file that is read but not executed."""
METADATA = 16 * MIB
"""Size limit of the metadata of a cached kernel, and of the metadata in a code object."""
ARTEFACT = 1 << 30
"""Size limit of a file of compiled code, and of the files it is made from."""
RESULTS = 64 * MIB
"""Size limit of the results of a benchmark."""
DEPTH = 64
"""The maximum depth of nested lists and tables."""
_ENTRIES = 1 << 14
"""The maximum entries of a list or map in MessagePack, whose reader allocates as many as the input claims."""
_TYPES = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link, which is not followed",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


# --- reading -----------------------------------------------------------------------------------------


def read_bytes(
    path: Path, limit: int, error: Error, *, follow: bool = False, remedy: str = "", folder: int | None = None
) -> bytes:
    """The content of a regular file of at most `limit` bytes.

    `follow`: allow a symbolic link, because the user named the file. `folder`: a descriptor that `path` is relative to.
    Raises `error` of a message with the file, the problem and the `remedy`.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    behind = f"; {remedy}" if remedy else ""
    try:
        descriptor = os.open(path, flags, dir_fd=folder)
    except (OSError, ValueError) as problem:  # ValueError: the path has a null byte.
        raise error(f"{path} cannot be read: {_reason(problem)}{behind}") from problem
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise error(f"{path} is {_kind(status)}, not a file{behind}")
        found = _read(descriptor, min(status.st_size, limit) + 1)
    except (OSError, MemoryError) as problem:
        raise error(f"{path} cannot be read: {_reason(problem)}{behind}") from problem
    finally:
        os.close(descriptor)
    if max(status.st_size, len(found)) > limit:
        raise error(f"{path} has more than {limit:,} bytes, the limit for such a file{behind}")
    return found


def _read(descriptor: int, most: int) -> bytes:
    parts = []
    while most and (part := os.read(descriptor, most)):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def read_text(path: Path, limit: int, error: Error, *, follow: bool = False, remedy: str = "") -> str:
    """Like `read_bytes`, for a UTF-8 text."""
    found = read_bytes(path, limit, error, follow=follow, remedy=remedy)
    try:
        return found.decode()
    except UnicodeDecodeError as problem:
        raise error(f"{path} is not UTF-8: {problem.reason} at byte {problem.start:,}") from problem


def parse_json(content: bytes | str, what: object, error: Error, *, finite: bool = True) -> Any:
    """Parse JSON with at most `DEPTH` nested lists and objects, and integers of at most 64 bits.

    `what` is named in messages. `finite`: refuse infinities and NaN.
    """
    return _parsed(
        lambda data: json.loads(data if isinstance(data, str) else data.decode()),
        content,
        what,
        "JSON",
        error,
        finite=finite,
    )


def parse_toml(content: bytes, what: object, error: Error) -> dict[str, Any]:
    """Parse TOML, with the limits of `parse_json`."""
    import tomllib  # Imported late, because importing Triton imports this module.

    found: dict[str, Any] = _parsed(lambda data: tomllib.loads(data.decode()), content, what, "TOML", error)
    return found


def parse_yaml(content: bytes, what: object, error: Error) -> Any:
    """Parse YAML of plain data without aliases, with the limits of `parse_json`."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Refuses aliases: a few of them can expand to exponentially many values."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise ValueError("it has an alias (*NAME), which is not allowed")
            return super().compose_node(parent, index)

    return _parsed(lambda text: yaml.load(text, Loader), content, what, "YAML", error)


def parse_message_pack(content: bytes, what: object, error: Error) -> Any:
    """Parse MessagePack, with the limits of `parse_json`."""
    import msgpack

    if len(content) > METADATA:
        raise error(f"{what} has more than {METADATA:,} bytes, the limit for metadata")
    limits = {"max_array_len": _ENTRIES, "max_map_len": _ENTRIES}
    return _parsed(lambda data: msgpack.unpackb(data, **limits), content, what, "MessagePack", error)


def read_json(path: Path, limit: int, error: Error, *, follow: bool = False, remedy: str = "") -> Any:
    """`parse_json` of a file."""
    return parse_json(read_bytes(path, limit, error, follow=follow, remedy=remedy), path, error)


def read_toml(
    path: Path, limit: int, error: Error, *, follow: bool = False, remedy: str = ""
) -> dict[str, Any]:
    """`parse_toml` of a file."""
    return parse_toml(read_bytes(path, limit, error, follow=follow, remedy=remedy), path, error)


def _parsed(
    parse: Callable[[Any], Any], content: Any, what: object, kind: str, error: Error, *, finite: bool = True
) -> Any:
    try:
        found = parse(content)
    except RecursionError as problem:
        raise error(f"{what} is refused: {_TOO_DEEP}") from problem
    except Exception as problem:  # Parsers raise their own errors and Python's.
        text = " ".join(str(problem).split()) or type(problem).__name__
        raise error(f"{what} is not {kind}: {text:.300}") from problem
    if reason := _out_of_bounds(found, finite):
        raise error(f"{what} is refused: {reason}")
    return found


_TOO_DEEP = f"lists and tables are nested more than {DEPTH} deep"


def _out_of_bounds(value: Any, finite: bool) -> str:
    """Why parsed data exceeds the limits; empty if it does not. Parsers make no subclasses of these types."""
    level, depth = [value], 0
    while level:
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is int:
                if not -(1 << 63) <= item < 1 << 64:
                    return "a whole number has more than 64 bits"
            elif kind is dict:
                below += item.values()
            elif kind is list:
                below += item
            elif finite and kind is float and not math.isfinite(item):
                return "a number is not finite"
        if depth > DEPTH:
            return _TOO_DEEP
        level, depth = below, depth + 1
    return ""


# --- writing -----------------------------------------------------------------------------------------


class Folder:
    """A folder that is held open. Files are read and written only inside of it, whatever links it contains.

    Names are relative paths, no part of which may be a link. A context manager.
    """

    def __init__(self, path: Path, error: Error, *, make: bool = False) -> None:
        """`path` is named by the user and may be a link itself; `make` creates it if it is missing."""
        self.path, self._error = path, error
        try:
            if make:
                path.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError) as problem:
            raise error(
                f"{path} cannot be {'created' if make else 'opened'}: {_reason(problem)}"
            ) from problem

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)

    def has(self, name: str) -> bool:
        """Whether an entry of this name exists."""
        with self._parent(name) as (folder, last):
            return _lstat(last, folder) is not None

    def read(self, name: str, limit: int, remedy: str = "") -> bytes:
        """The content of a file of at most `limit` bytes."""

        def error(message: str) -> Exception:
            return self._error(
                f"{self.path}{os.sep}{os.path.dirname(name)}".rstrip(os.sep) + os.sep + message
            )

        with self._parent(name) as (folder, last):
            return read_bytes(Path(last), limit, error, remedy=remedy, folder=folder)

    def write(self, name: str, content: bytes, *, mode: int = 0o666) -> None:
        """Write a file atomically, and create folders on its path. Only a regular file is replaced."""
        with self._parent(name, make=True) as (folder, last):
            self._check(name, folder, last)
            trust.write_private(Path(last), content, mode=mode, folder=folder)

    def open(self, name: str, *, append: bool) -> IO[str]:
        """Open a text file for writing, to append to it or to replace its content."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with self._parent(name, make=True) as (folder, last):
            self._check(name, folder, last)
            descriptor = os.open(last, flags | (os.O_APPEND if append else os.O_TRUNC), 0o666, dir_fd=folder)
            return os.fdopen(descriptor, "a" if append else "w", encoding="utf-8")

    def remove(self, name: str) -> None:
        """Remove a file or a link. A missing one is not an error."""
        with self._parent(name) as (folder, last):
            if _lstat(last, folder) is not None:
                os.unlink(last, dir_fd=folder)

    @contextlib.contextmanager
    def _parent(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """A descriptor of the folder of the name's last part, and that part."""
        *parts, last = _parts(name, self._error)
        descriptor = os.dup(self._descriptor)
        try:
            for part in parts:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=descriptor)
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                below = os.open(part, flags, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
            yield descriptor, last
        except OSError as problem:
            linked = problem.errno in (errno.ELOOP, errno.ENOTDIR)
            reason = (
                "a folder on its path is a link or not a folder; remove it" if linked else _reason(problem)
            )
            raise self._error(f"{self.path / name} cannot be used: {reason}") from problem
        finally:
            os.close(descriptor)

    def _check(self, name: str, folder: int, last: str) -> None:
        status = _lstat(last, folder)
        if status is not None and not stat.S_ISREG(status.st_mode):
            raise self._error(
                f"{self.path / name} is {_kind(status)}, which is not replaced; remove it, or name another place"
            )


def write_file(path: Path, content: bytes, error: Error) -> None:
    """Write one file that the user named, like `Folder.write`."""
    with Folder(path.parent, error, make=True) as folder:
        folder.write(path.name, content)


def _parts(name: str, error: Error) -> Sequence[str]:
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise error(f"{name!r} is not a valid name of a file in a folder")
    return parts


def _lstat(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _kind(status: os.stat_result) -> str:
    return _TYPES.get(stat.S_IFMT(status.st_mode), "of an unknown type")


def _reason(problem: BaseException) -> str:
    if isinstance(problem, MemoryError):
        return "there is not enough memory for it"
    if isinstance(problem, OSError) and problem.errno == errno.ELOOP:
        return "it is a symbolic link, which is not followed"
    if isinstance(problem, OSError) and problem.errno == errno.ENXIO:
        return "it is a socket or a device"
    return getattr(problem, "strerror", None) or str(problem)


# --- showing -----------------------------------------------------------------------------------------

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\uffff"
    "\U000e0000-\U000e0fff]"
)
"""Control characters except tab and line feed, characters that reorder or hide text, surrogates, and characters that
XML does not allow."""


def shown(text: object, *, lines: bool = True) -> str:
    r"""`text` for a terminal, a log or XML: control characters and invisible characters are escaped, as ``\x1b``.

    `lines`: keep line feeds and tabs; otherwise the result is one line.
    """
    plain = str(text).replace("\r\n", "\n")
    found = _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), plain)
    return found if lines else found.replace("\n", "\\n").replace("\t", "\\t")
