"""Runs a check in this process: calls its body, checks guard zones, and converts exceptions to evidence."""

from __future__ import annotations

import time
import traceback

from triton_porting_kit.conformance.arrays import OutOfBounds, WrongResult
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.context import BY_BACKEND, Context, Failed, Session
from triton_porting_kit.conformance.paths import without_roots
from triton_porting_kit.conformance.record import Listing, Record
from triton_porting_kit.conformance.stages import IN_CHECK, OUT_OF_BOUNDS, WRONG_RESULT, of_exception
from triton_porting_kit.conformance.status import Evidence

_SUITE = __package__ or ""
_LINES = 40
"""The number of lines at the end of a traceback that are kept."""


def try_check(check: Check, session: Session, listing: Listing | None = None) -> Record:
    """Run a check. Whatever its body raises is evidence."""
    context = Context(session, check.name)
    start = time.perf_counter()
    try:
        check.body(context)
        session.memory.synchronize()
        context.check_guards()
    except Failed:
        pass
    except Exception as error:
        context.evidence.append(error_evidence(error))
    context.evidence += _judged(session)
    evidence: list[Evidence] = [*context.evidence]
    return Record.of(check, evidence, time.perf_counter() - start, session.seed_of(check.name), listing)


def _judged(session: Session) -> list[dict[str, object]]:
    try:
        return compiled_evidence(session)
    except Exception as error:  # an error of the suite, whatever the backend produced
        return [error_evidence(error) | {"kind": "harness"}]


def compiled_evidence(session: Session) -> list[dict[str, object]]:
    """Evidence of the binaries that were compiled since the last call in a compile-only run, each once. Binaries of
    known formats are judged."""
    if session.memory.runs:
        return []
    from triton.runtime import driver

    # A late import, because it imports Triton, which may fail.
    from triton_porting_kit.conformance.code_objects import is_judged, judge

    launched = list({id(launch.binary): launch for launch in driver.active.launched}.values())
    driver.active.launched.clear()
    found: list[dict[str, object]] = []
    for launch in launched:
        name, content = launch.binary.name, launch.binary.content
        if is_judged(content, session.target):
            found += judge(name, content, session.target, launch.source, launch.metadata)
        else:
            found.append({"kind": "compiled", "what": name, "bytes": len(content)})
    return found


def error_evidence(error: BaseException) -> dict[str, object]:
    """An exception as evidence."""
    trace = "".join(traceback.format_exception(error)).splitlines()
    stage = of_exception(error)
    if isinstance(error, OutOfBounds):
        stage = OUT_OF_BOUNDS
    elif isinstance(error, WrongResult):
        stage = WRONG_RESULT
    kind = "error"
    if stage == IN_CHECK and not _names_the_backend(error):
        kind = "harness"
    return {
        "kind": kind,
        "stage": stage,
        "type": type(error).__name__,
        "message": without_roots(str(error)[:4000]),
        "traceback": without_roots("\n".join(trace[-_LINES:])),
    }


def _names_the_backend(error: BaseException) -> bool:
    """Whether an exception was raised outside of the suite's own modules, by the access to device memory, or by a
    planted fault."""
    if getattr(error, BY_BACKEND, False):
        return True
    frames = list(traceback.walk_tb(error.__traceback__))
    module = str(frames[-1][0].f_globals.get("__name__", "")) if frames else ""
    ours = module.startswith(_SUITE) and not module.startswith((f"{_SUITE}.memory", f"{_SUITE}.faults"))
    return bool(frames) and not ours
