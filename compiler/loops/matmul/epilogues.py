"""Stores of a loop's sums, done register block by register block as soon as each block is complete.

Where a kernel only applies element-wise operations to the sums and stores the result, the loop's last multiplication
stores each register block while it multiplies the next. Memory is then written in parallel with arithmetic, and the
sums need not be written to scratch and read again. This requires a tile that lies wholly in bounds and a store that is
disjoint from everything still to be read (`store_footprint`). Otherwise, and where the loop has no iterations, the
store is lowered at its own place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from triton_porting_kit.compiler.dialect.operations import Store
from triton_porting_kit.compiler.loops.arithmetic.elementwise import TO_NEAREST, round_to_bf16
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import DEEPEST, Lowering
from triton_porting_kit.compiler.loops.matmul.register_blocking import Blocking, Place
from triton_porting_kit.compiler.loops.memory import ordered
from triton_porting_kit.compiler.loops.memory.store_footprint import StoreFootprint
from triton_porting_kit.compiler.loops.memory.writes import access_of
from triton_porting_kit.compiler.loops.state import LOADS, MOVABLE
from triton_porting_kit.compiler.loops.tiles.access import Access, Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.explicit import Gather
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Elementwise, Point, Tensor, closure
from triton_porting_kit.compiler.loops.tiles.tile_loops import tile_loop


@dataclass(frozen=True)
class Epilogue:
    """How the `sums` of a loop are consumed: a `chain` of element-wise operations, then a `store`."""

    sums: Def
    chain: Sequence[Operation]
    store: Operation
    access: Access
    room: Value | None
    """A pointer to room for the sums of one register block, with the row pitch of the whole tile.

    None if the chain is empty and the store's rows are contiguous: sums are then stored straight to memory.
    """
    writes: StoreFootprint
    rounds: bool
    """Whether the chain begins by rounding sums without denormals to bf16, for which the CPU has an instruction."""

    def may_store(self, builder: LoopBuilder, last: Value) -> Value:
        """i1: whether this iteration may store the sums. It must be the `last` one, and the tile wholly in bounds."""
        return builder.logical_and(last, self.access.plain_condition(builder))

    def place(self, builder: LoopBuilder, at: Place) -> tuple[Value, Value]:
        """The address of a block of sums, and the row pitch in elements."""
        _, width = self.sums.type.shape or ()
        if self.room is not None:
            return self.room, builder.i64(width)
        corner = Evaluation(builder, frozenset({self.access}), {})
        return self.access.pointer(corner, Point((at.row, at.column), -1, 1)), self.access.strides[0]

    def emit(self, lowering: Lowering, stores: Value, at: Place) -> None:
        """If `stores`: apply the chain to the sums in `room`, the block there, and store the result."""
        if self.room is None:
            return

        def finish() -> list[Value]:
            self._store(lowering, at)
            return []

        lowering.builder.if_else(stores, finish)
        lowering.builder.forget_reads()

    def _store(self, lowering: Lowering, at: Place) -> None:
        builder, (region, row, column) = lowering.builder, at
        _, width = self.sums.type.shape or ()
        assert self.room is not None
        before = builder.add(builder.mul(row, builder.i64(width)), column)
        element = self.sums.type.element
        corner = builder.address(self.room, [builder.sub(builder.i64(0), before)], element)
        with self._defined(lowering, corner) as value:
            evaluation = Evaluation(builder, frozenset({self.access}), {})

            def body(point: Point) -> None:
                indices = (builder.add(row, point.indices[0]), builder.add(column, point.indices[1]))
                place = Point(indices, point.axis, point.width)
                self.access.write(evaluation, place, evaluation.at(value, place))

            tile_loop(builder, (region.block.rows, region.block.strip), region.block.lanes, body)

    @contextmanager
    def _defined(self, lowering: Lowering, corner: Value) -> Iterator[Tensor]:
        """The value to store, with the sums read from `corner`. The definitions hold inside the context only."""
        lowering.builder.forget_reads()
        assert self.sums.type.shape is not None
        lowering.define(self.sums, Buffer(self.sums.type.shape, self.sums.type.element, corner))
        for operation in self.chain:
            if self.rounds and operation is self.chain[0]:
                total = lowering.tensor(self.sums)
                lowering.define(
                    operation.results[0], Elementwise(total.shape, "bf16", [total], round_to_bf16)
                )
            else:
                lowering.operation(operation)
        yield lowering.tensor(Store(self.store).value)
        for definition in (self.sums, *(operation.results[0] for operation in self.chain)):
            del lowering.tensors[definition]


def epilogue(
    lowering: Lowering,
    loop: Operation,
    dot: Operation,
    sums: Def,
    block: Blocking,
    writes: StoreFootprint,
    *,
    flushed: bool,
) -> Epilogue | None:
    """The epilogue for the `sums` of a `dot`, a result of a `loop`; None if the store cannot be done in the loop.

    `flushed`: the product makes no denormal sums.
    """
    if writes.growing or not _comes_last(lowering, dot):
        return None
    chain: list[Operation] = []
    value, store = sums, _only_user(sums)
    while store is not None and store.name.startswith(("arith.", "math.")) and store.name in MOVABLE:
        chain.append(store)
        value, store = store.results[0], _only_user(store.results[0])
    if store is None or store.block is not loop.block or ordered.is_ordered(store):
        return None
    stored = Store.dyn_cast(store)
    if stored is None or stored.value is not value or stored.wrap_dims or stored.mask is not None:
        return None
    if any(op.name not in MOVABLE for op in loop.block.operations[loop.position + 1 : store.position]):
        return None
    inner = {sums, *(operation.results[0] for operation in chain)}
    others = [operand for operation in chain for operand in operation.operands if operand not in inner]
    scalars = [stored.base, stored.offset, *stored.strides, *stored.low, *stored.high]
    if not all(lowering.advance(definition) for definition in (*others, *scalars)):
        return None
    tensors = [lowering.tensor(other) for other in others]
    if any(isinstance(part, Load | Gather) for part in closure(tensors)):
        return None
    # A tensor deeper than this is materialised in scratch as a whole tile, but only one block of it exists here.
    if len(chain) + max((tensor.depth for tensor in tensors), default=0) >= DEEPEST:
        return None
    lowering.settle_before(loop)
    access = access_of(lowering, stored)
    _, width = sums.type.shape or ()
    if not chain and access.is_contiguous(1):
        return Epilogue(sums, chain, store, access, None, writes, rounds=False)
    room = lowering.scratch.allocate((block.rows, width), sums.type.element)
    rounds = flushed and lowering.target.rounds_to_bf16 and _rounds(chain)
    return Epilogue(sums, chain, store, access, room.pointer, writes, rounds)


def _rounds(chain: Sequence[Operation]) -> bool:
    """Whether a chain begins by rounding to bf16, to the nearest number."""
    if not chain or chain[0].name != "arith.truncf" or chain[0].results[0].type.element != "bf16":
        return False
    return chain[0].integer("roundingmode", TO_NEAREST) == TO_NEAREST


def _comes_last(lowering: Lowering, dot: Operation) -> bool:
    """Whether an iteration reads no loaded value after its dot: it would see what the early store wrote."""
    *operations, _ = dot.block.operations
    results = [result for operation in operations for result in operation.results if result.type.is_tensor]
    return all(operation.name in MOVABLE for operation in operations[dot.position + 1 :]) and all(
        root.position <= dot.position
        for result in results
        if result.owner is not None and result.owner.name in LOADS
        for root in lowering.uses.roots(result)
    )


def _only_user(definition: Def) -> Operation | None:
    """The operation that uses a value, if there is exactly one use."""
    users = definition.users
    return users[0] if len(users) == 1 else None
