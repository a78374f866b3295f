"""The per-thread scratch block: a cleared part, a stack that each program uses anew, and a part that persists.

The stack may have holes in its lower part.
"""

from __future__ import annotations

from dataclasses import dataclass

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer


class Stack:
    """The stack: offsets in the part that each program uses anew."""

    ALIGNMENT = 64

    def __init__(self) -> None:
        self._top = 0
        self._sizes: dict[int, int] = {}
        self._holes: dict[int, int] = {}
        self.high_water = 0
        self._reach = 0

    @classmethod
    def rounded(cls, size: int) -> int:
        """`size` bytes, rounded up to whole cache lines."""
        return -(-size // cls.ALIGNMENT) * cls.ALIGNMENT

    def take(self, size: int) -> int:
        """Allocate `size` bytes and return their offset."""
        size = self.rounded(max(1, size))
        fitting = [offset for offset, room in self._holes.items() if room >= size]
        if fitting:
            offset = min(fitting, key=lambda offset: (self._holes[offset], offset))
            room = self._holes.pop(offset)
            if room > size:
                self._holes[offset + size] = room - size
        else:
            offset = self._top
            self._top += size
            if self._top > self._reach:
                self._reach = self._top
                self.high_water = max(self.high_water, self._top)
        self._sizes[offset] = size
        return offset

    @property
    def mark(self) -> int:
        return self._top

    def reached(self) -> int:
        """The highest top since this was last called."""
        found, self._reach = self._reach, self._top
        return found

    def release(self, mark: int) -> None:
        """Free everything allocated since `mark`."""
        self._top = mark
        self._sizes = {offset: size for offset, size in self._sizes.items() if offset < mark}
        self._holes = {offset: size for offset, size in self._holes.items() if offset < mark}

    def taken(self, mark: int) -> list[int]:
        """The allocated offsets from `mark` on."""
        return [offset for offset in self._sizes if offset >= mark]

    def give_back(self, offset: int) -> None:
        """Free the allocation at `offset`."""
        size = self._sizes.pop(offset)
        for start, room in list(self._holes.items()):
            if start + room == offset:
                del self._holes[start]
                offset, size = start, room + size
            elif start == offset + size:
                del self._holes[start]
                size += room
        if offset + size == self._top:
            self._top = offset
        else:
            self._holes[offset] = size

    def set_holes_aside(self) -> dict[int, int]:
        """Allocate only from the top from now on.

        Pass the result to `put_back` once the new allocations are released.
        """
        holes, self._holes = self._holes, {}
        return holes

    def put_back(self, holes: dict[int, int]) -> None:
        """Make the holes from `set_holes_aside` available again."""
        self._holes = holes


@dataclass(eq=False, repr=False)
class Part:
    """A part of the block that outlives a program. Its start is known when the kernel is complete."""

    start: Value
    size: int = 0
    """Bytes."""

    def take(self, builder: LoopBuilder, size: int) -> Value:
        """A pointer to `size` bytes that nothing else uses in any program of the kernel."""
        place = builder.address(self.start, [builder.i64(self.size)], "i8")
        self.size += Stack.rounded(size)
        return place


class Scratch:
    """The scratch block of one kernel, whose stack begins at `base`."""

    def __init__(self, builder: LoopBuilder, base: Value) -> None:
        self._builder = builder
        self._base = base
        self.stack = Stack()
        self.kept = Part(Value("%kept", "!llvm.ptr", 0))
        """Persists from one program to the next."""
        self.cleared = Part(Value("%cleared", "!llvm.ptr", 0))
        """Persists, too, and is zero when a thread runs its first programs of a launch."""
        self.reaches: dict[Operation, int] | None = None
        """How many bytes of the stack an operation has used, where that is asked for, and what came before it in its
        block or, for the first one, in the operation around it."""

    @property
    def size(self) -> int:
        """Bytes of the whole block."""
        return self.cleared.size + self.stack.high_water + self.kept.size

    def allocate(self, shape: tuple[int, ...], element: str) -> Buffer:
        """A fresh buffer on the stack."""
        count = 1
        for size in shape:
            count *= size
        return Buffer(shape, element, self.place(self.stack.take(count * types.byte_size(element))))

    def place(self, offset: int) -> Value:
        """The address of an offset in the stack."""
        return self._builder.address(self._base, [self._builder.i64(offset)], "i8")

    def keep(self, size: int) -> Value:
        """A pointer to `size` bytes that persist from one program to the next."""
        return self.kept.take(self._builder, size)

    def keep_cleared(self, size: int) -> Value:
        """A pointer to `size` bytes that persist and are zero when a thread runs its first programs of a launch."""
        return self.cleared.take(self._builder, size)
