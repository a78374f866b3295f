"""`Capturer`: runs checks that failed again, in a worker that records their launches."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.execution.settings import Settings
from triton_porting_kit.conformance.execution.supervisor import Supervisor
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.stages import IMPORTED
from triton_porting_kit.conformance.status import BAD, Evidence, Status, holds


class Capturer:
    """Owns a second worker, started when the first check has failed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._supervisor = Supervisor(settings, recording=True)

    def close(self) -> None:
        """End the worker, if there is one."""
        self._supervisor.close()

    def captured(self, check: Check, record: Record) -> Record:
        """The record of a check. If it failed, its evidence says where its launches are recorded, and how to replay
        one: the one that did not come back, or else the last. A check is run again for that, once."""
        if record.status not in BAD or record.status is Status.HARNESS_ERROR or record.stage == IMPORTED:
            return record
        folder = Path(self._settings.captures) / check.name.replace("/", "--")
        self._supervisor.capture_folder = str(folder)
        (again,) = list(self._supervisor.run([check]))  # to its end: the worker has more to say than records
        return replace(record, evidence=[*_with(record.evidence, _found(folder, again))])


def _found(folder: Path, again: Record) -> dict[str, object]:
    """What was recorded in a folder."""
    launches = sorted(path.parent for path in folder.glob("[0-9]*/manifest.json"))
    found: dict[str, object] = {}
    if again.status not in BAD:
        found["when run again"] = f"{again.status}, so what is recorded is a launch that went well"
    if not launches:
        return found | {"captured": "nothing: the check launched no kernel through Triton"}
    ended_badly = [launch for launch in launches if _state(launch) != "complete"]
    chosen = (ended_badly or launches)[-1]
    count = f"{len(launches)} launch{'' if len(launches) == 1 else 'es'}"
    return found | {"captured": f"{count} in {folder}", "replay": shlex.join(["tpk", "replay", str(chosen)])}


def _state(launch: Path) -> str:
    try:
        return str(json.loads((launch / "manifest.json").read_text(encoding="utf-8")).get("state"))
    except (OSError, ValueError):
        return ""


def _with(evidence: list[Evidence], found: dict[str, object]) -> list[Evidence]:
    """Evidence whose first item that does not hold says what was recorded; the last one if all hold."""
    bad = [number for number, item in enumerate(evidence) if not holds(item)] or [len(evidence) - 1]
    return [{**item, **found} if number == bad[0] else item for number, item in enumerate(evidence)]
