"""The findings of a judgement, each computed only from the evidence.

`tpk judge` and `tpk verify` use the same functions, so verifying detects a verdict that does not follow from the
evidence.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.conformance.judge.oracle import LIKE
from triton_porting_kit.conformance.judge.provenance import FEW

Evidence = Mapping[str, Any]

SLACK = 2e-3
"""Seconds by which the judge's clock may exceed the time that a call reports, however short the call is."""
SHARE = 0.5
"""The same, as a share of the reported time."""
ROOF_SHARE = 0.5
"""Share of the roof's time below which a kernel is flagged: the measured roof is not a strict bound."""


@dataclass(frozen=True)
class Rule:
    """One thing that can be wrong with a candidate."""

    says: str
    """The meaning, for the documentation."""
    where: str
    """``judge``: found by construction, in the judge's process; ``process``: by inspection, in the candidate's."""
    look: Callable[[Evidence], Iterator[str]]
    """Yields one sentence for each occurrence."""


def findings(evidence: Evidence) -> list[dict[str, str]]:
    """All findings, with at most one sentence for each rule."""
    found = []
    for code, rule in RULES.items():
        said = list(dict.fromkeys(rule.look(evidence)))
        if said:
            more = f" (and {len(said) - 1} more)" if len(said) > 1 else ""
            found.append({"code": code, "message": said[0] + more})
    return found


def verdict(found: Sequence[Mapping[str, str]]) -> str:
    """``right``, ``wrong`` (only its results are at fault) or ``flagged``."""
    if not found:
        return "right"
    return "wrong" if {item["code"] for item in found} <= HONEST_MISTAKES else "flagged"


def time_of(evidence: Evidence) -> dict[str, Any]:
    """The measured times, in seconds; empty if no call was timed."""
    timed = [call for call in evidence["calls"] if call["phase"] == "timed" and not call["failure"]]
    if not timed or not evidence["control"]:
        return {}
    walls = [call["wall"] for call in timed]
    windows = [call["window"] for call in timed]
    wall, window = statistics.median(walls), statistics.median(windows)
    control = statistics.median(evidence["control"])
    # The time that the judge waited beyond a call. The lower quartile, because other programs only make it longer. A
    # candidate that hides time in three quarters of the calls is detected; with fewer, the upper quartile is its true
    # time.
    beyond = _quartile([call["window"] - call["wall"] for call in timed])
    noise = max(_spread(windows), _spread(evidence["control"]))
    device = [call["device"] for call in timed if call["device"] is not None]
    allowed = SLACK + SHARE * wall + 2 * noise
    hidden = beyond - control
    times = device if len(device) == len(timed) else walls
    return {
        "seconds": _quartile(times, upper=True),
        "median": statistics.median(times),
        "wall": wall,
        "window": window,
        "control": control,
        "hidden": hidden,
        "hidden_allowed": allowed,
        "least": least_time(evidence),
    }


def least_time(evidence: Evidence) -> float:
    """A lower bound, in seconds, of the time of any kernel of the task, from the measured roof; 0 if unknown."""
    work, roof = evidence["work"], evidence["roof"]
    bounds = [0.0]
    if roof.get("bandwidth"):
        bounds.append(work["bytes"] / roof["bandwidth"])
    if roof.get("peak"):
        bounds.append(work["flops"] / roof["peak"])
    return max(bounds)


def _quartile(values: Sequence[float], *, upper: bool = False) -> float:
    return sorted(values, reverse=upper)[(len(values) - 1) // 4]


def _spread(values: Sequence[float]) -> float:
    if len(values) < 4:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4)
    return high - low


# --- the rules -----------------------------------------------------------------------------------------


def _failures(*kinds: str) -> Callable[[Evidence], Iterator[str]]:
    def look(evidence: Evidence) -> Iterator[str]:
        opened = evidence["opened"]
        if opened.get("kind") in kinds:
            yield opened["message"]
        for call in evidence["calls"]:
            if call["kind"] in kinds:
                yield f"{_named(call)}: {call['failure']}"

    return look


def _wrong(evidence: Evidence) -> Iterator[str]:
    for call in evidence["calls"]:
        for item in call["comparisons"]:
            if item["differ"]:
                yield f"{_named(call)}: {item['message']}; allowed: {item['rule']}"
        if call.get("own_check"):
            yield f"{_named(call)}: the task's own check reports: {call['own_check']}"


def _lowered(evidence: Evidence) -> Iterator[str]:
    """Yield what holds in two calls and in a tenth of the calls of a case: in one call of some hundred, the errors of a
    kernel that is plainly wrong resemble those of a narrower type by chance."""
    seen: dict[tuple[str, int, str], list[float]] = {}
    for call in evidence["calls"]:
        for position, item in enumerate(call["comparisons"]):
            for name, like in item.get("lowered", {}).items():
                seen.setdefault((call["case"], position, name), []).append(like)
    for (case, _, name), likes in seen.items():
        above = [like for like in likes if like > LIKE]
        if len(above) >= max(2, len(likes) / 10):
            yield (
                f"calls of {case}: errors are those of operands rounded to {name} "
                f"(correlation {statistics.median(above):.2f} in {len(above)} of {len(likes)} calls)"
            )


def _each(key: str, text: str) -> Callable[[Evidence], Iterator[str]]:
    def look(evidence: Evidence) -> Iterator[str]:
        for call in evidence["calls"]:
            if call.get(key):
                shown = call[key]
                listed = ", ".join(map(str, shown)) if isinstance(shown, list) else str(shown)
                yield text.format(listed)

    return look


def _torch(evidence: Evidence) -> Iterator[str]:
    for call in evidence["calls"]:
        left = [name for name in call["operators"] if name not in evidence["allowed_operators"]]
        if left:
            yield f"torch operators compute during the call: {', '.join(left)}"


def _mute(evidence: Evidence) -> Iterator[str]:
    for call in evidence["mute"]:
        if not call["failure"] and call["comparisons"] and not any(i["differ"] for i in call["comparisons"]):
            yield "results are right even if launches do nothing, so no kernel computed them"


def _host(evidence: Evidence) -> Iterator[str]:
    yield from _unrecorded(evidence)
    if len(evidence["recorded"]) < 2:
        return
    # Both calls must have them: the first alone may fill tables, and memory may hold what a previous call left.
    _, second = evidence["recorded"]
    values, numbers, integers = (
        min(call[key] for call in evidence["recorded"]) for key in ("values", "numbers", "integers")
    )
    if values > FEW and second["foreign"]:
        item = second["foreign"][0]
        array = f"`{item['argument']}` of launch {item['kernel']}" if item["kernel"] else item["argument"]
        yield (
            f"{array} and {len(second['foreign']) - 1} other arrays hold {values} values that come neither from the "
            "inputs nor from earlier launches: they were computed elsewhere"
        )
    if numbers > (FEW if second["derived"] else 0) or (integers > FEW and not second["derived"]):
        item = second["scalars"][0]
        yield (
            f"`{item['argument']}` of launch {item['kernel']} is {item['value']}, one of {numbers + integers} numbers "
            "that depend on the inputs and come neither from them nor from earlier launches: they were computed "
            "elsewhere"
        )


def _unrecorded(evidence: Evidence) -> Iterator[str]:
    """Yield why the launches of a candidate are unknown, if its calls otherwise succeed and the driver records."""
    if not evidence.get("records") or any(call["failure"] for call in evidence["calls"]):
        return
    for call in evidence["recorded"]:
        if call["why_not"]:
            yield f"the recording of its launches cannot be used: {call['why_not']}"
        elif call["made"] != call["launches"]:
            yield (
                f"{call['launches']} of {call['made']} launches are recorded; if they are too large for "
                "a recording, give the task a smaller case"
            )
        elif not call["launches"]:
            yield "no launches are recorded"


def _no_launch(evidence: Evidence) -> Iterator[str]:
    answered = [call for call in evidence["mute"] if not call["failure"]]
    if answered and not any(call["launches"] for call in answered):
        yield "no Triton kernel is launched"


def _notes(*kinds: str) -> Callable[[Evidence], Iterator[str]]:
    def look(evidence: Evidence) -> Iterator[str]:
        for note in evidence["notes"]:
            if note["kind"] in kinds:
                yield (
                    f"the candidate {note['what']}"
                    if " " in note["what"]
                    else f"the candidate: {note['what']}"
                )

    return look


def _threads(evidence: Evidence) -> Iterator[str]:
    yield from _notes("thread")(evidence)
    if any(call.get("threads") for call in evidence["calls"]):
        yield "threads of the candidate keep running after a call has returned"
    yield from _each("timers", "timers or handlers of signals run code between calls: {}")(evidence)


def _hidden(evidence: Evidence) -> Iterator[str]:
    figures = time_of(evidence)
    if figures and figures["hidden"] > figures["hidden_allowed"]:
        yield (
            f"the candidate's process reports {figures['wall'] * 1e3:.3g} ms per call, but the judge waited "
            f"{figures['hidden'] * 1e3:.3g} ms longer, not counting its own overhead"
        )
    for call in evidence["calls"]:
        if call["phase"] != "timed" or call["failure"]:
            continue
        if not 0 <= call["wall"] <= call["window"] * 1.01 + SLACK:
            yield f"{_named(call)}: its process reports {call['wall']} s, in a window of {call['window']:.4g} s"


def _streams(evidence: Evidence) -> Iterator[str]:
    for call in evidence["calls"]:
        if call.get("late"):
            yield "results change until the device is synchronized: the caller's stream does not wait for them"
    # If suspicious times were repeated, the repeated calls decide.
    repeated = evidence["calls"][evidence.get("repeated_from", 0) :]
    timed = [c for c in repeated if c["phase"] == "timed" and not c["failure"] and c["device"] is not None]
    if timed:
        wall = statistics.median(call["wall"] for call in timed)
        device = statistics.median(call["device"] for call in timed)
        if wall > (1 + SHARE) * device + SLACK:
            yield (
                f"events on the caller's stream are {device * 1e3:.3g} ms apart, but the device is busy for "
                f"{wall * 1e3:.3g} ms: work runs on streams that the caller's stream does not wait for"
            )


def _roof(evidence: Evidence) -> Iterator[str]:
    figures = time_of(evidence)
    if figures and figures["least"] and figures["median"] < ROOF_SHARE * figures["least"]:
        yield (
            f"{figures['median'] * 1e6:.3g} µs, but this machine needs at least {figures['least'] * 1e6:.3g} µs "
            f"({evidence['work']['bytes']:,.0f} bytes, {evidence['work']['flops']:,.0f} operations)"
        )


def _named(call: Mapping[str, Any]) -> str:
    return f"{call['phase']} call of {call['case']}"


RULES: dict[str, Rule] = {
    "error": Rule("It raises, or defines no entry.", "judge", _failures("error", "entry", "candidate", "backend")),
    "ended": Rule("Its process ends before it answers, with any status.", "judge", _failures("ended")),
    "late": Rule("It does not answer in time.", "judge", _failures("late")),
    "forged": Rule("Its process sends messages that the judge's code would not send.", "judge", _failures("forged")),
    "results": Rule("Results have the wrong type or shape.", "judge", _failures("results")),
    "wrong": Rule("A result of any call, timed or not, is wrong; each call has different inputs.", "judge", _wrong),
    "lowered": Rule("The errors are those of operands rounded to a narrower type.", "judge", _lowered),
    "mute": Rule("Results are right in a process in which launches do nothing.", "judge", _mute),
    "hidden": Rule("The judge's clock measured more time than the process reports.", "judge", _hidden),
    "roof": Rule("It is faster than the machine allows.", "judge", _roof),
    "no-launch": Rule("No kernel is launched.", "process", _no_launch),
    "host": Rule(
        "Operands of launches, or results, hold values that come from neither the inputs nor launches.",
        "process",
        _host,
    ),
    "torch": Rule("Torch operators compute during a call.", "process", _torch),
    "inputs": Rule(
        "It changes an input that the task does not allow it to change.",
        "process",
        _each("changed", "the candidate overwrites its inputs: array {}"),
    ),
    "lazy": Rule(
        "A result is not a plain array.", "process", _each("lazy", "a result is an object that may compute later: {}")
    ),
    "streams": Rule("It leaves work on streams that the caller's stream does not wait for.", "process", _streams),
    "threads": Rule("It starts threads or timers, or handles signals.", "process", _threads),
    "replaced": Rule(
        "It replaces functions of Python, NumPy, torch, Triton or the judge.",
        "process",
        _each("replaced", "replaced since the candidate was loaded: {}"),
    ),
    "memory": Rule("It inspects frames, all objects, or a process's memory.", "process", _notes("memory")),
    "harness": Rule(
        "It reads or imports the judge, or looks for the launches that it records.", "process", _notes("harness")
    ),
    "native": Rule("It calls native code directly.", "process", _notes("native")),
    "process": Rule("It starts or signals processes.", "process", _notes("process")),
    "network": Rule("It opens sockets.", "process", _notes("network")),
}  # fmt: skip
"""The rules, by code."""

HONEST_MISTAKES = {"error", "ended", "late", "results", "wrong"}
"""Findings that also occur with kernels that do not cheat."""
