"""`RunFolder`: the files that a run writes as it proceeds: ``run.json`` and ``records.jsonl``."""

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
    """A folder holds another run, or one that cannot be continued."""


class RunFolder:
    """The folder of a run in progress. A record is on disk when `append` returns."""

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
            self._file.write("\n")  # the next record starts a new line

    def append(self, record: Record) -> None:
        """Append the record of a check."""
        self._file.write(json.dumps(record.to_json()) + "\n")
        self._file.flush()

    def add_figures(self, figures: Mapping[str, Any]) -> None:
        """Write the performance figures."""
        self._folder.write(PERFORMANCE, (json.dumps(figures) + "\n").encode())

    @property
    def has_figures(self) -> bool:
        """Whether an earlier part of the run has measured performance."""
        return self._folder.has(PERFORMANCE)

    def finish(self, end: str, incidents: Sequence[Mapping[str, Any]] = ()) -> bool:
        """Close the run at the time `end`. Returns whether it is complete: every planned check has a record.

        `incidents`: events that are not results of checks, such as the death of a worker that ran a whole batch.
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
        """Replace ``run.json`` atomically, so that concurrent readers find a complete file."""
        self._folder.write(RUN, (json.dumps(self.metadata, indent=1) + "\n").encode())


def metadata_in(path: Path) -> dict[str, Any] | None:
    """The metadata of the run in a folder; None if there is no run. Raises `RunFolderError`."""
    content = _content(path, RUN)
    if content is None:
        return None

    def error(message: str) -> RunFolderError:
        return RunFolderError(f"{message}; name another folder with --report")

    found = untrusted.parse_json(content, path / RUN, error, finite=False)
    if not isinstance(found, dict):
        raise error(f"{path / RUN} is not the metadata of a run")
    return found


def records_in(path: Path) -> dict[str, Record]:
    """The last record of each check in a folder, by name. Unreadable lines are skipped."""
    return records_of(_content(path, RECORDS) or b"")[0]


def records_of(
    content: bytes, validate: Callable[[Any], None] | None = None
) -> tuple[dict[str, Record], int]:
    """The last record of each check in the lines of a file, by name, and the number of unreadable lines.

    `validate` raises `PortingKitError` if the data of a line is not a record.
    """
    records: dict[str, Record] = {}
    damaged = 0
    for line in filter(None, content.split(b"\n")):
        try:
            data = untrusted.parse_json(line, RECORDS, ValueError, finite=False)
            if validate is not None:
                validate(data)
            record = Record.from_json(data)
            record.to_json()  # raises if status, stage or message cannot be computed from the evidence
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
    """Whether a resumed run keeps a record: not if the suite itself failed or no worker could be started."""
    return record.status is not Status.HARNESS_ERROR and record.stage != IMPORTED
