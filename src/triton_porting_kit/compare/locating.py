"""Finding the cause of a wrong result: the program that stores it, the stage that is wrong, and the operation.

The intermediate values of a backend are not visible. The backend therefore compiles the kernel again, from the
reference's structured form changed to store every value of one program. If the fault is in an earlier stage, the
backend's own structured form runs on the reference in the same way. Only observed facts are reported.
"""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triton_porting_kit.compare import on_backend
from triton_porting_kit.compare.judging import Array, Element, Judgement, Part, Status, compare, parts_of
from triton_porting_kit.compare.on_backend import Step
from triton_porting_kit.compare.probes import CANARY, GATE, LOOPS, STORE_SHIFT, Probe, instrument, witness
from triton_porting_kit.compare.reference import (
    Argument,
    Kernel,
    Kernels,
    Memory,
    NotCompared,
    Variation,
    own_slots,
)
from triton_porting_kit.compiler.locations import source_location
from triton_porting_kit.errors import PortingKitError
from triton_porting_kit.replay import Capture
from triton_porting_kit.replay.comparison import element_type
from triton_porting_kit.replay.manifest import Slot
from triton_porting_kit.replay.settings import FOLDER

_SECONDS = 300.0
"""The time limit for running versions of a kernel on the backend."""

Program = tuple[int, int, int]


@dataclass(frozen=True)
class Operation:
    """The first operation of a program whose value is wrong."""

    name: str
    place: str
    element: Element
    shape: tuple[int, ...]
    instead: str = ""
    """The operation that the backend's form has in its place, if it is a different one."""


@dataclass(frozen=True)
class Cause:
    """The cause of a wrong result. Fields that could not be determined are empty."""

    program: Program | None = None
    """The program that stores the first wrong element."""
    store: str = ""
    """The line of the kernel with this store."""
    stage: str = ""
    """A sentence about the stages."""
    operation: Operation | None = None
    unknown: str = ""
    """Why the operation was not found."""
    notes: tuple[str, ...] = field(default=())


def locate(capture: Capture, judgement: Judgement, kernels: Kernels, environment: Mapping[str, str]) -> Cause:
    """Find the cause of a wrong launch. If something cannot be determined, the result says so; this does not raise."""
    try:
        kernel = kernels.of(capture)
        cause, moment = _store(capture, kernel, judgement.arrays[0])
    except (NotCompared, PortingKitError) as error:
        return Cause(unknown=f"the store of the element was not found: {error}")
    if moment is None:
        return replace(cause, unknown="it is not known which program stores the element")
    if capture.manifest.layout.get("hidden"):
        return replace(cause, unknown="the backend's launcher adds arguments of its own")
    try:
        return _operation(capture, kernel, kernels, environment, cause, moment)
    except (NotCompared, PortingKitError) as error:
        return replace(cause, unknown=str(error))


@dataclass(frozen=True)
class _Moment:
    """The program that stores the first wrong element, and the iterations of the loops around the store."""

    program: int
    loops: tuple[int, ...]
    iterations: tuple[int, ...]

    def arguments(self) -> list[Argument]:
        """The additional arguments of a kernel that stores the values at this moment."""
        return [value.to_bytes(8, "little", signed=True) for value in (self.program, *self.iterations)]


def _store(capture: Capture, kernel: Kernel, array: Array) -> tuple[Cause, _Moment | None]:
    """Find the program and the store that write the first wrong element of an array."""
    manifest = capture.manifest
    slots = own_slots(manifest)
    chosen = [n for n, slot in enumerate(slots) if slot.buffer == array.buffer and slot.is_pointer]
    memory: list[NDArray[np.uint8]] = []
    for number in chosen:
        slot = slots[number]
        count = (manifest.buffers[array.buffer].size - (slot.buffer_offset or 0)) // _bytes(slot)
        memory += [np.zeros(8 * count, np.uint8) for _ in range(1 + LOOPS)]

    def change(module: Any) -> None:
        witness(module, chosen)

    left = kernel.run(capture, name=f"witness {chosen}", change=change, more=memory)[len(manifest.buffers) :]
    for position, number in enumerate(chosen):
        slot = slots[number]
        index = (array.byte - (slot.buffer_offset or 0)) // _bytes(slot)
        noted, *more = (words.view(np.int64) for words in left[position * (1 + LOOPS) :][: 1 + LOOPS])
        if not 0 <= index < len(noted) or noted[index] == 0:
            continue
        word = int(noted[index])
        program = (word & ((1 << STORE_SHIFT) - 1)) - 1
        store = witness(kernel.module(), chosen)[word >> STORE_SHIFT]
        x, y, _ = manifest.grid
        cause = Cause(
            program=(program % x, program // x % y, program // (x * y)), store=_line(store.location)
        )
        iterations = tuple(int(words[index]) for words in more[: len(store.loops)])
        return cause, _Moment(program, store.loops, iterations)
    return Cause(notes=("no plain store of the reference writes the element",)), None


def _bytes(slot: Slot) -> int:
    return element_type(slot.type).itemsize


def _line(location: str) -> str:
    place = source_location(location)
    return f"{place.file}:{place.line}" if place else ""


def _operation(
    capture: Capture,
    kernel: Kernel,
    kernels: Kernels,
    environment: Mapping[str, str],
    cause: Cause,
    moment: _Moment,
) -> Cause:
    probed = _Probed(kernel, moment)
    with tempfile.TemporaryDirectory(prefix="tpk-compare-") as name:
        folder = Path(name)
        steps = [Step("plain", kernel.text), Step("probed", probed.text, probed.arguments)]
        on_backend.write(folder, capture.folder, steps)
        trouble = _try(folder, environment)
        again = on_backend.reproduced(folder)
        plain, stored = on_backend.left_by(folder, "plain"), on_backend.left_by(folder, "probed")
        form, stages = on_backend.own_form(folder), on_backend.stages(folder)
    if again is False:
        cause = replace(cause, notes=("a replay of the recorded binary gives a different result",))
    if plain is None and not form:
        return replace(cause, unknown=f"the kernel could not be run again: {trouble}")
    judge = _Judge(capture, kernel)
    if plain is not None and judge.whole(plain).status is Status.DIFFERS:
        names = ", ".join(stages) or "the later stages"
        stage = (
            f"the fault is after the backend's stage {on_backend.STAGE}: compiled from the reference's structured "
            f"form, the result is wrong too. The fault is in {names} or in the device"
        )
        cause = replace(cause, stage=stage)
        if stored is None:
            return replace(cause, unknown=f"the kernel that stores its values could not be run: {trouble}")
        if judge.whole(stored).status is not Status.DIFFERS:
            return replace(cause, unknown="the kernel that also stores its values gives the right result")
        return _first(cause, judge.probes(probed, stored), probed)
    if not form:
        return replace(cause, unknown=f"the backend's stages could not be run: {trouble}")
    other = kernels.kernel(capture, form)
    try:
        left = other.run(capture)
        if judge.whole(left).status is not Status.DIFFERS:
            text = (
                "compiled again, the kernel gives the right result: the fault is in the launch, in the memory that it "
                "had, or in concurrent work"
            )
            return replace(cause, stage=text if plain is not None else "", unknown=trouble)
        cause = replace(cause, stage=f"the backend's own stage {on_backend.STAGE} is wrong, or one before it")
        theirs = _Probed(other, moment)
        matched, instead = _aligned(
            probed,
            theirs,
            other.run(capture, name=theirs.name, change=theirs.change, more=theirs.arguments)[-1],
        )
        return _first(cause, judge.probes(matched, [*left, matched.memory]), matched, instead)
    finally:
        other.unload()


def _first(cause: Cause, judgement: Judgement, probed: _Probed, instead: Mapping[int, str] = {}) -> Cause:
    if judgement.status is not Status.DIFFERS:
        why = judgement.reason or "all values that could be compared are right"
        return replace(
            cause, unknown=f"{why}; of a loop without the store, only the last iteration could be compared"
        )
    wrong = {probed.probes[int(array.name)].operation for array in judgement.arrays}
    if CANARY in wrong:
        return replace(
            cause,
            unknown="constants that the kernel stores in addition do not arrive either: suspect the store itself",
        )
    if GATE in wrong:
        text = "no program has this program's number: suspect tpk.program_id or tpk.num_programs"
        return replace(cause, unknown=text)
    array = judgement.arrays[0]
    number = int(array.name)
    probe = probed.probes[number]
    operation = Operation(
        probe.operation, _line(probe.location), array.elements[0], probe.shape, instead.get(number, "")
    )
    return replace(cause, operation=operation)


class _Probed:
    """A kernel that stores the values of one program."""

    def __init__(self, kernel: Kernel, moment: _Moment) -> None:
        """Raises `NotCompared` if the kernel does not have the loops of the moment."""
        self._loops = moment.loops
        module = kernel.module()
        try:
            self.probes: Sequence[Probe] = instrument(module, self._loops)
        except IndexError as error:
            raise NotCompared("the loops of the backend's form differ from the reference's") from error
        self.text = str(module.operation.get_asm(enable_debug_info=True))
        self.name = f"probes {self._loops}"
        size = max((probe.offset + probe.size for probe in self.probes), default=8)
        self.memory = np.zeros(size, np.uint8)
        self.numbers = moment.arguments()
        self.arguments: list[Argument] = [*self.numbers, self.memory]

    def change(self, module: Any) -> None:
        """Change a module to store its values."""
        instrument(module, self._loops)


def _aligned(ours: _Probed, theirs: _Probed, memory: NDArray[np.uint8]) -> tuple[_Probed, dict[int, str]]:
    """Our probes that match theirs, with their values; and by number, their operations that differ from ours."""

    def keys(probed: _Probed) -> list[tuple[Any, ...]]:
        return [(probe.location, probe.type, probe.shape) for probe in probed.probes]

    found = difflib.SequenceMatcher(None, keys(ours), keys(theirs), autojunk=False)
    instead: dict[int, str] = {}
    matched: set[int] = set()
    for i, j, count in found.get_matching_blocks():
        for k in range(count):
            mine, other = ours.probes[i + k], theirs.probes[j + k]
            ours.memory[mine.offset : mine.offset + mine.size] = memory[
                other.offset : other.offset + other.size
            ]
            matched.add(i + k)
            if mine.operation != other.operation:
                instead[i + k] = other.operation
    ours.probes = [
        probe if number in matched else replace(probe, size=0) for number, probe in enumerate(ours.probes)
    ]
    return ours, instead


class _Judge:
    """Judges the results of versions of a kernel against the reference."""

    def __init__(self, capture: Capture, kernel: Kernel) -> None:
        self._capture, self._kernel = capture, kernel

    def whole(self, memory: Memory) -> Judgement:
        """Judge the results of the launch."""
        count = len(self._capture.manifest.buffers)
        return compare(
            self._kernel,
            parts_of(self._capture.manifest),
            memory[:count],
            lambda variation: self._kernel.run(self._capture, variation),
        )

    def probes(self, probed: _Probed, memory: Memory) -> Judgement:
        """Judge the values of a program. Each is an array, named by its number in the order of the kernel."""
        count = len(self._capture.manifest.buffers)
        parts = [
            Part(
                Slot(str(number), f"*{probe.type}", 0, 8, 0, count, probe.offset),
                element_type(f"*{probe.type}"),
                probe.offset,
                probe.size // element_type(f"*{probe.type}").itemsize,
            )
            for number, probe in enumerate(probed.probes)
        ]
        empty: list[Argument] = [*probed.numbers, np.zeros_like(probed.memory)]

        def run(variation: Variation | None) -> Memory:
            return self._kernel.run(
                self._capture, variation, name=probed.name, change=probed.change, more=empty
            )

        return compare(self._kernel, parts, memory, run)


def _try(folder: Path, environment: Mapping[str, str]) -> str:
    """Run the steps in a folder on the backend. Returns one line about the failure; empty if there was none."""
    command = [sys.executable, "-m", on_backend.__name__, str(folder)]
    own = {name: value for name, value in os.environ.items() if name != FOLDER}
    try:
        done = subprocess.run(
            command, env={**own, **environment}, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"it took longer than {_SECONDS:.0f} s"
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if done.returncode > 0 and lines else f"the process ended with status {done.returncode}"
