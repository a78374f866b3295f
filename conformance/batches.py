"""Runs several checks. Checks of one batch are compiled together and judged individually."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.context import Context, Failed, Session
from triton_porting_kit.conformance.language import running
from triton_porting_kit.conformance.language.checks import CaseBody, judge
from triton_porting_kit.conformance.language.work import Work
from triton_porting_kit.conformance.record import Listing, Record
from triton_porting_kit.conformance.trial import error_evidence, try_check


def try_batch(checks: Sequence[Check], session: Session, listings: Mapping[str, Listing]) -> Iterator[Record]:
    """Run checks of one batch. Checks that a profile names run alone, and all of them if the shared kernel fails."""
    together = [c for c in checks if isinstance(c.body, CaseBody) and c.name not in listings]
    found: dict[str, Record] = {}
    if len(together) > 1 and session.memory.runs:
        found = _together(together, session)
    for check in checks:
        yield found.get(check.name) or try_check(check, session, listings.get(check.name))


def _together(checks: Sequence[Check], session: Session) -> dict[str, Record]:
    """The records of checks that share a kernel; empty if that kernel cannot be compiled or launched."""
    start = time.perf_counter()
    works: dict[str, Work] = {}
    try:
        for check in checks:
            assert isinstance(check.body, CaseBody)
            work = check.body.case.work()
            if running.can_be_batched(work):
                works[check.name] = work
        arrays = running.start_together(list(works.values()), session.memory)
        session.memory.synchronize()
    except Exception:
        return {}
    shared = (time.perf_counter() - start) / max(len(works), 1)
    by_name = {check.name: check for check in checks}
    records = {}
    for (name, work), own in zip(works.items(), arrays, strict=True):
        check, begin = by_name[name], time.perf_counter()
        context = Context(session, check.name)
        try:
            judge(work, own, context)
        except Failed:
            pass
        except Exception as error:
            context.evidence.append(error_evidence(error))
        seconds = shared + time.perf_counter() - begin
        records[name] = Record.of(check, [*context.evidence], seconds, session.seed_of(check.name), None)
    return records


def try_checks(
    checks: Iterable[Check], session: Session, listings: Mapping[str, Listing] | None = None
) -> Iterator[Record]:
    """Run checks in order, consecutive checks of a batch together."""
    pending: list[Check] = []
    listed = listings or {}
    for check in checks:
        if pending and check.batch != pending[0].batch:
            yield from try_batch(pending, session, listed)
            pending = []
        if check.batch:
            pending.append(check)
        else:
            yield try_check(check, session, listed.get(check.name))
    if pending:
        yield from try_batch(pending, session, listed)
