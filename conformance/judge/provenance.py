"""Determines whether the operands of launches come from the inputs, from other launches, or from elsewhere.

A candidate may compute with NumPy and copy the results with a kernel. Therefore one process records its launches, as
``tpk capture`` does for drivers made with the kit, with the memory before and after each launch. Values that a launch
reads, and values of results, must occur in the inputs, in weights or in the memory that earlier launches wrote; they
may be moved, converted and sliced. A small number of other values is allowed, for constants. An array that is the same
in two calls with different inputs is a table and does not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from triton_porting_kit.conformance.judge.task import Call
from triton_porting_kit.conformance.rounding import from_float64
from triton_porting_kit.conformance.types import KINDS, Array, Kind, from_bits
from triton_porting_kit.errors import CaptureError, InsecureCacheError
from triton_porting_kit.replay import Capture, launches_in, read

FOLDER = "captures"
FEW = 16
"""The number of distinct values of unknown origin that an array may have."""
PART = 0.02
"""The share of the distinct values of an array that may be of unknown origin."""


class Known:
    """The values of known origin, as float64."""

    def __init__(self, call: Call) -> None:
        self._parts = [np.unique(np.asarray(leaf.wide, np.float64)) for leaf in call.leaves]

    def add(self, values: Array) -> None:
        self._parts.append(np.unique(np.asarray(values, np.float64)))

    def foreign(self, values: Array, kind: Kind) -> int:
        """The number of distinct values of unknown origin in an array of `kind`; 0 if there are few."""
        found = np.unique(np.asarray(values, np.float64))
        found = found[~np.isnan(found)]
        if len(found) <= FEW:
            return 0
        known = np.unique(np.concatenate(self._parts))
        if kind.is_float:
            known = np.unique(np.concatenate([known, from_float64(known, kind).astype(np.float64)]))
        count = int(np.sum(~np.isin(found, known)))
        return count if count > max(FEW, PART * len(found)) else 0


def look(folder: Path, done: set[Path], call: Call, results: Sequence[Array] | None) -> dict[str, Any]:
    """Analyse the recorded launches of one call: those in `folder` that are not in `done`.

    Returns ``launches``, their number; ``foreign``, the arrays with values of unknown origin, by kernel and argument,
    with the number of these values and a digest of the array; and ``why_not``, if the recording cannot be read.
    """
    try:
        captures = [read(place) for place in launches_in(folder) if place not in done]
    except (CaptureError, InsecureCacheError) as error:
        return {"launches": 0, "foreign": [], "why_not": str(error)[:300]}
    done |= {capture.folder for capture in captures}
    known = Known(call)
    foreign: list[dict[str, Any]] = []
    for number, capture in enumerate(captures):
        for name, kind, before, _ in _arrays(capture):
            if count := known.foreign(before, kind):
                foreign.append(_entry(f"{number}: {capture.manifest.kernel.name}", name, count, before))
        for _, _, before, after in _arrays(capture):
            if after is not before:
                known.add(after)
    for number, (values, (kind, _)) in enumerate(
        zip(results or (), call.results, strict=results is not None)
    ):
        if count := known.foreign(values, kind):
            foreign.append(_entry("", f"result {number}", count, values))
    return {"launches": len(captures), "foreign": foreign, "why_not": ""}


def _entry(kernel: str, name: str, count: int, values: Array) -> dict[str, Any]:
    digest = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]
    return {
        "kernel": kernel,
        "argument": name,
        "foreign": count,
        "elements": int(values.size),
        "digest": digest,
    }


def _arrays(capture: Capture) -> Iterator[tuple[str, Kind, Array, Array]]:
    """The arrays of a launch: name, type, contents before and after (the same object if nothing changed)."""
    for slot in capture.manifest.slots:
        kind = KINDS.get(slot.type.lstrip("*").removeprefix("k")) if slot.is_pointer else None
        if kind is None or slot.buffer is None:
            continue
        buffer = capture.manifest.buffers[slot.buffer]
        size = kind.storage.itemsize
        start = (slot.buffer_offset or 0) % size
        before = _values(capture.content(buffer.before)[start:], kind)
        changed = buffer.after is not None and buffer.after != buffer.before
        after = _values(capture.content(buffer.after)[start:], kind) if changed and buffer.after else before
        yield slot.name, kind, before, after


def _values(raw: bytes, kind: Kind) -> Array:
    bits = np.frombuffer(raw[: len(raw) // kind.storage.itemsize * kind.storage.itemsize], kind.storage)
    if kind.bits == 1:
        bits = np.frombuffer(raw, np.uint8) != 0
    return np.asarray(from_bits(bits, kind))
