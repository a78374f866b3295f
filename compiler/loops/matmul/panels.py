"""Operands of a dot over several iterations of a loop: packed side by side or read in place, then multiplied.

`k_blocking` decides which dots are multiplied this way, and why results stay the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul.epilogues import Epilogue
from triton_porting_kit.compiler.loops.matmul.factors import Columns, Left, Rows, Strips, column_strip
from triton_porting_kit.compiler.loops.matmul.packed_cache import PackedCache
from triton_porting_kit.compiler.loops.matmul.products import Product
from triton_porting_kit.compiler.loops.matmul.register_blocking import Blocking
from triton_porting_kit.compiler.loops.matmul.row_tables import RowTable
from triton_porting_kit.compiler.loops.memory.store_footprint import address
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.graph import cost
from triton_porting_kit.compiler.loops.tiles.tensors import EXPENSIVE, Buffer, Point, Tensor
from triton_porting_kit.compiler.loops.tiles.transposed import turned


class Panels(dict[Operation, "Panel"]):
    """Dots that are multiplied several iterations at a time."""


@dataclass(frozen=True)
class Part:
    """One multiplication over a part of K."""

    left: Left | RowTable
    right: Buffer
    depth: Value
    """Length along K, in units."""
    iterations: Value
    """The number of loop iterations that it covers."""
    excess: Value | None
    """The address of one row per iteration with the excess of each column's sum, which VNNI's biased operands cause.

    None if operands have no bias.
    """
    begun: Value
    """i1: whether to add to sums that are in memory already."""
    stores: Value
    """i1: whether this multiplication completes the sums, and stores the result."""
    known: Value
    """i1: whether B was packed by another program."""


Multiply: TypeAlias = Callable[[Part], None]
"""Emits a multiplication."""

Measure: TypeAlias = Callable[[Strips, Value], None]
"""Writes the excess of each column's sum for a packed B."""


class State(NamedTuple):
    """Loop-carried state."""

    filled: Value
    """i64: the number of iterations that are packed and not multiplied."""
    packing: Value
    """i1: whether the previous iteration packed A."""
    number: Value
    """i64: the index of the cached panel that B is packed into."""
    begun: Value
    """i1: whether there are sums in memory."""
    stored: Value
    """i1: whether the sums are complete and the result is stored."""

    @classmethod
    def at_first(cls, builder: LoopBuilder, begun: Value) -> State:
        """Before the first iteration."""
        zero, no = builder.i64(0), builder.constant(0, "i1")
        return cls(zero, no, zero, begun, no)


@dataclass
class Panel:
    """The operands of one dot, of up to `iterations` iterations."""

    product: Product
    block: Blocking
    iterations: int
    left: Rows | Columns
    """Packed A: (M, units of all iterations)."""
    right: Strips
    """Packed B: (units of all iterations, N); the first cached panel."""
    in_place: bool
    """Whether A is read in place in iterations where all of it is in bounds."""
    table: RowTable | None
    """Where the rows of A are, if they are gathered."""
    excess: Value | None
    """Scratch for the excess of each column's sum, one row per iteration; None without a bias."""
    kept: PackedCache | None
    """The cache of packed panels of B; None if B may change."""
    epilogue: Epilogue | None
    """The store that the last multiplication does; None if it cannot."""
    place: int
    """The index of the sums among the loop's results."""
    from_zero: bool
    """Whether the sums begin at zero, which needs no store."""
    state: State
    """The state at the beginning of the iteration."""
    last: Value
    """i1: whether this iteration is the last one."""
    following: State
    """The state at the beginning of the next iteration."""

    @property
    def columns(self) -> bool:
        """Whether A is packed column by column."""
        return isinstance(self.left, Columns)

    @property
    def raw(self) -> str:
        """The type of the elements of A, where blocks of rows are converted before they are multiplied; else empty."""
        return self.left.element if self.left.element != self.product.unit else ""

    @property
    def element(self) -> str:
        """The type of the elements of A, packed or in place."""
        return self.raw or self.product.element

    @property
    def depth(self) -> int:
        """Units along K of one iteration."""
        return self.right.pitch // self.iterations

    @property
    def k(self) -> int:
        """Elements along K of one iteration."""
        return self.depth * self.product.count

    @property
    def _left_pitch(self) -> int:
        """The row pitch of packed A in elements."""
        return self.left.strides[0] * self.product.count

    def add(
        self,
        lowering: Lowering,
        operation: Operation,
        a: Tensor,
        b: Tensor,
        multiply: Multiply,
        measure: Measure,
    ) -> None:
        """One iteration of the dot `operation`: place its operands, and `multiply` if the panel is full or the loop
        ends.
        """
        builder, product, filled = lowering.builder, self.product, self.state.filled
        zero, one, units = builder.i64(0), builder.i64(1), builder.i64(self.depth)
        more = builder.add(filled, one)
        full = builder.compare("eq", more, builder.i64(self.iterations))
        due = builder.binary("arith.ori", full, self.last)
        known = self._pack_right(lowering, operation, b, measure)

        packs = self._packs(lowering, a)
        # A multiplication reads A either packed or in place. An iteration that must pack while unpacked ones wait goes
        # alone.
        alone = builder.constant(0, "i1")
        if self.in_place and packs.constant != 0:
            others = builder.logical_and(self._waits(builder), self._not(builder, self.state.packing))
            alone = builder.logical_and(packs, others)
        slot = builder.select(alone, zero, filled)
        left = a if self.raw else product.left(a)
        place = self._pack_left(lowering, operation, left, builder.mul(slot, units), packs)
        if self.table is not None:
            self.table.write(lowering, operation, slot, a, place, packs)
        builder.forget_reads()
        there = self._in_place(builder, a)
        stores = self._stores(builder, there)

        def multiplied() -> list[Value]:
            self._multiply(builder, multiply, there, more, alone, packs, stores, known)
            return []

        due = builder.binary("arith.ori", due, alone)
        builder.if_else(due, multiplied)
        builder.forget_reads()
        self.following = State(
            filled=builder.select(due, zero, more),
            packing=packs,
            number=builder.select(due, self._following_panel(builder), self.state.number),
            begun=builder.binary("arith.ori", self.state.begun, due),
            stored=stores,
        )

    def _pack_left(
        self, lowering: Lowering, operation: Operation, a: Tensor, units: Value, packs: Value
    ) -> Buffer:
        """Pack this iteration's part of A behind so many `units`, if it `packs`. Returns where."""
        builder = lowering.builder
        strip = column_strip(a.shape[0])
        if not self.in_place and self.table is None and self.product.packs_columns(a):
            self.left = Columns(self.left.shape, self.left.element, self.left.pointer, strip)
            a, units = turned(a), builder.mul(units, builder.i64(strip))
        first = builder.address(self.left.pointer, [units], types.storage(self.left.element))
        place: Buffer = Rows(a.shape, self.element, first, self._left_pitch)
        if self.columns:
            place = Strips(a.shape, self.product.element, first, strip, self.iterations * self.k)

        def packed() -> list[Value]:
            if self.columns:
                lowering.fill(operation, place, a)
            else:
                self.product.fill_left(lowering, operation, place, a)
            return []

        builder.if_else(packs, packed)
        expensive = a.buffer is None and cost(a, {}) >= EXPENSIVE
        if packs.constant == 1 and not self.columns and expensive and lowering.needed_after(a, operation):
            lowering.hold(a, place)  # as the weights in the gradient of attention
        return place

    def _multiply(
        self,
        builder: LoopBuilder,
        multiply: Multiply,
        there: Left,
        more: Value,
        alone: Value,
        packs: Value,
        stores: Value,
        known: Value,
    ) -> None:
        """Multiply the waiting iterations and this one; if this one goes `alone`, in two rounds."""
        zero, one, filled = builder.i64(0), builder.i64(1), self.state.filled
        pitch = builder.i64(self._left_pitch)
        if not self.in_place:
            left = self.table or Left(self.left.pointer, pitch, one)
            if self.columns:
                strip = column_strip(self.left.shape[0])
                left = Left.of_columns(builder, self.left.pointer, strip, self.iterations * self.k)
            multiply(self._part(builder, left, zero, more, self.state.begun, stores, known))
            return
        # One copy of the code for both rounds. If this iteration goes alone, the first round multiplies the waiting
        # ones.
        with builder.loop(builder.select(alone, zero, one), builder.i64(2), one) as rounds:
            before = builder.compare("eq", rounds.induction, zero)
            direct = builder.binary("arith.ori", before, self._not(builder, packs))
            left = Left(
                builder.select(direct, there.start, self.left.pointer),
                builder.select(direct, there.pitch, pitch),
                one,
                raw=self.raw,
            )
            iterations = builder.select(before, filled, builder.select(alone, one, more))
            after = self._not(builder, before)
            second = builder.logical_and(alone, after)
            start = builder.select(second, filled, zero)
            begun = builder.binary("arith.ori", self.state.begun, second)
            stored = builder.logical_and(stores, after)
            multiply(self._part(builder, left, start, iterations, begun, stored, known))

    def _following_panel(self, builder: LoopBuilder) -> Value:
        return self.state.number if self.kept is None else self.kept.after(builder, self.state.number)

    def _part(
        self,
        builder: LoopBuilder,
        left: Left | RowTable,
        start: Value,
        iterations: Value,
        begun: Value,
        stores: Value,
        known: Value,
    ) -> Part:
        """The multiplication of `iterations` iterations, the first of which is at `start`."""
        right, depth = self._right_from(builder, start), builder.mul(iterations, builder.i64(self.depth))
        return Part(left, right, depth, iterations, self._excess_from(builder, start), begun, stores, known)

    def _pack_right(self, lowering: Lowering, operation: Operation, b: Tensor, measure: Measure) -> Value:
        """Pack this iteration's part of B after the waiting ones. Returns i1: whether it was in the cache."""
        builder, filled = lowering.builder, self.state.filled
        place, excess = self._right_from(builder, filled), self._excess_from(builder, filled)

        def pack() -> None:
            self.product.pack_right(lowering, operation, b, place)
            if excess is not None:
                measure(place, excess)

        if self.kept is None:
            pack()
            return lowering.builder.constant(0, "i1")
        assert isinstance(b, Load)
        return self.kept.pack(lowering, b.access, self.state.number, self.state.filled, pack)

    def _packs(self, lowering: Lowering, a: Tensor) -> Value:
        """i1: whether this iteration packs A: where it has elements out of bounds, or joins packed iterations.

        Zeros in B cannot replace packing: out of bounds, A may hold infinity, or be unmapped.
        """
        builder = lowering.builder
        if self.table is not None:
            return self.table.packs(lowering, a)
        if not self.in_place:
            return builder.constant(1, "i1")
        assert isinstance(a, Load)
        plain = a.access.plain_condition(builder)
        if plain.constant == 1:
            return builder.constant(0, "i1")
        joins = builder.logical_and(self._waits(builder), self.state.packing)
        return builder.binary("arith.ori", self._not(builder, plain), joins)

    def _in_place(self, builder: LoopBuilder, a: Tensor) -> Left:
        """The first element of A in the first waiting iteration, or in this one if none waits, and A's row pitch."""
        if not self.in_place:
            return Left(self.left.pointer, builder.i64(0), builder.i64(1))
        assert isinstance(a, Load)
        zero, access = builder.i64(0), a.access
        here = access.pointer(Evaluation(builder, frozenset({access}), {}), Point((zero, zero), -1, 1))
        before = builder.mul(self.state.filled, builder.i64(-self.k))
        start = builder.address(here, [before], types.storage(self.element))
        return Left(start, access.strides[0], builder.i64(1))

    def _stores(self, builder: LoopBuilder, there: Left) -> Value:
        """i1: whether this multiplication stores the sums. The store must not overlap an A that is read in place."""
        if self.epilogue is None:
            return builder.constant(0, "i1")
        stores = self.epilogue.may_store(builder, self.last)
        if not self.in_place:
            return stores
        upwards = builder.compare("sge", there.pitch, builder.i64(0))
        rows = builder.mul(there.pitch, builder.i64(self.left.shape[0] - 1))
        elements = builder.add(rows, builder.i64(self.iterations * self.k))
        first = address(builder, there.start)
        end = builder.add(first, builder.mul(elements, builder.i64(types.byte_size(self.element))))
        disjoint = self.epilogue.writes.is_disjoint(builder, first, end)
        return builder.logical_and(stores, builder.logical_and(upwards, disjoint))

    def _waits(self, builder: LoopBuilder) -> Value:
        return builder.compare("sgt", self.state.filled, builder.i64(0))

    @staticmethod
    def _not(builder: LoopBuilder, condition: Value) -> Value:
        return builder.compare("eq", condition, builder.constant(0, "i1"))

    def _excess_from(self, builder: LoopBuilder, iteration: Value) -> Value | None:
        """The address of the excess of the panel's iterations, starting with this one."""
        if self.excess is None:
            return None
        slot = builder.add(builder.mul(self.state.number, builder.i64(self.iterations)), iteration)
        row = builder.mul(slot, builder.i64(self.right.shape[1]))
        return builder.address(self.excess, [row], self.product.unit)

    def _right_from(self, builder: LoopBuilder, iterations: Value) -> Strips:
        """Packed B, starting with this iteration."""
        strip, n = self.right.strides[0], self.right.shape[1]
        panel = builder.mul(self.state.number, builder.i64(self.right.pitch * n))
        first = builder.mul(iterations, builder.i64(self.depth * strip))
        pointer = builder.address(self.right.pointer, [panel, first], self.product.unit)
        return Strips((self.depth, n), self.product.unit, pointer, strip, self.right.pitch)
