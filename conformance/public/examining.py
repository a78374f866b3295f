"""Runs each launch of the CPU backend several times, to see whether its result depends on the order of programs.

Programs of a grid run at the same time, so what one stores must not depend on whether another has run. Two things are
tried on copies of the memory that a launch got: all programs in descending order, and each program alone. A result
that depends on the order, or a place that two programs store different values in, is a race, unless atomic operations
are meant to do so.
"""

from __future__ import annotations

import ctypes
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

MOST_PROGRAMS = 256
"""Grids with more programs are not tried program by program, and descend in as many steps."""
MOST_BYTES = 4 << 20
"""So are launches with more memory."""
TOLERANCE = 1e-2
"""What sums of atomic operations may differ by in another order, as a part of the largest value."""

Memory = Any
"""A NumPy array of bytes."""


class Examined:
    """A launcher of the CPU backend that examines the first launch with each grid and set of sizes."""

    def __init__(self, launcher: Any, source: Any, device: Any, report: Callable[[str], None]) -> None:
        self._launcher, self._source, self._device, self._report = launcher, source, device, report
        self._seen: set[tuple[Any, ...]] = set()
        self._atomic = re.search(r"\batomic_\w+\(", _text_of(source)) is not None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launcher, name)

    def __call__(self, *call: Any) -> None:
        x, y, z = call[:3]
        programs = x * y * z
        found = dict(_memories(call[9:]))
        key = (x, y, z, *(memory.nbytes for memory, _ in found.values()))
        if programs < 2 or key in self._seen:
            self._launcher(*call)
            return
        self._seen.add(key)
        self._examine(call, programs, found)

    def _examine(self, call: Sequence[Any], programs: int, found: dict[int, tuple[Memory, Any]]) -> None:
        memories = [memory for memory, _ in found.values()]
        types = [kind for _, kind in found.values()]
        names = self._names(call[9:], list(found))
        before = [memory.copy() for memory in memories]
        self._launcher(*call)
        after = [memory.copy() for memory in memories]
        try:
            self._restore(memories, before)
            step = -(-programs // MOST_PROGRAMS)
            for begin in reversed(range(0, programs, step)):
                self._run(call, begin, begin + step)
            for name, memory, ascending, kind in zip(names, memories, after, types, strict=True):
                where = self._different(memory, ascending, kind)
                if where is not None:
                    self._tell(name, where, "depends on the order in which programs run")
            if step == 1 and sum(memory.nbytes for memory in memories) <= MOST_BYTES:
                self._each_alone(call, programs, memories, before, after, names)
        finally:
            self._restore(memories, after)

    def _each_alone(
        self,
        call: Sequence[Any],
        programs: int,
        memories: list[Memory],
        before: list[Memory],
        after: list[Memory],
        names: list[str],
    ) -> None:
        """Find places that more than one program changes, if the last one does not just store the same again."""
        owners = [np.zeros(memory.nbytes, np.bool_) for memory in memories]
        reported: set[str] = set()
        for program in range(programs):
            self._restore(memories, before)
            self._run(call, program, program + 1)
            for index, memory in enumerate(memories):
                changed = memory != before[index]
                again = changed & owners[index] & (memory != after[index])
                if again.any() and names[index] not in reported and not self._atomic:
                    reported.add(names[index])
                    text = f"is also stored to by program {program}, alone with another value"
                    self._tell(names[index], int(again.argmax()), text)
                owners[index] |= changed

    def _run(self, call: Sequence[Any], begin: int, end: int) -> None:
        with self._device.only_programs(begin, end):
            self._launcher(*call)

    @staticmethod
    def _restore(memories: list[Memory], saved: list[Memory]) -> None:
        for memory, content in zip(memories, saved, strict=True):
            memory[:] = content

    def _different(self, one: Memory, other: Memory, kind: Any) -> int | None:
        """The first byte at which two results differ; None: they do not. Atomic sums may be rounded otherwise."""
        wrong = one != other
        if not wrong.any():
            return None
        if self._atomic and kind is not None and one.nbytes % kind.itemsize == 0:
            a, b = one.view(kind).astype(np.float64), other.view(kind).astype(np.float64)
            largest = np.max(np.abs(b[np.isfinite(b)]), initial=0.0)
            off = ~((np.abs(a - b) <= TOLERANCE * largest) | (a == b) | (np.isnan(a) & np.isnan(b)))
            return int(off.argmax()) * kind.itemsize if off.any() else None
        return int(wrong.argmax())

    def _names(self, arguments: Sequence[Any], addresses: list[int]) -> list[str]:
        named = dict.fromkeys(addresses, "memory")
        for name, value in zip(self._source.fn.arg_names, arguments, strict=False):
            known = _allocation(value)
            if named.get(known[0]) == "memory":
                named[known[0]] = name
        return [named[address] for address in addresses]

    def _tell(self, name: str, byte: int, text: str) -> None:
        function = self._source.fn
        place = f"{inspect.getsourcefile(function.fn)}:{getattr(function, 'starting_line_number', 0)}"
        atomic = "; the kernel has atomic operations" if self._atomic else ""
        self._report(
            f"kernel '{function.__name__}' ({place}): byte {byte} of argument '{name}' {text}{atomic}"
        )


def _text_of(source: Any) -> str:
    """The kernel's file: helpers with atomic operations are there, or are Triton's own."""
    try:
        with open(inspect.getsourcefile(source.fn.fn) or "", encoding="utf-8") as file:
            return file.read()
    except OSError:
        return str(getattr(source.fn, "src", ""))


def _memories(arguments: Sequence[Any]) -> Iterator[tuple[int, tuple[Memory, Any]]]:
    """The allocations of the arguments by address, as bytes, with the type of elements if they are floats."""
    for value in arguments:
        value = getattr(value, "base", value)  # a tensor descriptor's
        address, size = _allocation(value)
        if size:
            raw = (ctypes.c_uint8 * size).from_address(address)
            yield address, (np.ctypeslib.as_array(raw), _float_of(value))


def _allocation(value: Any) -> tuple[int, int]:
    """Address and size in bytes of the whole storage of a tensor; of other values (0, 0)."""
    if not hasattr(value, "untyped_storage"):
        return 0, 0
    storage = value.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def _float_of(value: Any) -> Any:
    name = str(getattr(value, "dtype", "")).removeprefix("torch.")
    return np.dtype(name) if name in ("float16", "float32", "float64") else None


def examine_launches(report: Callable[[str], None]) -> None:
    """Let every launcher that the active driver makes from now on examine its launches. `report` gets what it finds.

    Its device must have `only_programs`, and memory that this process can read, as those of the CPU backend.
    """
    from triton.runtime.driver import driver

    kind = type(driver.active)
    original = kind.launcher_cls

    def launcher_cls(active: Any, source: Any, metadata: Any) -> Any:
        return Examined(original(active, source, metadata), source, active.device, report)

    kind.launcher_cls = launcher_cls
