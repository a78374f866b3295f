"""`Supervisor`: runs checks in a worker process, and handles its crashes and hangs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.execution.plan import batches
from triton_porting_kit.conformance.execution.process import LimitExceeded, WorkerDied, WorkerProcess
from triton_porting_kit.conformance.execution.settings import Settings
from triton_porting_kit.conformance.execution.turns import Turns
from triton_porting_kit.conformance.profile import Profile, load
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.seeds import seed_of
from triton_porting_kit.conformance.stages import IMPORTED
from triton_porting_kit.conformance.status import Evidence
from triton_porting_kit.errors import PortingKitError

START_SECONDS = 120.0
"""Time limit for a worker to import everything and open the device."""
COMPILING = 5.0
"""The factor for time limits if kernels are only compiled: code generators for GPUs take up to a minute for types
that they emulate."""
END_SECONDS = 60.0
"""Time limit for a worker to check and reset the device after the last check."""
_MEASURING = 5.0
"""The factor for the time limit of performance measurements."""
ALONE = 2.0
"""The factor for the time limit of a check that is repeated alone: the load of the machine is unknown."""
CONFIRMED = 3
"""The number of checks that also time out alone, after which timeouts are not repeated: the backend hangs."""
_PAUSES = (0.0, 1.0, 5.0)
"""Seconds to wait before each attempt to start a worker, if one ran before."""
LOST_WORKER = "a batch crashed its worker"
OUT_OF_TIME = "a check exceeded its time limit, but not when it ran alone"
"""Incidents for `Settings.note`."""

_NO_RECORD = {
    "kind": "harness",
    "stage": "harness",
    "type": "NoRecord",
    "message": "the worker ended the check without a record of it",
}


class CannotStart(PortingKitError):
    """No worker could be started. `evidence` holds the reason."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        super().__init__(str(evidence["message"]))


class Supervisor:
    """Owns one worker at a time. Use it as a context manager, which ends the worker."""

    def __init__(self, settings: Settings, *, recording: str = "") -> None:
        """`recording`: the folder in which workers record launches; empty: they do not."""
        self.settings = settings
        self._recording = recording
        self.description: Mapping[str, Any] = {}
        """The worker's description of its session."""
        self.profile = Profile()
        self._worker: WorkerProcess | None = None
        self._turns = Turns(settings.scratch, self._look)
        self._confirmed = 0
        self._ran = False
        self._failure: Evidence | None = None
        """Why no worker can be started, or None."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker, if there is one."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    # --- starting ------------------------------------------------------------------------------------

    def start(self) -> Mapping[str, Any]:
        """Start a worker if there is none, and return its description of the session. Raises `CannotStart`."""
        if self._failure is not None:
            raise CannotStart(self._failure)
        if self._worker is None:
            for pause in _PAUSES if self._ran else _PAUSES[:1]:
                time.sleep(pause)
                self._failure = self._try_to_start()
                if self._failure is None:
                    break
            else:
                raise CannotStart(self._failure or {})
        return self.description

    def _try_to_start(self) -> Evidence | None:
        # A check to record has failed before in another worker, which may have left the device in a bad state.
        reset = self._ran or bool(self._recording)
        worker = WorkerProcess(self.settings, reset=reset, recording=self._recording)
        try:
            message = worker.receive(START_SECONDS)
        except WorkerDied:
            return worker.evidence() | {"stage": IMPORTED}
        except LimitExceeded:
            return worker.evidence(START_SECONDS) | {"stage": IMPORTED}
        except BaseException:
            worker.kill()
            raise
        if "failed" in message:
            worker.kill()
            failed: Evidence = message["failed"]
            return failed
        self._worker, self._ran = worker, True
        self.description = message["ready"]
        found = self.description["profile"]["source"]
        self.profile = load(Path(found), self.description["target"]["arch"]) if found else Profile()
        self.settings = self.settings.with_profile(found)
        return None

    # --- running -------------------------------------------------------------------------------------

    def run(self, checks: Sequence[Check]) -> Iterator[Record]:
        """Run checks and yield their records. Consecutive checks of a batch share a kernel."""
        for batch in batches(checks):
            yield from self._run_batch(batch)

    def _run_batch(self, batch: list[Check]) -> Iterator[Record]:
        waiting = batch
        together = len(batch) > 1
        while waiting:
            part = waiting if together else waiting[:1]
            begin = time.monotonic()
            try:
                self.start()
            except CannotStart as error:
                yield from (self._record(check, error.evidence, 0.0) for check in waiting)
                return
            try:
                for record in self._run_part(part):
                    yield record
                    waiting = [check for check in waiting if check.name != record.name]
                    begin = time.monotonic()
            except _Gone as gone:
                self.close()
                if len(part) > 1:
                    names = [check.name for check in waiting]
                    self.settings.note({"what": LOST_WORKER, "checks": names, **gone.evidence})
                if len(part) == 1 and part[0] in waiting:
                    seconds = time.monotonic() - begin
                    tried = bool(self._recording) or self._confirmed >= CONFIRMED
                    if "timeout" in gone.evidence and not tried:
                        yield self._again(part[0], gone.evidence)
                    else:
                        yield self._record(part[0], gone.evidence, seconds)
                    waiting = waiting[1:]
            else:
                if len(part) == 1 and part[0] in waiting:
                    yield self._record(part[0], _NO_RECORD, time.monotonic() - begin)
                    waiting = waiting[1:]
            together = False  # a check of the batch crashed the worker: try the rest one at a time

    def _run_part(
        self, part: Sequence[Check], turn: AbstractContextManager[None] | None = None, times: float = 1.0
    ) -> Iterator[Record]:
        """Yield the records that the worker sends. Raises `_Gone` after the worker has ended.

        `turn`: a context of `Turns`; by default, other processes may run checks at the same time. `times`: a factor for
        the time limits of the checks.
        """
        worker = self._worker
        assert worker is not None
        with ExitStack() as stack:
            stack.enter_context(turn or self._turns.beside())
            worker.send({"run": [check.name for check in part]})
            patience = COMPILING if self.settings.target else 1.0
            limits = {check.name: check.seconds * patience * times for check in part}
            limit = max(limits.values()) * (2 if len(part) > 1 else 1)
            while True:
                try:
                    message = worker.receive(limit)
                except WorkerDied:
                    raise _Gone(worker.evidence()) from None
                except LimitExceeded:
                    raise _Gone(worker.evidence(limit)) from None
                if "done" in message:
                    if not message["done"]["healthy"]:
                        self.close()
                    return
                record = Record.from_json(message["record"])
                limits.pop(record.name)
                limit = max(limits.values(), default=END_SECONDS)
                if not limits:
                    stack.close()  # the consumer of the last record may not resume this generator for long
                yield record

    def _again(self, check: Check, first: Evidence) -> Record:
        """Repeat a check that timed out, while no other check of the run is running, and return its record.

        The verdict must depend on the backend, not on the load of the machine.
        """
        begin = time.monotonic()
        try:
            with self._turns.alone():
                self.start()
                begin = time.monotonic()
                found = list(self._run_part([check], nullcontext(), ALONE))
            if found:
                note = {
                    "what": OUT_OF_TIME,
                    "checks": [check.name],
                    "seconds alone": found[0].seconds,
                    **first,
                }
                self.settings.note(note)
                return found[0]
            evidence: Evidence = _NO_RECORD
        except CannotStart as error:
            evidence = error.evidence
        except _Gone as gone:
            self.close()
            evidence = gone.evidence
            if "timeout" in evidence:
                self._confirmed += 1
                limit = first["timeout"]
                message = (
                    f"no result after {limit:g} s, nor after {evidence['timeout']:g} s when it ran alone"
                )
                evidence = {**evidence, "message": message}
        return self._record(check, evidence, time.monotonic() - begin)

    def _look(self) -> None:
        """Called while waiting for other processes of the run. Raises `KeyboardInterrupt` if the run is stopped."""
        if self.settings.stopped:
            raise KeyboardInterrupt

    def measure(self, seconds: float) -> dict[str, Any]:
        """Measure performance in about this many seconds. The result has only ``error`` if the worker failed."""
        try:
            self.start()
        except CannotStart as error:
            return {"error": str(error)}
        worker = self._worker
        assert worker is not None
        worker.send({"measure": seconds})
        try:
            found: dict[str, Any] = worker.receive(_MEASURING * seconds + START_SECONDS)["measured"]
        except WorkerDied:
            found = {"error": str(worker.evidence()["message"])}
            self.close()
        except LimitExceeded:
            found = {"error": str(worker.evidence(_MEASURING * seconds + START_SECONDS)["message"])}
            self.close()
        return found

    def _record(self, check: Check, evidence: Evidence, seconds: float) -> Record:
        seed = seed_of(self.settings.seed, check.name)
        return Record.of(check, [evidence], seconds, seed, self.profile.listing(check))


class _Gone(Exception):
    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
