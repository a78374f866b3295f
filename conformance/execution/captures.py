"""`Capturer`: runs checks that failed again, in a worker that records their launches."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from triton_porting_kit import untrusted
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.execution.settings import Settings
from triton_porting_kit.conformance.execution.supervisor import Supervisor
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.stages import IMPORTED
from triton_porting_kit.conformance.status import BAD, Evidence, Status, holds


class Capturer:
    """Runs a check again in a worker of its own, the only one that uses the device meanwhile."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @staticmethod
    def wants(record: Record) -> bool:
        """Whether the check is one to run again: it failed, and may have launched something."""
        return record.status in BAD and record.status is not Status.HARNESS_ERROR and record.stage != IMPORTED

    def captured(self, check: Check, record: Record) -> Record:
        """The record of a check that failed, whose evidence says where its launches are recorded, and how to replay
        one: the one that did not end well, or else the last. Other workers have to be ended before."""
        folder = Path(self._settings.captures) / check.name.replace("/", "--")
        with Supervisor(self._settings, recording=str(folder)) as supervisor:
            (again,) = supervisor.run([check])
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
        found = untrusted.read_json(launch / "manifest.json", untrusted.MANIFEST, ValueError)
    except ValueError:
        return ""
    return str(found.get("state")) if isinstance(found, dict) else ""


def _with(evidence: list[Evidence], found: dict[str, object]) -> list[Evidence]:
    """Evidence whose first item that does not hold says what was recorded; the last one if all hold."""
    bad = [number for number, item in enumerate(evidence) if not holds(item)] or [len(evidence) - 1]
    return [{**item, **found} if number == bad[0] else item for number, item in enumerate(evidence)]
