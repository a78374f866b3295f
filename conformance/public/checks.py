"""The body of a check of the level: a case, run in a process that has its package."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.public import sorting
from triton_porting_kit.conformance.public.entries import Case
from triton_porting_kit.conformance.public.hosts import Host
from triton_porting_kit.conformance.public.options import Options
from triton_porting_kit.conformance.status import Evidence

FAULTS = ("kit", "crash", "timeout", "harness")
"""Verdicts that make a check fail; the others are upstream's."""
THREADS = 2
"""How many threads run a case that is judged."""


@dataclass(frozen=True)
class Body:
    """The body of a case's check."""

    case: Case

    def __call__(self, context: Context) -> None:
        options, entry = Options.of_environment(), self.case.entry
        host = _hosts.get(context, self.case, options, THREADS)
        evidence, caught = host.ask({"case": self.case.name}, entry.seconds)
        verdict, reason = sorting.verdict_of(evidence, self.case.known)
        if verdict != "right":
            host.close()  # what failed may have left something behind
        if verdict in (sorting.KIT, "crash") and not options.checked:
            verdict, reason = self._looked_at(context, options, verdict, reason)
        raised = any(item["kind"] == "error" for item in evidence)
        context.evidence += _attributed(evidence, verdict, reason)
        if caught and not (raised and len(caught) == 1):
            context.evidence.append(
                {"kind": "caught", "what": "compile errors that the package caught", "messages": caught}
            )
        if verdict == "right":
            for threads in options.threads:
                context.evidence += self._times(context, options, threads)

    def _looked_at(self, context: Context, options: Options, verdict: str, reason: str) -> tuple[str, str]:
        """The verdict after a second run with checks: a kernel that leaves its arguments may find or do anything."""
        host = Host(self.case.collection, replace(options, checked=True), THREADS, cuda=_is_cuda(context))
        try:
            evidence, _ = host.ask({"case": self.case.name}, self.case.entry.seconds)
        finally:
            host.close()
        if any(item.get("type") == sorting.OUT_OF_BOUNDS for item in evidence):
            return sorting.verdict_of(evidence, None)
        return verdict, reason

    def _times(self, context: Context, options: Options, threads: int) -> list[dict[str, Any]]:
        host = _hosts.get(context, self.case, options, threads)
        found, _ = host.ask({"case": self.case.name, "times": True}, 2 * self.case.entry.seconds)
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
        self._hosts: dict[int, Host] = {}

    def get(self, context: Context, case: Case, options: Options, threads: int) -> Host:
        """The process for a case and a number of threads."""
        if case.collection.name != self._collection:
            for host in self._hosts.values():
                host.close()
            self._hosts, self._collection = {}, case.collection.name
        if threads not in self._hosts:
            self._hosts[threads] = Host(case.collection, options, threads, cuda=_is_cuda(context))
        return self._hosts[threads]


def _is_cuda(context: Context) -> bool:
    return bool(context.session.target.backend == "cuda")


_hosts = _Hosts()
