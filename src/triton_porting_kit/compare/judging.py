"""Comparing the memory after a launch with the reference's.

An element with the reference's bits is right. An element with other bits is right if rounding explains the difference:
its distance from the float64 result must not exceed `FACTOR` times the largest distance that rounding the kernel's
operations causes. This distance is measured by running the float64 version of the kernel with simulated random
roundings (`widening`), `FIRST` times, and `MORE` times before an element counts as wrong. If these runs contradict each
other, or the result depends on the order of programs, no element counts as wrong.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triton_porting_kit.compare.reference import Kernel, Kernels, Memory, NotCompared, Variation, variations
from triton_porting_kit.driver.dtypes import ALL, DType, decode
from triton_porting_kit.replay import Capture
from triton_porting_kit.replay.comparison import element_type
from triton_porting_kit.replay.manifest import Manifest, Slot

FACTOR = 8.0
"""How much further from float64 a correct backend may be than all runs with simulated roundings."""
FIRST, MORE = 6, 26
"""The number of such runs if an element differs from the reference, and of further runs before it counts as wrong."""
EXAMPLES = 5
"""The number of wrong elements of an array that are described."""

Indices = NDArray[np.int64]
Float64 = NDArray[np.float64]


class Status(enum.StrEnum):
    """The status of one launch."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNDECIDED = "undecided"
    """It differs from the reference, and both may be right."""
    NOT_COMPARED = "not compared"


@dataclass(frozen=True)
class Element:
    """A wrong element; its numbers are text."""

    index: int
    """The index relative to the parameter's pointer."""
    got: str
    reference: str
    float64: str
    """Empty if nothing is rounded, so that the reference is exact."""
    allowed: str
    """The allowed distance from float64; empty if the element must be equal."""


@dataclass(frozen=True)
class Array:
    """An array with wrong elements."""

    name: str
    """The name of the parameter."""
    type: str
    buffer: int
    byte: int
    """The offset of the first wrong element in the buffer."""
    wrong: int
    total: int
    elements: tuple[Element, ...]
    first: int
    last: int
    """The indices of the first and the last wrong element."""


@dataclass(frozen=True)
class Judgement:
    """The result of judging a launch."""

    status: Status
    reason: str = ""
    """Why the launch is undecided, or not compared."""
    arrays: tuple[Array, ...] = ()
    bits: bool = False
    """Whether the memory is identical to the reference's, bit for bit."""
    undecided: int = 0
    """The number of elements that differ and may be right."""


@dataclass
class Part:
    """The elements of one parameter, up to the elements of the next parameter."""

    slot: Slot
    dtype: DType
    start: int
    """The offset in the buffer in bytes."""
    count: int
    differ: Indices = field(default_factory=lambda: np.empty(0, np.int64))
    """The elements that differ from the reference."""

    def bits(self, memory: NDArray[np.uint8]) -> NDArray[Any]:
        """The elements as unsigned integers."""
        size = self.dtype.itemsize
        return memory[self.start : self.start + self.count * size].view(f"u{size}")

    def values(self, memory: NDArray[np.uint8]) -> Float64:
        """The values of the elements that differ; the type is a floating-point type."""
        chosen = self.bits(memory)[self.differ]
        return _floats(chosen, self.dtype)

    def index(self, element: int) -> int:
        return (self.start - (self.slot.buffer_offset or 0)) // self.dtype.itemsize + element


def judge(capture: Capture, kernels: Kernels) -> Judgement:
    """Judge one recorded launch, with the inputs that the backend had."""
    manifest = capture.manifest
    if why := _not_comparable(manifest):
        return Judgement(Status.NOT_COMPARED, why)
    actual = [
        np.frombuffer(capture.content(b.after), np.uint8) for b in manifest.buffers if b.after is not None
    ]
    try:
        kernel = kernels.of(capture)
        return compare(kernel, parts_of(manifest), actual, lambda variation: kernel.run(capture, variation))
    except NotCompared as error:
        return Judgement(Status.NOT_COMPARED, str(error))


Run = Callable[[Variation | None], Memory]
"""Runs a kernel on the reference: in its own types, or in float64."""


def compare(kernel: Kernel, parts: Iterable[Part], actual: Memory, run: Run) -> Judgement:
    """Compare memory with the results of `run`s of a kernel. Raises `NotCompared`."""
    own = run(None)
    differing = [part for part in parts if _find_differences(part, actual, own)]
    if not differing:
        return Judgement(Status.AGREES, bits=all(map(np.array_equal, actual, own)))
    if kernel.depends_on_order:
        reason = f"{kernel.depends_on_order}: their order may decide"
    elif not kernel.varies:
        return _differs([_Exact(part, actual, own) for part in differing], 0)
    elif kernel.cannot_widen:
        reason = f"the allowed error is unknown: {kernel.cannot_widen}"
    else:
        try:
            return _by_float64(run, differing, actual, own)
        except NotCompared as error:
            reason = f"the allowed error is unknown, because the float64 version does not run: {error}"
    return Judgement(Status.UNDECIDED, reason, undecided=sum(part.differ.size for part in differing))


def _not_comparable(manifest: Manifest) -> str:
    if manifest.unresolved:
        first = manifest.unresolved[0]
        return f"the memory of '{first['name']}' is not recorded: {first['why']}"
    if manifest.state == "failed":
        error = manifest.error or {}
        return f"it raised {error.get('type')} on the backend: {error.get('message', '')}"
    if manifest.state != "complete":
        return "it did not return"
    if manifest.notes:
        return manifest.notes[0]
    return ""


# --- differences from the reference ---------------------------------------------------------------------


def parts_of(manifest: Manifest) -> Iterator[Part]:
    """The elements of the buffers of a launch."""
    for number, buffer in enumerate(manifest.buffers):
        slots = sorted((s for s in manifest.slots if s.buffer == number), key=lambda s: s.buffer_offset or 0)
        places = sorted({slot.buffer_offset or 0 for slot in slots})
        for place, end in zip(places, [*places[1:], buffer.size], strict=True):
            here = [slot for slot in slots if (slot.buffer_offset or 0) == place]
            types = {element_type(slot.type) for slot in here}
            dtype = types.pop() if len(types) == 1 else ALL["uint8"]
            start = 0 if place == places[0] else place
            start += (place - start) % dtype.itemsize
            count = max(end - start, 0) // dtype.itemsize
            yield Part(here[0], dtype, start, count)
            for first, last in (
                (0 if place == places[0] else place, start),
                (start + count * dtype.itemsize, end),
            ):
                if last > first:  # These bytes are not a whole element.
                    yield Part(here[0], ALL["uint8"], first, last - first)


def _find_differences(part: Part, actual: Memory, own: Memory) -> bool:
    assert part.slot.buffer is not None
    got, reference = (part.bits(memory[part.slot.buffer]) for memory in (actual, own))
    part.differ = np.flatnonzero(got != reference)
    if part.dtype.is_floating_point and part.differ.size:
        a, b = _floats(got[part.differ], part.dtype), _floats(reference[part.differ], part.dtype)
        part.differ = part.differ[~((a == b) | (np.isnan(a) & np.isnan(b)))]
    return part.differ.size > 0


def _floats(bits: NDArray[Any], dtype: DType) -> Float64:
    values = bits.view(dtype.numpy)
    with np.errstate(all="ignore"):
        return np.asarray(decode(values, dtype) if dtype.minifloat else values, np.float64)


# --- allowed differences --------------------------------------------------------------------------------


class _Exact:
    """Elements that must equal the reference's."""

    def __init__(self, part: Part, actual: Memory, own: Memory) -> None:
        assert part.slot.buffer is not None
        self.part, self._number = part, part.slot.buffer
        self._got, self._own = (part.bits(memory[self._number])[part.differ] for memory in (actual, own))
        self.wrong = np.ones(part.differ.size, bool)
        self.undecided = np.zeros(part.differ.size, bool)

    def look(self, memory: Memory) -> None:
        """Take one more run into account."""

    def element(self, at: int) -> Element:
        """The description of a wrong element."""
        got, own = (_shown(bits[at], self.part.dtype) for bits in (self._got, self._own))
        return Element(self.part.index(int(self.part.differ[at])), got, own, "", "")


class _Stable(_Exact):
    """Integers: an element is wrong if all runs agree and the backend differs."""

    def __init__(self, part: Part, actual: Memory, own: Memory, exact: Memory) -> None:
        super().__init__(part, actual, own)
        self.look(exact)

    def look(self, memory: Memory) -> None:
        found = self.part.bits(memory[self._number])[self.part.differ]
        same = found == self._got
        self.undecided = (self.undecided | (found != self._own)) & ~same
        self.wrong &= ~same & ~self.undecided


class _Near(_Exact):
    """Floating-point numbers: an element is wrong if rounding does not explain its distance from float64."""

    def __init__(self, part: Part, actual: Memory, own: Memory, exact: Memory) -> None:
        super().__init__(part, actual, own)
        self._value = part.values(actual[self._number])
        self._exact = part.values(exact[self._number])
        self._spread = np.zeros(part.differ.size)
        self._take(part.values(own[self._number]))
        self._decide()

    def look(self, memory: Memory) -> None:
        self._take(self.part.values(memory[self._number]))
        self._decide()

    def _take(self, values: Float64) -> None:
        self._spread = np.maximum(self._spread, _distance(values, self._exact))

    @property
    def _allowed(self) -> Float64:
        return FACTOR * self._spread

    def _decide(self) -> None:
        off = _distance(self._value, self._exact)
        vague = ~np.isfinite(self._spread)
        self.undecided = vague & (off > 0)
        self.wrong = (off > self._allowed) & ~vague

    def element(self, at: int) -> Element:
        plain = super().element(at)
        return Element(
            plain.index, plain.got, plain.reference, f"{self._exact[at]:.9g}", f"{self._allowed[at]:.3g}"
        )


def _distance(values: Float64, exact: Float64) -> Float64:
    """The distance of values: 0 if they are equal, including NaN and infinities; infinite if only one is finite."""
    with np.errstate(all="ignore"):
        off = np.abs(values - exact)
    same = (values == exact) | (np.isnan(values) & np.isnan(exact))
    return np.where(same, 0.0, np.where(np.isfinite(off), off, np.inf))


def _by_float64(run: Run, parts: list[Part], actual: Memory, own: Memory) -> Judgement:
    exact = run(Variation())
    arrays: list[Any] = [
        (_Near if part.dtype.is_floating_point else _Stable)(part, actual, own, exact) for part in parts
    ]
    # A run costs as much as the launch. The first few explain most differences.
    for number, variation in enumerate(variations(FIRST + MORE)):
        if number >= FIRST and not any(array.wrong.any() for array in arrays):
            break
        memory = run(variation)
        for array in arrays:
            array.look(memory)
    undecided = int(sum(array.undecided.sum() for array in arrays))
    if any(array.wrong.any() for array in arrays):
        return _differs(arrays, undecided)
    if undecided:
        reason = "the elements depend on rounding, or on operations with an undefined result"
        return Judgement(Status.UNDECIDED, reason, undecided=undecided)
    return Judgement(Status.AGREES)


def _differs(arrays: list[Any], undecided: int) -> Judgement:
    found = []
    for array in arrays:
        places = np.flatnonzero(array.wrong)
        if not places.size:
            continue
        part = array.part
        indices = part.differ[places]
        first = int(indices[0])
        found.append(
            Array(
                name=part.slot.name,
                type=part.slot.type,
                buffer=part.slot.buffer,
                byte=part.start + first * part.dtype.itemsize,
                wrong=len(places),
                total=part.count,
                elements=tuple(array.element(int(at)) for at in places[:EXAMPLES]),
                first=part.index(first),
                last=part.index(int(indices[-1])),
            )
        )
    return Judgement(Status.DIFFERS, arrays=tuple(found), undecided=undecided)


def _shown(bits: Any, dtype: DType) -> str:
    """An element with its bits, as text."""
    array = np.asarray([bits])
    width = 2 * dtype.itemsize
    if dtype.is_floating_point:
        value = float(_floats(array, dtype)[0])
        text = f"{value:.9g}" if math.isfinite(value) else str(value)
    else:
        text = str(array.view(dtype.numpy)[0])
    return f"{text} (0x{int(bits):0{width}x})"
