"""Locks of stripes of memory, for calls of the kernel beside which only such calls update memory.

The host gives the address of the locks in scratch, or 0. With them, an update is a load and a store, of vectors too,
under the lock of the stripe that it lies in. A thread keeps the lock of one stripe until it updates another stripe, or
has updated a tile. It never waits for a lock while it holds one, and does nothing but update memory while it holds one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from triton_porting_kit.abi.kernel import LOCK_BYTES, LOCKS, STRIPE_BYTES
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering


@dataclass
class Stripes:
    """The locks of one kernel. `pause` is an instruction for loops that wait."""

    builder: LoopBuilder
    condition: Value
    """i1: whether this call takes them."""
    table: Value
    """The address of the locks, an i64."""
    held: Value
    """Where in scratch the address of the lock is that this thread holds, or 0."""
    at: int
    """The offset in the cleared part of scratch of the address of the locks."""
    pause: str

    @classmethod
    def of(cls, lowering: Lowering) -> Stripes:
        """Read the address of the locks from scratch."""
        builder, cleared = lowering.builder, lowering.scratch.cleared
        at, size = cleared.size, types.byte_size("i64")
        place, held = (lowering.scratch.keep_cleared(size) for _ in range(2))
        table = builder.effect(f"llvm.load {place.name} : !llvm.ptr -> i64", "i64")
        assert table is not None
        taken = builder.compare("ne", table, builder.i64(0))
        is_x86 = lowering.target.triple.startswith("x86_64")
        pause = 'llvm.call_intrinsic "llvm.x86.sse2.pause"() : () -> ()' if is_x86 else ""
        return cls(builder, taken, table, held, at, pause)

    def enter(self, pointer: Value) -> None:
        """Hold the lock of the stripe of `pointer`, and no other one."""
        builder = self.builder

        def take() -> list[Value]:
            stripe = builder.binary("arith.shrui", self._address(pointer), self._shift(STRIPE_BYTES))
            number = builder.binary("arith.andi", stripe, builder.i64(LOCKS - 1))
            lock = builder.add(self.table, builder.mul(number, builder.i64(LOCK_BYTES)))
            held = self._held()

            def change() -> list[Value]:
                self._unlock(held)
                self._lock(lock)
                builder.effect(f"llvm.store {lock.name}, {self.held.name} : i64, !llvm.ptr")
                return []

            builder.if_else(builder.compare("ne", lock, held), change)
            return []

        builder.if_else(self.condition, take)

    def leave(self) -> None:
        """Hold no lock."""
        builder = self.builder

        def give_back() -> list[Value]:
            self._unlock(self._held())
            builder.effect(f"llvm.store {builder.i64(0).name}, {self.held.name} : i64, !llvm.ptr")
            return []

        builder.if_else(self.condition, give_back)

    def guarded(
        self, perform: Callable[[Value, list[Value]], Value]
    ) -> Callable[[Value, list[Value]], Value]:
        """`perform`, which updates one element, under a lock."""

        def locked(pointer: Value, values: list[Value]) -> Value:
            self.enter(pointer)
            result = perform(pointer, values)
            self.leave()
            return result

        return locked

    def update(
        self,
        pointer: Value,
        size: int,
        at_once: Callable[[], list[Value]],
        one_by_one: Callable[[], list[Value]],
    ) -> None:
        """Emit `at_once`, which updates the `size` bytes at `pointer`.

        A call that takes locks holds that of the stripe. Where the bytes lie in two stripes, it does `one_by_one`.
        """
        builder = self.builder

        def in_one_stripe() -> list[Value]:
            self.enter(pointer)
            return at_once()

        def under_locks() -> list[Value]:
            first = self._address(pointer)
            last = builder.add(first, builder.i64(size - 1))
            distance = builder.binary("arith.xori", first, last)
            straddles = builder.compare("uge", distance, builder.i64(STRIPE_BYTES))
            return builder.if_else(straddles, one_by_one, in_one_stripe)

        builder.if_else(self.condition, under_locks, at_once)

    def fence(self) -> None:
        """Order the updates of a tile as its operation says, which the loads and stores do not."""
        self.builder.effect("llvm.fence acq_rel")

    def _address(self, pointer: Value) -> Value:
        return self.builder.cast("llvm.ptrtoint", pointer, "i64")

    def _shift(self, size: int) -> Value:
        return self.builder.i64(size.bit_length() - 1)

    def _held(self) -> Value:
        held = self.builder.effect(f"llvm.load {self.held.name} : !llvm.ptr -> i64", "i64")
        assert held is not None
        return held

    def _pointer(self, lock: Value) -> Value:
        return self.builder.cast("llvm.inttoptr", lock, "!llvm.ptr")

    def _unlock(self, lock: Value) -> None:
        builder = self.builder

        def give_back() -> list[Value]:
            place, zero = self._pointer(lock), builder.constant(0, "i32")
            builder.effect(
                f"llvm.store {zero.name}, {place.name} atomic release {{alignment = 4 : i64}} : i32, !llvm.ptr"
            )
            return []

        builder.if_else(builder.compare("ne", lock, builder.i64(0)), give_back)

    def _lock(self, lock: Value) -> None:
        builder = self.builder
        place, one, zero = self._pointer(lock), builder.constant(1, "i32"), builder.constant(0, "i32")
        builder.open()
        before = builder.effect(
            f"llvm.atomicrmw xchg {place.name}, {one.name} acquire : !llvm.ptr, i32", "i32"
        )
        assert before is not None
        taken = builder.here(builder.compare("ne", before, zero))
        builder.line(f"scf.condition({taken.name})")
        lines = builder.close()
        builder.open()
        if self.pause:
            builder.effect(self.pause)
        builder.line("scf.yield")
        builder.region_operation("scf.while : () -> () {", [], [*lines, "} do {", *builder.close()])
