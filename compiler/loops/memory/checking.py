"""Checked mode: every access is compared with the bounds of the kernel's arguments.

The check stands at the operation, before any of its elements is touched, and not at the elements. So it covers every
way in which loads, stores and products are lowered. For a structured access, the lowest and the highest address that
its bounds allow are compared once for the tile. Only if these do not fit, and for explicit offsets, each lane that the
mask sets is checked. What cannot be decided here is passed to the host, which also ends the kernel
(docs/architecture.md, "Checked mode").
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from typing import NamedTuple

from triton_porting_kit.abi.kernel import ACCESS, REACHES
from triton_porting_kit.compiler.dialect.operations import AtomicPoll, Gather, Load, Scatter, Store
from triton_porting_kit.compiler.loops.control.host_calls import place_of
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory.store_footprint import address
from triton_porting_kit.compiler.loops.state import Origins
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.access import Access
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.explicit import locate_explicit
from triton_porting_kit.compiler.loops.tiles.tensors import Point, Tensor
from triton_porting_kit.compiler.loops.tiles.tile_loops import tile_loop

BOUNDS_ALIGNMENT, BOUNDS_BYTES = 8, 16
"""Alignment and size of one entry in the table after the arguments: a pointer argument's address and size, both i64."""

_KINDS = {
    cls.OPERATION_NAME: kind
    for cls, kind in ((Load, 0), (Gather, 0), (Store, 1), (Scatter, 1), (AtomicPoll, 0))
}
_ATOMIC = 2

# Below these limits, the products of index and stride can be summed in bytes without overflow. Tiles have at most 2**20
# elements. Larger values are checked lane by lane.
_STRIDE, _WRAPPED_STRIDE, _PERIOD = 1 << 38, 1 << 28, 1 << 31


class _Place(NamedTuple):
    """The addresses of the lanes of a point."""

    base: Value
    """The pointer that the addresses were computed from."""
    pointer: Value
    """The address of all lanes, or the one that `offsets` are relative to."""
    offsets: Value | None
    unit: int
    """Bytes per unit of the offsets."""


class Checks:
    """Emits the checks of one kernel.

    `arguments` are the kernel's pointers with their names. `block` is the argument block, which holds the bounds of the
    pointers, in the same order, at byte `offset`.
    """

    def __init__(
        self, lowering: Lowering, arguments: Sequence[tuple[str, Value]], block: Value, offset: int
    ) -> None:
        self._lowering = lowering
        self._builder = builder = lowering.builder
        self.argument_bytes = offset + BOUNDS_BYTES * len(arguments)
        """The size of the block with the bounds."""
        bounds = builder.address(block, [builder.i64(offset)], "i8")
        self._indices = {value.name: index for index, (_, value) in enumerate(arguments)}
        self._names = "\n".join(name for name, _ in arguments)
        self._table = bounds
        self._bounds: list[tuple[Value, Value]] = []
        for index in range(len(arguments)):
            places = (index * BOUNDS_BYTES, index * BOUNDS_BYTES + BOUNDS_BYTES // 2)
            begin, size = (
                lane_memory.read(builder, builder.address(bounds, [builder.i64(at)], "i8"), "i64", 1, floor=0)
                for at in places
            )
            self._bounds.append((begin, size))
        self._room: tuple[Value, Value] | None = None

    def structured(self, operation: Operation, access: Access) -> None:
        """Check the elements of an access that are in its bounds and that its mask sets."""
        builder, argument = self._builder, self._argument(access.base)
        first, size, exact, empty = self._extent(access)
        fits = builder.constant(0, "i1")
        if argument is not None:
            begin, available = self._bounds[argument]
            before = builder.sub(first, begin)
            fits = builder.logical_and(exact, builder.compare("ule", before, available))
            fits = builder.logical_and(fits, builder.compare("ule", size, builder.sub(available, before)))
        fits = empty if fits.constant == 0 else builder.binary("arith.ori", fits, empty)

        def each_lane() -> list[Value]:
            builder.forget_reads()
            evaluation = Evaluation(builder, frozenset(), {})

            def body(point: Point) -> None:
                pointer, offsets = access.locate(evaluation, point)
                if offsets is None and point.width > 1:
                    offsets = builder.iota(point.width, "i64")
                place = _Place(access.base, pointer, offsets, types.byte_size(access.element))
                wanted = access.lanes_in_bounds(evaluation, point)
                self._check_lanes(operation, access.element, access.shape, point, place, wanted)

            tile_loop(builder, access.shape, self._lowering.target.lanes, body)
            builder.forget_reads()
            return []

        def ask() -> list[Value]:
            whole = builder.select(exact, size, builder.i64(-1))
            site = self._site(operation, access.element, access.shape, argument)
            reached = self._lowering.data.call(REACHES, [site, self._table, first, whole], "i32")
            assert reached is not None
            reaches = builder.compare("ne", reached, builder.constant(0, "i32"))
            return builder.if_else(reaches, list, each_lane)

        builder.if_else(fits, list, ask)

    def explicit(
        self,
        operation: Operation,
        base: Value,
        offsets: Tensor,
        unit: str,
        element: str,
        mask: Tensor | None,
    ) -> None:
        """Check the elements at explicit `offsets`, in `unit`s, that the `mask` sets."""
        inputs = [offsets] if mask is None else [offsets, mask]

        def body(evaluation: Evaluation, point: Point) -> None:
            pointer, lanes = locate_explicit(evaluation, point, base, offsets, unit)
            wanted = None if mask is None else evaluation.at(mask, point)
            place = _Place(base, pointer, lanes, types.byte_size(unit))
            self._check_lanes(operation, element, offsets.shape, point, place, wanted)

        self._lowering.tile(operation, offsets.shape, inputs, body)

    def _argument(self, pointer: Value) -> int | None:
        """The index of the argument that a pointer was computed from; None if not known."""
        origin = self._lowering.part(Origins).get(pointer.name)
        return None if origin is None else self._indices[origin.name]

    def _extent(self, access: Access) -> tuple[Value, Value, Value, Value]:
        """The extent of an access: its lowest address, its size in bytes, i1 whether these two are exact, i1 whether it
        is empty.

        The extent comes from the bounds alone, and reaches from the lowest address to the end of the highest element.
        """
        builder = self._builder
        zero, one, no = builder.i64(0), builder.i64(1), builder.constant(0, "i1")
        terms, span, exact, empty = [access.offset], zero, builder.constant(1, "i1"), no
        for dimension, (extent, stride) in enumerate(zip(access.shape, access.strides, strict=True)):
            first, last = zero, builder.i64(extent - 1)
            if access.low:
                first, last = access.low[dimension], builder.sub(access.high[dimension], one)
                nothing = builder.compare("slt", last, first)
                empty = nothing if empty.constant == 0 else builder.binary("arith.ori", empty, nothing)
            largest = _STRIDE
            if dimension in access.wraps:
                start, period = access.wraps[dimension]
                length = builder.binary("arith.maxsi", period, builder.sub(zero, period))
                last = builder.sub(builder.binary("arith.maxsi", length, one), one)
                first = builder.select(builder.compare("sge", start, zero), zero, builder.sub(zero, last))
                exact = builder.logical_and(exact, self._is_below(period, _PERIOD))
                largest = _WRAPPED_STRIDE
            exact = builder.logical_and(exact, self._is_below(stride, largest))
            ends = builder.mul(first, stride), builder.mul(last, stride)
            low, high = (self._chosen(name, *ends) for name in ("minsi", "maxsi"))
            terms.append(low)
            span = builder.add(span, builder.sub(high, low))
        size = builder.i64(types.byte_size(access.element))
        lowest = builder.address(access.base, terms, types.storage(access.element))
        return address(builder, lowest), builder.mul(builder.add(span, one), size), exact, empty

    def _is_below(self, value: Value, limit: int) -> Value:
        """i1: whether -limit <= value < limit, for an i64."""
        builder = self._builder
        if isinstance(value.constant, int):
            return builder.constant(-limit <= value.constant < limit, "i1")
        return builder.compare("ult", builder.add(value, builder.i64(limit)), builder.i64(2 * limit))

    def _chosen(self, name: str, a: Value, b: Value) -> Value:
        """The smaller or the larger of two i64."""
        if isinstance(a.constant, int) and isinstance(b.constant, int):
            return self._builder.i64((min if name == "minsi" else max)(a.constant, b.constant))
        return self._builder.binary(f"arith.{name}", a, b)

    def _site(self, operation: Operation, element: str, shape: Sequence[int], argument: int | None) -> Value:
        """The address of a table that describes an access to the host.

        It holds the kind, the bytes of an element, the index of the argument or -1, the number of arguments, the rank
        and the sizes.
        """
        kind = _KINDS.get(operation.name, _ATOMIC)
        number = -1 if argument is None else argument
        facts = [kind, types.byte_size(element), number, len(self._bounds), len(shape), *shape]
        return self._lowering.data.table(facts)

    def _check_lanes(
        self,
        operation: Operation,
        element: str,
        shape: Sequence[int],
        point: Point,
        place: _Place,
        wanted: Value | None,
    ) -> None:
        """End the kernel if a lane of `point` that is `wanted` lies outside the arguments' bounds."""
        builder, data = self._builder, self._lowering.data
        base, pointer, offsets, unit = place
        at = address(builder, pointer)
        lanes = max(offsets.lanes if offsets is not None else 1, 1 if wanted is None else wanted.lanes)
        if offsets is not None:
            moved = builder.mul(offsets, builder.broadcast(builder.i64(unit), lanes))
            at = builder.add(builder.broadcast(at, lanes), moved)
        at = builder.broadcast(at, lanes)
        argument = self._argument(base)
        within = self._within(at, element, argument)
        type = within.type
        bad = builder.binary("arith.xori", within, builder.constant(1, type))
        if wanted is not None:
            wanted = builder.broadcast(wanted, lanes)
            bad = builder.logical_and(bad, wanted)
        some = bad
        if lanes > 1:
            text = f"vector.reduction <or>, {bad.name} : {type} into i1"
            some = builder.pure(text, "i1", (bad,), floor=builder.level)

        def tell() -> list[Value]:
            addresses, set_lanes = self._rooms()
            lane_memory.write(builder, addresses, at)
            lane_memory.write(builder, set_lanes, wanted if wanted is not None else builder.constant(1, type))
            number = builder.i64(0)
            for index, size in zip(point.indices, shape, strict=True):
                number = builder.add(builder.mul(number, builder.i64(size)), index)
            where, names = data.text(_where(operation)), data.text(self._names)
            site = self._site(operation, element, shape, argument)
            count = builder.i64(lanes)
            programs = self._lowering.grid.program_ids
            data.call(
                ACCESS,
                [where, names, site, self._table, addresses, set_lanes, count, number, *programs],
            )
            return []

        builder.if_else(some, tell)

    def _within(self, at: Value, element: str, argument: int | None) -> Value:
        """i1 for each address: whether an element there lies in the given argument, or in any if `argument` is None."""
        builder, lanes = self._builder, at.lanes
        chosen = self._bounds if argument is None else [self._bounds[argument]]
        within = builder.constant(0, "i1" if lanes == 1 else f"vector<{lanes}xi1>")
        for begin, size in chosen:
            ends = builder.sub(size, builder.i64(types.byte_size(element) - 1))
            ends = builder.binary("arith.maxsi", ends, builder.i64(0))
            before = builder.sub(at, builder.broadcast(begin, lanes))
            inside = builder.compare("ult", before, builder.broadcast(ends, lanes))
            within = inside if len(chosen) == 1 else builder.binary("arith.ori", within, inside)
        return within

    def _rooms(self) -> tuple[Value, Value]:
        """Room for the addresses of the lanes, and for which of them are wanted; the host reads both."""
        if self._room is None:
            lanes = self._lowering.target.lanes
            self._room = self._lowering.scratch.keep(8 * lanes), self._lowering.scratch.keep(lanes)
        return self._room


def _where(operation: Operation) -> str:
    """File, line and function of an access, and the source line itself."""
    location = operation.location
    if location is None:
        return ""
    line = linecache.getline(location.file, location.line).strip()
    return f"{place_of(location)}: {line}" if line else place_of(location)
