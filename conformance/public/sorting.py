"""Whose fault a failure is: rules for errors, first match first. What no rule knows is the kit's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from triton_porting_kit.conformance.public.entries import Known
from triton_porting_kit.conformance.status import Evidence, holds

KIT = "kit"
OUT_OF_BOUNDS = "MemoryAccessError"
"""The exception of a kernel that leaves its arguments where accesses are checked."""


@dataclass(frozen=True)
class Rule:
    """A pattern for ``Type: message`` of an exception, and for the last lines of its traceback."""

    verdict: str
    error: str
    place: str = ""
    """A pattern for the file in which it was raised; empty: any."""
    reason: str = ""


RULES = (
    Rule("gpu", r"^CudaNotMapped", reason="asks for a part of torch.cuda that only a GPU has"),
    Rule("gpu", r"CUDA_HOME|nvcc|No CUDA GPUs|is not compiled with CUDA|Torch not compiled with CUDA"),
    Rule("gpu", r"(sm_?(8|9|10|12)\d|compute capability|SM ?(8|9|10)\d|Hopper|Blackwell)"),
    Rule(
        "gpu", r"inline assembly|the instruction `[\w.]+` is not among", reason="inline PTX beyond the table"
    ),
    Rule("gpu", r"Invalid mt19937 state", reason="writes seed and offset into the state of CUDA's generator"),
    Rule("gpu", r"Gluon kernels", reason="a Gluon kernel, written for one GPU"),
    Rule("release", r"^(ImportError|ModuleNotFoundError)", reason="a module or name that is not there"),
    Rule(
        "release",
        r"^AttributeError: module '?(triton|torch|transformers)[\w.]*'? has no attribute",
        reason="a name of another release",
    ),
    Rule("release", r"Block pointers have been removed", reason="block pointers, which Triton 3.9 has not"),
    Rule(
        "package",
        r"must be on (a )?(cuda|CUDA|GPU)|is not on (a )?GPU",
        reason="asks for the device type `cuda`",
    ),
    Rule(
        "package",
        r"^AssertionError",
        r"^(?!triton/|torch/|triton_porting_kit/)",  # paths begin at the package
        "an assertion of its own",
    ),
)
"""For exceptions."""


def verdict_of(evidence: Iterable[Evidence], known: Known | None) -> tuple[str, str]:
    """The verdict on a case, and its reason: of `entries.VERDICTS`."""
    for item in evidence:
        if item["kind"] == "process":
            verdict = "timeout" if item.get("timeout") else "crash"
            return (known.verdict, known.reason) if known else (verdict, str(item["message"]))
        if item["kind"] == "harness":
            return "harness", str(item["message"])
        if item["kind"] == "error":
            if known:
                return known.verdict, known.reason
            return _of_error(item)
        if item["kind"] == "comparison" and not holds(item):
            if known:
                return known.verdict, known.reason
            return KIT, f"{item['what']}: {item.get('message', '')}"
    return "right", ""


def _of_error(item: Evidence) -> tuple[str, str]:
    error, trace = f"{item['type']}: {item['message']}", str(item.get("traceback", ""))
    places = re.findall(r'File "([^"]+)"', trace)
    for rule in RULES:
        if re.search(rule.error, error) and (not rule.place or re.search(rule.place, (places or [""])[-1])):
            first = error.splitlines()[0][:200]
            return rule.verdict, f"{rule.reason}: {first}" if rule.reason else first
    return KIT, error.splitlines()[0][:300] if error else ""
