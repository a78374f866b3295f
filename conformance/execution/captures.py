"""`Capturer`: repeats failed checks in a worker that records their launches."""

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
    """Repeats a check in its own worker. No other worker may use the device meanwhile."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @staticmethod
    def wants(record: Record) -> bool:
        """Whether to repeat the check: it failed, and may have launched a kernel."""
        return record.status in BAD and record.status is not Status.HARNESS_ERROR and record.stage != IMPORTED

    def captured(self, check: Check, record: Record) -> Record:
        """Repeat a failed check, and add where its launches are recorded to the evidence of its record.

        The evidence also names the command that replays the launch that failed, or else the last one. Other workers
        must have ended.
        """
        folder = Path(self._settings.captures) / check.name.replace("/", "--")
        with Supervisor(self._settings, recording=str(folder)) as supervisor:
            (again,) = supervisor.run([check])
        return replace(record, evidence=[*_with(record.evidence, _found(folder, again))])


def _found(folder: Path, again: Record) -> dict[str, object]:
    """Describe the launches recorded in a folder."""
    launches = sorted(path.parent for path in folder.glob("[0-9]*/manifest.json"))
    found: dict[str, object] = {}
    if again.status not in BAD:
        found["when run again"] = f"{again.status}, so the recorded launch succeeded"
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
    """Add `found` to the first item of evidence that does not hold, or to the last if all hold."""
    bad = [number for number, item in enumerate(evidence) if not holds(item)] or [len(evidence) - 1]
    return [{**item, **found} if number == bad[0] else item for number, item in enumerate(evidence)]
