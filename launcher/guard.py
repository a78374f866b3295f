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


_FIRST = {
    Op.PROGRAM: range(3),
    Op.PROGRAMS: range(3),
    Op.INTEGER: range(1, 65),
    Op.CONSTANT: range(-(2**63), 2**63),
    Op.ARGUMENT: range(2**31),
}
"""The numbers that a step may have as its first operand where that is not an earlier step."""
_WIDTHS = range(1, 65)
_RULES: list[tuple[range | None, range | None, bool]] = [
    (
        None if OPERANDS[op] > 0 else _FIRST[op],
        _WIDTHS if op == Op.ARGUMENT or OPERANDS[op] == 1 else None,
        OPERANDS[op] > 1,
    )
    for op in Op
]
"""For each operation, by its number: the range of `a`, or None for an earlier step; the range of `b`, or None for any;
whether `b` is an earlier step."""


def _steps(numbers: Sequence[Any]) -> list[Step]:
    """The steps in a kernel's metadata. Raises `SignatureError` for invalid ones, because native code trusts them.

    Each start of a process with a cached kernel runs this, so it makes no object for a step.
    """
    try:
        found = list(zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True))
        for number, (op, a, b) in enumerate(found):
            first, second, second_is_step = _RULES[op]
            if (
                op < 0
                or not (0 <= a < number if first is None else a in first)
                or not (second is None or b in second)
                or not (0 <= b < number or not second_is_step)
            ):
                raise ValueError
    except (TypeError, ValueError, IndexError):
        raise SignatureError(
            "the promises in the kernel's metadata are damaged; compile it again (clear its cache)"
        ) from None
    return found
