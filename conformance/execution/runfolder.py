"""`RunFolder`: what a run leaves on disk, as it goes: ``run.json`` and ``records.jsonl``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.stages import IMPORTED
from triton_porting_kit.conformance.status import Status
from triton_porting_kit.errors import PortingKitError

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
        path.mkdir(parents=True, exist_ok=True)
        self._write()
        if not keep:
            (path / PERFORMANCE).unlink(missing_ok=True)
        records = path / RECORDS
        if keep and records.is_file() and not records.read_bytes().endswith(b"\n"):
            with records.open("ab") as file:
                file.write(b"\n")  # the last line was cut off: what comes next has a line of its own
        self._file: IO[str] = records.open("a" if keep else "w", encoding="utf-8")

    def append(self, record: Record) -> None:
        """Add what a check ended in."""
        self._file.write(json.dumps(record.to_json()) + "\n")
        self._file.flush()

    def add_figures(self, figures: Mapping[str, Any]) -> None:
        """Add the figures of performance."""
        (self.path / PERFORMANCE).write_text(json.dumps(figures) + "\n", encoding="utf-8")

    @property
    def has_figures(self) -> bool:
        """Whether an earlier part of the run has taken them."""
        return (self.path / PERFORMANCE).is_file()

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
        return complete

    def _write(self) -> None:
        """All or nothing: whoever reads the file meanwhile finds it whole."""
        temporary = self.path / f".{RUN}.{os.getpid()}"
        temporary.write_text(json.dumps(self.metadata, indent=1) + "\n", encoding="utf-8")
        temporary.replace(self.path / RUN)


def metadata_in(path: Path) -> dict[str, Any] | None:
    """The metadata of the run in a folder; None where there is none. Raises `RunFolderError`."""
    file = path / RUN
    if not file.is_file():
        return None
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{file} cannot be read ({error}); name another folder with --report") from error
    if not isinstance(found, dict):
        raise RunFolderError(f"{file} is not of a run; name another folder with --report")
    return found


def records_in(path: Path) -> dict[str, Record]:
    """The records in a folder by name, the last of each; lines that were cut off are left out."""
    found: dict[str, Record] = {}
    file = path / RECORDS
    for line in file.read_bytes().split(b"\n") if file.is_file() else []:
        try:
            record = Record.from_json(json.loads(line))
        except (ValueError, KeyError, TypeError):
            continue
        found[record.name] = record
    return found


def is_final(record: Record) -> bool:
    """Whether a run that goes on keeps a record: not where the suite failed, or no worker could be started."""
    return record.status is not Status.HARNESS_ERROR and record.stage != IMPORTED
