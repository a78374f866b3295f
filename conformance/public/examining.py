"""Runs each launch of the CPU backend several times, to see whether its result depends on the order of programs.

Programs of a grid run at the same time, so what one stores must not depend on whether another has run. The launch runs
its programs in ascending order. Two things are tried on copies of the memory that it got: all programs in descending
order, and each program alone. A result that depends on the order is a race, as is a place that two programs add to.
Kernels with atomic operations are left alone: locks and counters may well depend on the order.
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from triton_porting_kit.conformance.paths import without_roots

MOST_PROGRAMS = 256
"""Grids with more programs are not tried program by program, and ascend and descend in as many steps."""
MOST_BYTES = 4 << 20
"""So are launches with more memory."""
Memory = Any
"""A NumPy array of bytes."""


class Examined:
    """A launcher of the CPU backend that examines the first launch with each grid and set of sizes."""

    def __init__(
        self, launcher: Any, source: Any, metadata: Any, device: Any, report: Callable[[str], None]
    ) -> None:
        self._launcher, self._source, self._device, self._report = launcher, source, device, report
        self._seen: set[tuple[Any, ...]] = set()
        self._atomic = "tt.atomic_" in _ttir_of(metadata)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launcher, name)

    def __call__(self, *call: Any) -> None:
        x, y, z = call[:3]
        programs = x * y * z
        found = dict(_memories(call[9:]))
        key = (x, y, z, *(memory.nbytes for memory in found.values()))
        if programs < 2 or self._atomic or key in self._seen:
            self._launcher(*call)
            return
        self._seen.add(key)
        self._examine(call, programs, found)

    def _examine(self, call: Sequence[Any], programs: int, found: dict[int, Memory]) -> None:
        memories = [*found.values()]
        names = self._names(call[9:], list(found))
        before = [memory.copy() for memory in memories]
        step = -(-programs // MOST_PROGRAMS)
        starts = range(0, programs, step)
        for begin in starts:
            self._run(call, begin, begin + step)
        after = [memory.copy() for memory in memories]
        try:
            self._restore(memories, before)
            for begin in reversed(starts):
                self._run(call, begin, begin + step)
            for name, memory, ascending in zip(names, memories, after, strict=True):
                different = memory != ascending
                if different.any():
                    self._tell(name, different, "depends on the order in which programs run")
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
                if again.any() and names[index] not in reported:
                    reported.add(names[index])
                    text = f"is also stored to by program {program}, alone with another value"
                    self._tell(names[index], again, text)
                owners[index] |= changed

    def _run(self, call: Sequence[Any], begin: int, end: int) -> None:
        with self._device.only_programs(begin, end):
            self._launcher(*call)

    @staticmethod
    def _restore(memories: list[Memory], saved: list[Memory]) -> None:
        for memory, content in zip(memories, saved, strict=True):
            memory[:] = content

    def _names(self, arguments: Sequence[Any], addresses: list[int]) -> list[str]:
        named = dict.fromkeys(addresses, "memory")
        for name, value in zip(self._source.fn.arg_names, arguments, strict=False):
            known = _allocation(value)
            if named.get(known[0]) == "memory":
                named[known[0]] = name
        return [named[address] for address in addresses]

    def _tell(self, name: str, where: Memory, text: str) -> None:
        function = self._source.fn
        file = without_roots(str(inspect.getsourcefile(function.fn)))
        place = f"{file}:{getattr(function, 'starting_line_number', 0)}"
        byte = int(where.argmax())
        self._report(f"kernel '{function.__name__}' ({place}): byte {byte} of argument '{name}' {text}")


def _ttir_of(metadata: Any) -> str:
    """The kernel in Triton's dialect, from Triton's cache: helpers of other files are in it, too."""
    from triton.runtime.cache import get_cache_manager

    files = get_cache_manager(metadata.hash).get_group(f"{metadata.name}.json") or {}
    path = next((path for name, path in files.items() if name.endswith(".ttir")), None)
    return Path(path).read_text(encoding="utf-8") if path else ""


def _memories(arguments: Sequence[Any]) -> Iterator[tuple[int, Memory]]:
    """The allocations of the arguments by address, as bytes."""
    for value in arguments:
        value = getattr(value, "base", value)  # a tensor descriptor's
        address, size = _allocation(value)
        if size:
            raw = (ctypes.c_uint8 * size).from_address(address)
            yield address, np.ctypeslib.as_array(raw)


def _allocation(value: Any) -> tuple[int, int]:
    """Address and size in bytes of the whole storage of a tensor; of other values (0, 0)."""
    if not hasattr(value, "untyped_storage"):
        return 0, 0
    storage = value.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def examine_launches(report: Callable[[str], None]) -> None:
    """Let every launcher that the active driver makes from now on examine its launches. `report` gets what it finds.

    Its device must have `only_programs`, and memory that this process can read, as those of the CPU backend.
    """
    from triton.runtime.driver import driver

    kind = type(driver.active)
    original = kind.launcher_cls

    def launcher_cls(active: Any, source: Any, metadata: Any) -> Any:
        return Examined(original(active, source, metadata), source, metadata, active.device, report)

    kind.launcher_cls = launcher_cls
