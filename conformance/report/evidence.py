"""Formats evidence for readers, and the command that repeats a check."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from triton_porting_kit.conformance.levels import selecting
from triton_porting_kit.conformance.public.entries import VERDICTS
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report import code_objects
from triton_porting_kit.conformance.status import Evidence, holds


@dataclass(frozen=True)
class Exhibit:
    """An item of evidence, formatted for readers."""

    holds: bool
    what: str
    facts: tuple[tuple[str, str], ...] = ()
    """Names and values."""
    text: str = ""
    """A message, possibly of several lines."""
    details: tuple[tuple[str, str], ...] = ()
    """Titles and long texts, such as a traceback or output."""


def exhibit(item: Evidence) -> Exhibit:
    """Format an item of evidence. Unknown fields are shown as well."""
    make = {
        "comparison": _comparison,
        "expectation": _expectation,
        "compiled": _compiled,
        "fallbacks": _fallbacks,
        "times": _times,
        "caught": _caught,
    }
    found = make.get(item["kind"], _mishap)(item)
    recorded = tuple((name, str(item[name])) for name in _RECORDED if name in item)
    return replace(found, facts=(*found.facts, *recorded))


_RECORDED = ("captured", "replay", "when run again")
"""Fields that ``--capture-failures`` adds to items of any kind."""


def _comparison(item: Evidence) -> Exhibit:
    elements, differ = item["elements"], item["differ"]
    facts = [("elements that differ", f"{differ:,} of {elements:,}"), ("allowed", str(item["rule"]))]
    if "worst_ulp" in item:
        facts.append(("largest distance", f"{item['worst_ulp']} ulp"))
    if differ:
        facts += [
            ("first that differs", f"[{', '.join(map(str, item.get('index', ())))}]"),
            ("actual", str(item.get("actual", ""))),
            ("expected", str(item.get("expected", "")) or "not a single value"),
        ]
    text = "" if elements else "nothing was compared, so nothing is shown"
    return Exhibit(holds(item), str(item["what"]), tuple(facts), text)


def _expectation(item: Evidence) -> Exhibit:
    stage = [("stage", str(item["stage"]))] if item.get("stage") else []
    return Exhibit(holds(item), str(item["what"]), tuple(stage), str(item.get("message", "")))


def _compiled(item: Evidence) -> Exhibit:
    return Exhibit(
        holds(item),
        f"{item['what']} was compiled",
        (("binary", f"{item['bytes']:,} bytes"), *code_objects.facts(item)),
    )


def _fallbacks(item: Evidence) -> Exhibit:
    counts = item["counts"]
    return Exhibit(
        True, f"{item['what']}: {sum(counts.values())}", tuple((n, str(c)) for n, c in sorted(counts.items()))
    )


def _times(item: Evidence) -> Exhibit:
    facts = [("seconds", f"{item['seconds']:.3g}")]
    if item.get("eager"):
        facts.append(("torch eager, seconds", f"{item['eager']:.3g}"))
    return Exhibit(True, str(item["what"]), tuple(facts))


def _caught(item: Evidence) -> Exhibit:
    return Exhibit(True, str(item["what"]), text="\n".join(item["messages"]))


_LONG = ("traceback", "output", "stdout", "stderr", "stack", "dump", "program", "script", "source")


def _mishap(item: Evidence) -> Exhibit:
    what = {
        "process": "the worker process ended",
        "harness": "the suite itself failed",
        "upstream": _upstream(str(item.get("what"))),
        "finding": f"with checked accesses, a kernel of {item.get('what')} leaves its arguments",
    }
    title = what.get(item["kind"]) or str(item.get("type", item["kind"]))
    if item["kind"] == "harness" and item.get("type"):
        title = f"{title}: {item['type']}"
    known = ("kind", "what", "type", "message", *_RECORDED)
    short = {k: v for k, v in item.items() if k not in known and not _is_long(k, v) and v not in (None, "")}
    long = [(k, str(v)) for k, v in item.items() if k not in known and _is_long(k, v) and v]
    facts = tuple((key.replace("_", " "), _short(key, value)) for key, value in short.items())
    return Exhibit(False, title, facts, str(item.get("message", "")), tuple(long))


def _upstream(what: str) -> str:
    if what in VERDICTS:
        return f"not the kit's fault: {VERDICTS[what]}"
    return f"torch fails in the same way without the backend: {what}"


def _short(key: str, value: Any) -> str:
    return f"{value} s" if key in ("timeout", "seconds") and value is not True else str(value)


def _is_long(key: str, value: object) -> bool:
    return key in _LONG or (isinstance(value, str) and (len(value) > 200 or "\n" in value))


def in_text(record: Record) -> str:
    """All evidence of a check as plain text."""
    lines = []
    for item in record.evidence:
        shown = exhibit(item)
        lines.append(f"{'ok  ' if shown.holds else 'WRONG'} {shown.what}")
        lines += [f"      {name}: {value}" for name, value in shown.facts]
        lines += [f"      {line}" for line in shown.text.splitlines()]
        for title, text in shown.details:
            lines += [f"      {title}:", *(f"        {line}" for line in text.splitlines())]
    return "\n".join(lines)


def rerun(run: Mapping[str, Any], name: str) -> str:
    """The command that repeats a check with the same options."""
    words = ["tpk", "conform", "--backend", str(run["backend"])]
    options = run["options"]
    if source := run["profile"].get("source"):
        words += ["--profile", str(source)]
    if options.get("compile_only"):
        words += ["--compile-only"]
        words += ["--target", str(options["target"])] if options.get("target") else []
    if run["seed"]:
        words += ["--seed", str(run["seed"])]
    return shlex.join([*words, *selecting(name)])
