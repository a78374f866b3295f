"""Redirects launches whose indices may overflow to another version of their kernel.

A compiler makes assumptions about indices that it cannot prove, and describes how a launch can verify them (the
metadata's `promises`, see `abi.intervals`). If a launch does not fulfil them, the kernel is compiled again with
the option ``offsets_may_wrap``, so that it checks its indices itself.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from triton_porting_kit.abi.intervals import OPERANDS, Interval, Launch, Op, Step
from triton_porting_kit.errors import SignatureError
from triton_porting_kit.launcher import _packed
from triton_porting_kit.launcher.entry import LaunchEntry
from triton_porting_kit.launcher.layout import ArgLayout
from triton_porting_kit.toolchain import compat


class Guard:
    """For one kernel: verifies the promises of a launch, and provides the version for launches that do not fulfil
    them."""

    def __init__(self, src: Any, metadata: Any, layout: ArgLayout) -> None:
        self._src = src
        self._metadata = metadata
        self._slots = layout.slots
        self._steps = _steps(getattr(metadata, "promises", None) or ())
        for op, number, bits in self._steps:
            if op == Op.ARGUMENT:
                self._check(number, bits)
        self._kernel: Any = None
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        """Whether the kernel has promises."""
        return bool(self._steps)

    def _check(self, number: int, bits: int) -> None:
        if not 0 <= number < len(self._slots) or self._slots[number].size * 8 != bits:
            raise SignatureError(
                f"the kernel's code takes its parameter {number} for an integer of {bits} bits, and its signature has "
                f"{', '.join(f'{slot.name}: {slot.type}' for slot in self._slots)}; compile the kernel again "
                "(clear its cache)"
            )

    def fits(self, block: bytes, grid: Sequence[int]) -> bool:
        """Whether a launch fulfils the promises, by its argument block; the reference for the native code."""

        def argument(number: int, bits: int) -> Interval:
            slot = self._slots[number]
            value = int.from_bytes(block[slot.offset : slot.offset + slot.size], "little", signed=True)
            return value, value

        return Launch(argument, lambda axis: (grid[axis], grid[axis])).fits(self._steps)

    def other_kernel(self) -> Any:
        """Triton's compiled kernel that checks its indices itself; compiled on first use."""
        with self._lock:
            if self._kernel is None:
                self._kernel = compat.compile_again(self._src, self._metadata, offsets_may_wrap=True)
            return self._kernel

    def other_version(self) -> int:
        """The function of that kernel on the current device."""
        return compat.loaded_function(self.other_kernel())

    def entry(self, entry: LaunchEntry) -> LaunchEntry:
        """A launch routine that verifies the promises, then calls `entry`'s; `entry` itself if there are none."""
        return _GuardedEntry(self, entry) if self else entry

    def native_steps(self) -> list[Step]:
        """The steps, with offsets in the block instead of numbers of arguments."""
        return [
            (op, self._slots[a].offset, b) if op == Op.ARGUMENT else (op, a, b) for op, a, b in self._steps
        ]


class _GuardedEntry:
    """A guarded `LaunchEntry`. It keeps alive what its native context refers to."""

    def __init__(self, guard: Guard, entry: LaunchEntry) -> None:
        self._inner = entry
        self._guard = guard
        self._capsule, self.function, self.context = _packed.guard(
            guard.native_steps(), guard.other_version, entry.function, entry.context
        )


def _steps(numbers: Sequence[int]) -> list[Step]:
    """The steps in a kernel's metadata. Raises `SignatureError` for invalid ones, because native code trusts them."""
    try:
        found = [(Op(op), a, b) for op, a, b in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)]
        good = all(_is_good(number, step) for number, step in enumerate(found))
    except (TypeError, ValueError):
        good = False
    if not good:
        raise SignatureError(
            "the promises in the kernel's metadata are damaged; compile it again (clear its cache)"
        )
    return found


def _is_good(number: int, step: Step) -> bool:
    """Whether step `number` refers only to earlier steps and to valid widths and axes."""
    op, a, b = step
    if not all(0 <= operand < number for operand in (a, b)[: OPERANDS[op]]):
        return False
    if op in (Op.PROGRAM, Op.PROGRAMS):
        return a in (0, 1, 2)
    if op == Op.INTEGER:
        return 1 <= a <= 64
    if op in (Op.ARGUMENT, Op.WRAPPED, Op.UNSIGNED, Op.FITS):
        return 1 <= b <= 64
    return -(2**63) <= a < 2**63
