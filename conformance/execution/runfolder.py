"""`RunFolder`: what a run leaves on disk, as it goes: ``run.json`` and ``records.jsonl``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from triton_porting_kit import untrusted
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.stages import IMPORTED
from triton_porting_kit.conformance.status import Status
from triton_porting_kit.errors import PortingKitError
from triton_porting_kit.untrusted import Folder

RUN = "run.json"
RECORDS = "records.jsonl"
PERFORMANCE = "performance.json"


class RunFolderError(PortingKitError):
    """A folder holds another run, or none that can be gone on with."""


class RunFolder:
    """A run that goes on. Records are on disk when `append` returns."""

    def __init__(self, path: Path, metadata: Mapping[str, Any], *, keep: bool = False) -> None:
        """Write `metadata`. Records of an earlier run are removed, or kept."""
        self.path, self.metadata = path, dict(metadata)
        self._folder = Folder(path, RunFolderError, make=True)
        self._write()
        if not keep:
            self._folder.remove(PERFORMANCE)
        cut_off = keep and self._folder.has(RECORDS) and not self._read(RECORDS).endswith(b"\n")
        self._file: IO[str] = self._folder.open(RECORDS, append=keep)
        if cut_off:
            self._file.write("\n")  # what comes next has a line of its own

    def append(self, record: Record) -> None:
        """Add what a check ended in."""
        self._file.write(json.dumps(record.to_json()) + "\n")
        self._file.flush()

    def add_figures(self, figures: Mapping[str, Any]) -> None:
        """Add the figures of performance."""
        self._folder.write(PERFORMANCE, (json.dumps(figures) + "\n").encode())

    @property
    def has_figures(self) -> bool:
        """Whether an earlier part of the run has taken them."""
        return self._folder.has(PERFORMANCE)

    def finish(self, end: str, incidents: Sequence[Mapping[str, Any]] = ()) -> bool:
        """Close the run at the time `end`. Whether it is complete: every planned check has a record.

        `incidents`: what happened that is no check's result, such as the death of a worker that ran a whole batch.
        """
        self._file.close()
        done = records_in(self.path)
        complete = all(name in done for name in self.metadata["planned"])
        self.metadata |= {"end": end, "complete": complete}
        self.metadata["incidents"] = [*self.metadata.get("incidents", ()), *incidents]
        self._write()
        self._folder.close()
        return complete

    def _read(self, name: str) -> bytes:
        return self._folder.read(name, untrusted.REPORT)

    def _write(self) -> None:
        """All or nothing: whoever reads the file meanwhile finds it whole."""
        self._folder.write(RUN, (json.dumps(self.metadata, indent=1) + "\n").encode())


def metadata_in(path: Path) -> dict[str, Any] | None:
    """The metadata of the run in a folder; None where there is none. Raises `RunFolderError`."""
    content = _content(path, RUN)
    if content is None:
        return None

    def error(message: str) -> RunFolderError:
        return RunFolderError(f"{message}; name another folder with --report")

    found = untrusted.parse_json(content, path / RUN, error, finite=False)
    if not isinstance(found, dict):
        raise error(f"{path / RUN} is not of a run")
    return found


def records_in(path: Path) -> dict[str, Record]:
    """The records in a folder by name, the last of each; lines that cannot be read are left out."""
    return records_of(_content(path, RECORDS) or b"")[0]


def records_of(
    content: bytes, validate: Callable[[Any], None] | None = None
) -> tuple[dict[str, Record], int]:
    """The records in the lines of a file by name, the last of each; and how many lines could not be read.

    `validate` raises `PortingKitError` for the data of a line that is no record.
    """
    records: dict[str, Record] = {}
    damaged = 0
    for line in filter(None, content.split(b"\n")):
        try:
            data = untrusted.parse_json(line, RECORDS, ValueError, finite=False)
            if validate is not None:
                validate(data)
            record = Record.from_json(data)
            record.to_json()  # computes all from the evidence
            records[record.name] = record
        except (PortingKitError, ValueError, KeyError, TypeError, AttributeError):
            damaged += 1
    return records, damaged


def _content(path: Path, name: str) -> bytes | None:
    if not path.is_dir():
        return None
    with Folder(path, RunFolderError) as folder:
        return folder.read(name, untrusted.REPORT) if folder.has(name) else None


def is_final(record: Record) -> bool:
    """Whether a run that goes on keeps a record: not where the suite failed, or no worker could be started."""
    return record.status is not Status.HARNESS_ERROR and record.stage != IMPORTED
