"""Determines whether the operands of launches come from the inputs, from other launches, or from elsewhere.

A candidate may compute with NumPy and copy the results with a kernel. Therefore one process records its launches, as
``tpk capture`` does for drivers made with the kit, with the memory before and after each launch. Values that a launch
reads, and values of results, must occur in the inputs, in weights or in the memory that earlier launches wrote; they
may be moved, converted and sliced. Two calls with different inputs are compared: memory that is the same in both is a
table. It does not count, and it explains nothing, since only the host can have put its values in an order that depends
on the inputs. `scalars` does the same for arguments that are no arrays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from triton_porting_kit.conformance.judge import scalars
from triton_porting_kit.conformance.judge.task import Call
from triton_porting_kit.conformance.rounding import from_float64
from triton_porting_kit.conformance.types import KINDS, Array, Kind, from_bits
from triton_porting_kit.errors import CaptureError, InsecureCacheError
from triton_porting_kit.replay import Capture, launches_in, read

FEW = 16
"""The number of distinct values of unknown origin that the arrays of a call may have, all together."""
SHOWN = 50
"""The number of arrays and of scalars that the evidence lists."""


class Known:
    """The values of known origin, as float64."""

    def __init__(self, call: Call) -> None:
        leaves = [np.unique(np.asarray(leaf.wide, np.float64)) for leaf in call.leaves]
        numbers = np.asarray(scalars.numbers_in(call.arguments), np.float64)
        self._parts = [*leaves, numbers]
        self._sorted = {"": np.empty(0)}
        """All values, and those rounded to a type, by its name."""

    def add(self, values: Array) -> None:
        self._parts.append(np.asarray(values, np.float64).ravel())

    def foreign(self, values: Array, kind: Kind) -> Array:
        """The distinct values of unknown origin in an array of `kind`."""
        if self._parts:
            self._sorted = {"": np.unique(np.concatenate([self._sorted[""], *self._parts]))}
            self._parts.clear()
        found = np.unique(np.asarray(values, np.float64))
        found = _without(found[~np.isnan(found)], self._sorted[""])
        if kind.is_float and len(found):
            if kind.name not in self._sorted:
                rounded = from_float64(self._sorted[""], kind)
                self._sorted[kind.name] = np.unique(rounded.astype(np.float64))
            found = _without(found, self._sorted[kind.name])
        return found


def _without(values: Array, known: Array) -> Array:
    """The values that are not among others, which are sorted."""
    known = known[~np.isnan(known)]
    if not len(known):
        return values
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.asarray(values[known[places] != values])


@dataclass
class Recording:
    """The recorded launches of one call."""

    call: Call
    results: Sequence[Array]
    made: int
    """The number of launches that the process reports."""
    places: list[Path] = field(default_factory=list)
    why_not: str = ""
    """Why the recording cannot be read."""
    contents: set[str] = field(default_factory=set)
    """The digests of all recorded memory, before and after launches."""
    written: set[str] = field(default_factory=set)
    """The digests of memory that launches changed."""

    @classmethod
    def of(cls, folder: Path, done: set[Path], call: Call, results: Sequence[Array], made: int) -> Recording:
        """The recording of one call: the launches in `folder` that are not in `done`, to which they are added."""
        found = cls(call, results, made)
        found.contents |= {_digest(values) for values in results}
        try:
            found.places = [place for place in launches_in(folder) if place not in done]
            done.update(found.places)
            for place in found.places:
                for buffer in read(place).manifest.buffers:
                    after = buffer.after or buffer.before
                    found.contents |= {buffer.before.sha256, after.sha256}
                    found.written |= {after.sha256} - {buffer.before.sha256}
        except (CaptureError, InsecureCacheError, OSError) as error:
            found.why_not = str(error)[:300]
        return found


def unread(why_not: str) -> dict[str, Any]:
    """The evidence about a call that could not be recorded."""
    return {"launches": 0, "made": 0, "why_not": why_not, "foreign": [], "values": 0, **scalars.NOTHING}


def compare(first: Recording, second: Recording) -> list[dict[str, Any]]:
    """The evidence about two calls: for each ``launches``, the number that was recorded, ``made``, and ``why_not``.

    ``foreign`` lists arrays with values of unknown origin that the other call does not have, and ``values`` is the
    number of distinct ones; `scalars.differences` describes the rest.
    """
    found = [_Analysis(one, other) for one, other in ((first, second), (second, first))]
    differ = scalars.differences(
        *((analysis.scalars, analysis.recording.call) for analysis in found), shown=SHOWN
    )
    return [analysis.evidence() | more for analysis, more in zip(found, differ, strict=True)]


class _Analysis:
    """The arrays and scalars of unknown origin of one call."""

    def __init__(self, recording: Recording, other: Recording) -> None:
        self.recording, self._other = recording, other
        self._known = Known(recording.call)
        self._foreign: list[dict[str, Any]] = []
        self._values: list[Array] = [np.empty(0)]
        self.scalars = scalars.Scalars(recording.call)
        try:
            for number, place in enumerate(recording.places):
                self._launch(number, read(place))
        except (CaptureError, InsecureCacheError, OSError) as error:
            recording.why_not = str(error)[:300]
        results = zip(recording.results, recording.call.results, strict=True)
        for number, (values, (kind, _)) in enumerate(results):
            self._look("", f"result {number}", values, kind, _digest(values))

    def _launch(self, number: int, capture: Capture) -> None:
        name = f"{number}: {capture.manifest.kernel.name}"
        arrays = list(_arrays(capture))
        for argument, kind, digest, _, before, _ in arrays:
            self._look(name, argument, before, kind, digest)
        self.scalars.look(name, capture, self._known.foreign)
        tables = self.recording.written & self._other.written
        for _, _, _, digest, before, after in arrays:
            if after is not before and digest not in tables:
                self._known.add(after)

    def _look(self, kernel: str, argument: str, values: Array, kind: Kind, digest: str) -> None:
        if digest in self._other.contents:
            return
        found = self._known.foreign(values, kind)
        if len(found):
            self._values = [np.unique(np.concatenate([*self._values, found]))]
            entry = {
                "kernel": kernel,
                "argument": argument,
                "foreign": len(found),
                "elements": int(values.size),
            }
            self._foreign.append(entry)

    def evidence(self) -> dict[str, Any]:
        recording = self.recording
        largest = sorted(self._foreign, key=lambda entry: -entry["foreign"])
        return {
            "launches": len(recording.places),
            "made": recording.made,
            "why_not": recording.why_not,
            "foreign": largest[:SHOWN],
            "values": len(self._values[0]),
        }


def _digest(values: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def _arrays(capture: Capture) -> Iterator[tuple[str, Kind, str, str, Array, Array]]:
    """The arrays of a launch: name, type, digests of the memory and contents, before and after (the same object if
    nothing changed)."""
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
        digests = buffer.before.sha256, (buffer.after or buffer.before).sha256
        yield slot.name, kind, *digests, before, after


def _values(raw: bytes, kind: Kind) -> Array:
    bits = np.frombuffer(raw[: len(raw) // kind.storage.itemsize * kind.storage.itemsize], kind.storage)
    if kind.bits == 1:
        bits = np.frombuffer(raw, np.uint8) != 0
    return np.asarray(from_bits(bits, kind))
