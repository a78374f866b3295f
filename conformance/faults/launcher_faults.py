"""Faults of the launcher in the arguments, the grid, the stream and the hooks of a launch."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from triton_porting_kit.conformance.faults.fault import Apply, Table, method
from triton_porting_kit.errors import PortingKitError

TABLE = Table()

# One or a few lines per fault.
# fmt: off

Change = Callable[[bytes], bytes]
"""Changes the bytes of one argument."""


def _apply(name: str, sentence: str, apply: Apply, *caught_by: str) -> None:
    TABLE.add("launcher", name, sentence, apply, *caught_by)


def _number(format_: str, change: Callable[[Any], Any]) -> Change:
    return lambda stored: struct.pack(format_, change(struct.unpack(format_, stored)[0]))


def _unaligned(real: Any, self: Any, block: bytes) -> bytes:
    """Pack arguments without padding."""
    packed = b"".join(block[slot.offset : slot.offset + slot.size] for slot in self.layout.slots)
    return packed.ljust(len(block), b"\0")


def _last_lost(real: Any, self: Any, block: bytes) -> bytes:
    if not self.layout.slots:
        return block
    last = self.layout.slots[-1]
    return block[: last.offset] + bytes(last.size) + block[last.offset + last.size :]


def _exchanged(wanted: Callable[[Any, Any], bool]) -> Any:
    """Exchange the first two arguments of the same type for which `wanted` holds."""

    def block(real: Any, self: Any, block: bytes) -> bytes:
        changed = bytearray(block)
        slots = self.layout.slots
        for one, other in combinations(slots, 2):
            if one.type == other.type and wanted(one, other):
                a, b = (slice(slot.offset, slot.offset + slot.size) for slot in (one, other))
                changed[a], changed[b] = block[b], block[a]
                break
        return bytes(changed)

    return block


def _first_again(real: Any, self: Any, block: bytes) -> bytes:
    """Use the arguments of the kernel's first launch for all launches."""
    first: bytes = self.__dict__.setdefault("_fault_block", block)
    return first


def _cut(real: Any, self: Any, block: bytes) -> bytes:
    return block[:256].ljust(len(block), b"\0")


def _launcher(name: str, sentence: str, *caught_by: str, **replacements: Any) -> None:
    _apply(name, sentence, method("launcher", **replacements), *(f"runtime/{p}" for p in caught_by))


_launcher("unaligned", "arguments are packed without alignment", "argument-counts/narrow-wide-8", "argument-counts/mixed-32", block=_unaligned)
_launcher("last-argument", "the last argument is 0", "argument-counts/mixed-16", "argument-counts/floats-5", block=_last_lost)
_launcher("arguments-exchanged", "the first two integers of one type are exchanged", "argument-counts/mixed-64", block=_exchanged(lambda one, other: one.type.startswith("i")))
_launcher("tuple-order", "the first two members of a tuple are exchanged", "structures/tuple-nested", block=_exchanged(lambda one, other: "[" in one.name and "[" in other.name and ".shape" not in one.name))
_launcher("named-tuple-order", "the first two integers of a named tuple are exchanged", "structures/named-tuple-nested", block=_exchanged(lambda one, other: one.type == "i32" and "." in one.name and "." in other.name))
_launcher("descriptor-sizes", "the first two sizes of a tensor descriptor are exchanged", "structures/descriptor-fp32-10x64-at-8-32", "structures/descriptor-i32-33x36-at-17-20", block=_exchanged(lambda one, other: ".shape[" in one.name and ".shape[" in other.name))
_launcher("descriptor-strides", "the first two strides of a tensor descriptor are exchanged", "structures/descriptor-fp32-3x5x16-at-1-2-4", block=_exchanged(lambda one, other: ".strides[" in one.name and ".strides[" in other.name))
_launcher("stale-arguments", "a kernel's second launch has the arguments of the first", "specialization/widths-not-specialized", "launches/interleaved", block=_first_again)
_launcher("block-cut", "arguments beyond 256 bytes are lost", "argument-counts/mixed-100", "argument-counts/floats-128", block=_cut)


def _values(name: str, sentence: str, types: tuple[str, ...], change: Change, *caught_by: str) -> None:
    """Add a fault in how arguments of some types are stored."""

    def block(real: Any, self: Any, block: bytes) -> bytes:
        changed = bytearray(block)
        for slot in self.layout.slots:
            if slot.type in types or ("*" in types and slot.type.startswith("*")):
                place = slice(slot.offset, slot.offset + slot.size)
                changed[place] = change(bytes(changed[place]))
        return bytes(changed)

    _launcher(name, sentence, *caught_by, block=block)


def _half_as_float(stored: bytes) -> bytes:
    """The lower two bytes of the number as float32."""
    return np.frombuffer(stored, np.float16).astype(np.float32).tobytes()[:2]


_values("i8-unsigned", "8-bit integers lose their sign", ("i8",), lambda stored: bytes([stored[0] & 0x7F]), "arguments/i8")
_values("i16-narrow", "16-bit integers keep 8 bits", ("i16", "u16"), lambda stored: stored[:1] + b"\0", "arguments/i16", "arguments/u16")
_values("i32-through-float", "32-bit integers are passed through float32", ("i32",), _number("<i", lambda x: min(int(np.float32(x)), 2**31 - 1)), "arguments/i32")
_values("i64-narrow", "64-bit integers keep 32 bits", ("i64", "u64"), lambda stored: stored[:4] + bytes(4), "arguments/i64", "arguments/u64")
_values("u64-signed", "64-bit unsigned integers saturate at the largest signed one", ("u64",), _number("<Q", lambda x: min(x, 2**63 - 1)), "arguments/u64")
_values("bool-any", "booleans are always true", ("i1", "u1"), lambda stored: b"\1", "arguments/i1")
_values("fp16-as-fp32", "float16 arguments are stored as float32", ("fp16",), _half_as_float, "arguments/fp16")
_values("bf16-short", "bfloat16 arguments lose their last bit", ("bf16",), _number("<H", lambda x: x & 0xFFFE), "arguments/bf16")
_values("fp32-flushed", "float32 arguments that are subnormal become 0", ("fp32", "f32"), _number("<I", lambda x: x if x & 0x7F800000 else x & 0x80000000), "arguments/fp32")
_values("fp64-through-fp32", "float64 arguments are rounded to float32", ("fp64",), _number("<d", lambda x: float(np.float32(x))), "arguments/fp64")
_values("nan-quiet", "the sign of a float32 argument's zero is lost", ("fp32", "f32"), _number("<I", lambda x: 0 if x == 0x80000000 else x), "arguments/fp32")
_values("pointer-aligned", "pointers are rounded down to a multiple of 16", ("*",), _number("<Q", lambda x: x & ~0xF), "arguments/pointer-interior-1", "arguments/pointer-addresses")
_values("pointer-narrow", "pointers keep 32 bits", ("*",), _number("<Q", lambda x: x & 0xFFFFFFFF), "arguments/pointer-fp32")

# --- the call ------------------------------------------------------------------------------------------------

# Positions of a call's arguments: the grid, the stream, the launch's metadata, the hooks.
X, Y, Z, STREAM = 0, 1, 2, 3
LAUNCH_METADATA, ENTER, EXIT, FIRST = 6, 7, 8, 9


def _swallowed(real: Any, self: Any, *call: Any, **hidden: Any) -> None:
    with contextlib.suppress(PortingKitError):
        real(self, *call, **hidden)


def _with(**changes: Callable[[Any], Any]) -> Any:
    """Change some arguments of a call. `changes`: functions by name of the argument."""
    places = {"enter": ENTER, "exit": EXIT, "metadata": LAUNCH_METADATA, "x": X}

    def launch(real: Any, self: Any, *call: Any, **hidden: Any) -> None:
        changed = [*call]
        for name, change in changes.items():
            changed[places[name]] = change(changed[places[name]])
        real(self, *changed, **hidden)

    return launch


def _hooks_exchanged(real: Any, self: Any, *call: Any, **hidden: Any) -> None:
    real(self, *call[:ENTER], call[EXIT], call[ENTER], *call[FIRST:], **hidden)


def _twice(real: Any, self: Any, *call: Any, **hidden: Any) -> None:
    real(self, *call, **hidden)
    real(self, *call[:ENTER], None, None, *call[FIRST:], **hidden)


def _zero_is_one(real: Any, self: Any, *call: Any, **hidden: Any) -> None:
    real(self, *(max(count, 1) for count in call[:STREAM]), *call[STREAM:], **hidden)


def _extra_ignored(real: Any, self: Any, *call: Any, **hidden: Any) -> None:
    real(self, *call[: FIRST + len(self.layout.signature.arguments)], **hidden)


def _one_less(count: int) -> int:
    return count - 1 if count > 1 else count


_launcher("grid-exchanged", "x and y of the grid are exchanged", "grids/3x5", "grids/17x1x31", grid=lambda real, self, grid: (grid[1], grid[0], grid[2]))
_launcher("grid-z", "z of the grid is ignored", "grids/1x1x9", "grids/2x3x4", grid=lambda real, self, grid: (grid[0], grid[1], 1))
_launcher("last-program", "the last program does not run", "grids/1000", "grids/257x63", grid=lambda real, self, grid: (_one_less(grid[0]), *grid[1:]))
_launcher("grid-short", "counts of programs keep 16 bits", "grids/65537", "grids/1048576", grid=lambda real, self, grid: tuple(count & 0xFFFF for count in grid))
_launcher("grid-zero", "a grid with a zero count runs", "grids/nothing-0", "grids/nothing-1x0x1", __call__=_zero_is_one)
_launcher("launched-twice", "each launch runs twice", "grids/tally-1000", __call__=_twice)
_launcher("stream-ignored", "every launch goes to the default stream", "streams/asynchronous", stream=lambda real, self, stream: 0)
_launcher("errors-swallowed", "launches that are refused are not reported", "refusals/compiled-fewer", "refusals/int8-above", __call__=_swallowed)
_launcher("extra-ignored", "surplus arguments are ignored", "refusals/compiled-more", __call__=_extra_ignored)
_launcher("hooks-lost", "launch hooks are not called", "hooks/enter-and-exit", __call__=_with(enter=lambda hook: None, exit=lambda hook: None))
_launcher("exit-hook-lost", "the hook after a launch is not called", "hooks/enter-and-exit", __call__=_with(exit=lambda hook: None))
_launcher("hooks-exchanged", "the hook after a launch is called before it", "hooks/enter-and-exit", __call__=_hooks_exchanged)
_launcher("hook-metadata", "hooks receive no metadata of the launch", "hooks/launch-metadata", __call__=_with(metadata=lambda metadata: None))
