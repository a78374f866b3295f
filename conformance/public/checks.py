"""The body of a check of the level: a case, run in a process that has its package."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.public import sorting
from triton_porting_kit.conformance.public.entries import Case
from triton_porting_kit.conformance.public.hosts import Answer, Host
from triton_porting_kit.conformance.public.options import Options
from triton_porting_kit.conformance.public.results import FAULTS
from triton_porting_kit.conformance.status import Evidence, holds

CHECKING = "cpu"
"""The target whose launcher checks accesses."""
FILLED = "wrong where uninitialised memory is filled"
THREADS = 2
"""How many threads run a case that is judged."""


@dataclass(frozen=True)
class Body:
    """The body of a case's check."""

    case: Case

    def __call__(self, context: Context) -> None:
        options = Options.of_environment()
        checked = self._ask(context, options, checked=True) if options.checked else None
        answer = self._ask(context, options)
        if any(item.get("signal") for item in answer.evidence):
            # An earlier case of the process may have written where it should not: try again in a new one.
            answer = self._ask(context, options)
        verdict, reason = sorting.verdict_of(answer.evidence, self.case.known)
        if verdict in (sorting.KIT, "crash") and context.session.target.backend == CHECKING:
            checked = checked or self._ask(context, options, checked=True)
            # A kernel that leaves its arguments may find or do anything.
            if left := [item for item in checked.evidence if item.get("type") == sorting.OUT_OF_BOUNDS]:
                verdict, reason = "package", str(left[0]["message"])
        found = self._findings(checked, verdict) if checked else []
        if verdict != "right" or found:
            _hosts.close()  # what failed, or wrote elsewhere, may have left something behind
        raised = any(item["kind"] == "error" for item in answer.evidence)
        context.evidence += [*_attributed(answer.evidence, verdict, reason), *found]
        if answer.caught and not (raised and len(answer.caught) == 1):
            context.evidence.append(
                {
                    "kind": "caught",
                    "what": "compile errors that the package caught",
                    "messages": answer.caught,
                }
            )
        if verdict == "right":
            for threads in options.threads:
                context.evidence += self._times(context, options, threads)

    def _ask(self, context: Context, options: Options, threads: int = THREADS, **order: bool) -> Answer:
        """Let a process run the case. `order`: ``checked`` or ``times``."""
        checked = order.get("checked", False)
        # Programs run in order there, so that one order can be compared with another.
        host = _hosts.get(context, self.case, options, 1 if checked else threads, checked=checked)
        patience = 3.0 if order else 1.0
        seconds = min(self.case.entry.seconds, options.seconds or math.inf)
        return host.ask({"case": self.case.name, **order}, patience * seconds)

    def _findings(self, checked: Answer, verdict: str) -> list[dict[str, Any]]:
        """What a run with checks finds: accesses out of bounds, races, and results of memory that nobody wrote."""
        found = [*checked.found]
        found += [str(i["message"]) for i in checked.evidence if i.get("type") == sorting.OUT_OF_BOUNDS]
        if verdict == "right" and not found:
            # Kernels get the same inputs, but memory that `torch.empty` returns is filled.
            failed = (i for i in checked.evidence if i["kind"] in ("error", "comparison") and not holds(i))
            found += [f"{FILLED}: {item.get('what', item.get('type'))}: {item['message']}" for item in failed]
        return [{"kind": "finding", "what": self.case.entry.name, "message": text} for text in found]

    def _times(self, context: Context, options: Options, threads: int) -> list[dict[str, Any]]:
        found = self._ask(context, options, threads, times=True).evidence
        text = f"{threads} thread{'s' if threads > 1 else ''}"
        return [{**item, "what": text, "threads": threads} for item in found if item["kind"] == "times"]


def _attributed(evidence: list[Evidence], verdict: str, reason: str) -> list[dict[str, Any]]:
    """The evidence; what is not the kit's fault becomes `upstream`, with what was seen."""
    if verdict == "right" or verdict in FAULTS:
        return [dict(item) for item in evidence]
    failed = next(item for item in evidence if not _supports(item))
    seen = ": ".join(filter(None, (str(failed.get("type", "")), str(failed.get("message", "")))))
    upstream = {"kind": "upstream", "what": verdict, "message": reason, "seen": seen[:1000]}
    return [*(dict(item) for item in evidence if _supports(item)), upstream]


def _supports(item: Evidence) -> bool:
    return item["kind"] == "comparison" and not item["differ"]


class _Hosts:
    """The processes of this worker: those of one collection."""

    def __init__(self) -> None:
        self._collection = ""
        self._hosts: dict[tuple[int, bool], Host] = {}

    def get(self, context: Context, case: Case, options: Options, threads: int, *, checked: bool) -> Host:
        """The process for a case, a number of threads, and whether accesses are checked."""
        if case.collection.name != self._collection:
            self.close()
            self._hosts, self._collection = {}, case.collection.name
        key = (threads, checked)
        if key not in self._hosts:
            cuda = context.session.target.backend == "cuda"
            self._hosts[key] = Host(case.collection, options, threads, cuda=cuda, checked=checked)
        return self._hosts[key]

    def close(self) -> None:
        """End all processes. They start again when they are asked."""
        for host in self._hosts.values():
            host.close()


_hosts = _Hosts()
