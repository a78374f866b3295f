"""Loop peeling: the part of a loop that needs no masks, and the part where all accesses are out of bounds.

The accesses of a loop have bounds. Below some index all of them are in bounds: there, whole chunks are read and written
without masks. From some index on all of them are out of bounds: there, a store has nothing to do, and a reduction meets
a single repeated value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.tiles.access import Access
from triton_porting_kit.compiler.loops.tiles.access import Load as LoadTensor
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.prefix_masks import DiagonalMask, PrefixMask
from triton_porting_kit.compiler.loops.tiles.tensors import (
    Buffer,
    Elementwise,
    Point,
    Reindexed,
    Splat,
    Tensor,
    is_operation,
)
from triton_porting_kit.compiler.loops.tiles.tile_loops import innermost_axis, rounded_down, tile_loop

SHARED = 64
"""If a chunk's code takes at least so many simple operations, it is emitted once for both parts of the loop."""

READ_FIRST = 4
"""Most vectors to read ahead of everything else in a shared loop: they occupy registers from then on."""

Dimensions = tuple[int | None, ...]
"""The loop dimension that each dimension of a tensor follows; None: no dimension, or not index by index."""


def uses(inputs: Iterable[Tensor], shape: Sequence[int]) -> dict[tuple[Tensor, Dimensions], None]:
    """The tensors that loops over `shape` evaluate for `inputs`, with the loop dimensions that they follow."""
    found: dict[tuple[Tensor, Dimensions], None] = {}
    same: Dimensions = tuple(range(len(shape)))
    unknown: Dimensions = (None,) * len(shape)
    stack = [
        (tensor, same if len(tensor.shape) == len(shape) else unknown[: len(tensor.shape)])
        for tensor in inputs
    ]
    while stack:
        use = stack.pop()
        if use in found:
            continue
        found[use] = None
        tensor, followed = use
        if tensor.buffer is None:
            stack += [
                (operand, _through(tensor, index, followed)) for index, operand in enumerate(tensor.operands)
            ]
    return found


def _through(tensor: Tensor, index: int, followed: Dimensions) -> Dimensions:
    """The loop dimensions that an operand follows, if the tensor that reads it follows `followed`."""
    operand = tensor.operands[index]
    if not operand.shape:
        return ()
    dimensions = tensor.operand_dimensions(index)
    if operand.shape == tensor.shape and dimensions == list(range(len(followed))):
        return followed
    return tuple(
        followed[d] if d is not None and d < len(followed) and tensor.shape[d] == size else None
        for d, size in zip(dimensions, operand.shape, strict=True)
    )


class PeeledLoop:
    """The loop along `axis` in a loop nest over `shape` that evaluates `inputs` and stores to `written`.

    `bounds`: the index ranges that the loops along other dimensions are restricted to.
    """

    def __init__(
        self,
        builder: LoopBuilder,
        inputs: Iterable[Tensor],
        shape: Sequence[int],
        axis: int,
        *,
        written: Sequence[Access] = (),
        bounds: Mapping[int, tuple[Value, Value]] | None = None,
    ) -> None:
        self._builder = builder
        self._shape = tuple(shape)
        self._axis = axis
        self._bounds = {d: pair for d, pair in (bounds or {}).items() if d != axis and shape[d] > 1}
        self._uses = uses(inputs, shape)
        accesses = [(t.access, dims) for t, dims in self._uses if isinstance(t, LoadTensor) and not t.buffer]
        accesses += [(access, tuple(range(len(shape)))) for access in written]
        self._accesses = [(access, dims) for access, dims in accesses if not access.is_plain]
        self._alone = [] if self._accesses else self._masks_alone()
        self._masks = frozenset(self._alone) if self._alone else self._implied_masks()

    def _masks_alone(self) -> list[PrefixMask]:
        """The masks along the axis, where no access has bounds because what is loaded lies in on-chip memory."""
        if not any(isinstance(tensor, Buffer) and tensor.on_chip for tensor, _ in self._uses):
            return []
        found: dict[PrefixMask, bool] = {}
        for mask, followed in self._uses:
            if isinstance(mask, PrefixMask) and mask.buffer is None:
                found[mask] = found.get(mask, True) and followed[mask.dimension] == self._axis
        return [mask for mask, along in found.items() if along]

    def _implied_masks(self) -> frozenset[Tensor]:
        """The masks that are set up to the same index along a dimension as an access is in bounds."""
        ends: dict[int, set[Value]] = {}
        for access, followed in self._accesses:
            for dimension, high in zip(followed, access.high, strict=False):
                if dimension is not None:
                    ends.setdefault(dimension, set()).add(high)
        found: dict[Tensor, bool] = {}
        for mask, followed in self._uses if ends else ():
            if isinstance(mask, PrefixMask) and not isinstance(mask, DiagonalMask) and mask.buffer is None:
                along = followed[mask.dimension]
                implied = along is not None and mask.end(self._builder) in ends.get(along, ())
                found[mask] = found.get(mask, True) and implied
        return frozenset(mask for mask, implied in found.items() if implied)

    def _masks_used(self) -> list[tuple[PrefixMask, Dimensions]]:
        """The implied masks, with the loop dimensions that they follow."""
        return [
            (mask, followed)
            for mask, followed in self._uses
            if isinstance(mask, PrefixMask) and mask in self._masks
        ]

    @property
    def is_split(self) -> bool:
        """Whether any access has bounds, or masks end along the axis, so that the loop has two parts."""
        return bool(self._accesses or self._alone)

    @property
    def unmasked(self) -> frozenset[object]:
        """The accesses that are in bounds in the first part, and the masks that are set there."""
        return self._masks.union(access for access, _ in self._accesses)

    @property
    def is_pinned(self) -> bool:
        """Whether an access does not move along the axis. Then it may be read only if the loop has an iteration."""
        return any(
            all(
                stride.constant == 0
                for d, stride in zip(followed, access.strides, strict=True)
                if d == self._axis
            )
            for access, followed in self._accesses
        )

    def is_shared(self, *, masks_gathers: bool) -> bool:
        """Whether both parts are one loop that tests for each chunk whether it is in bounds.

        Two loops run faster because they do not test each chunk, but need twice the code. They are merged where an
        element takes much computation: there code takes long to compile, and the test's cost is small. `masks_gathers`:
        a masked gather takes no longer than an unmasked one.
        """
        same = tuple(range(len(self._shape)))
        simple = (
            not self._alone
            and sum(tensor.own_cost for tensor in {tensor for tensor, _ in self._uses}) >= SHARED
            and all(
                followed == same
                for mask, followed in self._masks_used()
                if followed[mask.dimension] == self._axis
            )
            and all(followed == same for _, followed in self._accesses)
            and not any(access.mask is not None or access.wraps for access, _ in self._accesses)
        )
        if not simple:
            return False
        loads = self._loads(contiguous=True)
        return (
            len(loads) <= READ_FIRST
            and all(load.other is None or isinstance(load.other, Splat) for load in loads)
            and (masks_gathers or not self._loads(contiguous=False))
        )

    def settle(self, evaluation: Evaluation, point: Point) -> None:
        """Begin a chunk of a shared loop: test whether it is in bounds, and evaluate everything that depends on the
        answer.
        """
        masks = [mask for mask, followed in self._masks_used() if followed[mask.dimension] == self._axis]
        known = [*self._loads(contiguous=True), *masks]
        evaluation.settle(known, [load.access for load in self._loads(contiguous=False)], point)

    def _loads(self, *, contiguous: bool) -> list[LoadTensor]:
        """The loads with bounds that read contiguous elements along the axis, or those that gather them."""
        loads = (tensor for tensor, _ in self._uses if isinstance(tensor, LoadTensor) and not tensor.buffer)
        bounded = (load for load in loads if not load.access.is_plain)
        return [load for load in bounded if load.access.is_contiguous(self._axis) == contiguous]

    def whole(self, point: Point, step: int) -> Value:
        """The index, a multiple of `step`, below which all accesses are in bounds. `point` gives the other indices."""
        builder = self._builder
        condition = builder.constant(1, "i1")
        limit: Value | None = None
        for mask in self._alone:
            end = mask.end(builder)
            limit = end if limit in (None, end) else builder.binary("arith.minsi", limit, end)
        for access, followed in self._accesses:
            condition = builder.logical_and(condition, access.wraps_nowhere(builder))
            if access.exempt is not None:
                condition = builder.logical_and(condition, access.exempt)
            for dimension, low, high, size in zip(
                followed, access.low, access.high, access.shape, strict=False
            ):
                if dimension is None or dimension == self._axis:
                    condition = builder.logical_and(condition, builder.compare("eq", low, builder.i64(0)))
                if dimension == self._axis:
                    limit = high if limit in (None, high) else builder.binary("arith.minsi", limit, high)
                elif dimension is None:
                    condition = builder.logical_and(condition, builder.compare("eq", high, builder.i64(size)))
                elif self._bounds.get(dimension) != (low, high):
                    condition = builder.logical_and(condition, self._inside(point, dimension, low, high))
        size = self._shape[self._axis]
        last = builder.i64(size) if limit is None else rounded_down(builder, limit, step)
        return builder.select(condition, last, builder.i64(0))

    def _inside(self, point: Point, dimension: int, low: Value, high: Value) -> Value:
        """i1: all lanes of `point` are within the bounds of a dimension."""
        builder = self._builder
        index = point.indices[dimension]
        lanes = point.width if dimension == point.axis else 1
        last = builder.add(index, builder.i64(lanes - 1))
        inside = builder.compare("slt", last, high)
        if low.constant == 0:
            return inside
        return builder.logical_and(inside, builder.compare("sge", index, low))

    def past(self, step: int) -> Value:
        """The index, a multiple of `step`, from which on no access is in bounds."""
        builder = self._builder
        limit: Value | None = None
        for access, followed in self._accesses:
            for dimension, high in zip(followed, access.high, strict=False):
                if dimension == self._axis:
                    limit = high if limit in (None, high) else builder.binary("arith.maxsi", limit, high)
        if limit is None:
            return builder.i64(self._shape[self._axis])
        return rounded_down(builder, builder.add(limit, builder.i64(step - 1)), step)

    def end_of(self, mask: Tensor) -> Value | None:
        """The index along the axis from which on `mask` is not set anywhere, where accesses end there, too.

        None if it has no such end. Only accesses tell that the indices in a mask do not wrap around.
        """
        stack: list[tuple[Tensor, Dimensions]] = [(mask, tuple(range(len(self._shape))))]
        while stack:
            tensor, followed = stack.pop()
            if isinstance(tensor, DiagonalMask):
                continue
            if isinstance(tensor, PrefixMask) and tensor in self._masks:
                if followed[tensor.dimension] == self._axis:
                    return tensor.end(self._builder)
            elif tensor.buffer is None and (
                is_operation(tensor, "arith.andi") or isinstance(tensor, Reindexed)
            ):
                stack += [(part, _through(tensor, i, followed)) for i, part in enumerate(tensor.operands)]
        return None

    def is_uniform(self, tensor: Tensor, followed: Dimensions | None = None) -> bool:
        """Whether the tensor's elements are equal along the axis from index `past` on, where all accesses are out of
        bounds.
        """
        followed = tuple(range(len(self._shape))) if followed is None else followed
        if isinstance(tensor, Splat) or not tensor.shape:
            return True
        if None not in followed and self._axis not in followed:
            return True
        if any(d is None and size > 1 for d, size in zip(followed, tensor.shape, strict=True)):
            return False
        if tensor.buffer is not None or isinstance(tensor, Buffer):
            return self._axis not in followed
        if tensor in self._masks and not isinstance(tensor, DiagonalMask):
            return True
        if isinstance(tensor, LoadTensor):
            return bool(tensor.access.low) and (
                tensor.other is None or self.is_uniform(tensor.other, followed)
            )
        if isinstance(tensor, Elementwise | Reindexed):
            return all(
                self.is_uniform(operand, _through(tensor, index, followed))
                for index, operand in enumerate(tensor.operands)
            )
        return False


@dataclass(frozen=True)
class Streams:
    """Stores to `targets` past the caches, for rows of a tile where a condition says so at run time.

    `condition` takes the first point of the row, and the index along the lanes where it ends, and gives an i1.
    `branches`: each store tests it, instead of a loop for each case.
    """

    targets: frozenset[Access]
    condition: Callable[[Point, Value], Value]
    branches: bool


def tile_in_parts(
    builder: LoopBuilder,
    shape: Sequence[int],
    lanes: int,
    body: Callable[[Evaluation, Point], None],
    span: PeeledLoop,
    bounds: dict[int, tuple[Value, Value]] | None,
    kept: dict[Tensor, Buffer],
    streams: Streams | None = None,
    *,
    masks_gathers: bool = False,
) -> None:
    """Emit loops over a tile. Along the lanes, chunks wholly in bounds come first and have no masks; the others follow.

    Both parts are one loop if `PeeledLoop.is_shared`, which takes `masks_gathers`. `span` is the peeled loop along the
    lanes' dimension. `bounds` and `lanes` are as in `tile_loop`, `kept` as in `Evaluation`. Non-temporal
    stores have a loop of their own, or are a branch in the loop: see `Streams`.
    """
    axis = innermost_axis(shape)
    masked = Evaluation(builder, frozenset(), kept)
    targets = frozenset[Access]() if streams is None else streams.targets
    branches = streams is None or streams.branches

    def line(point: Point, first: Value, last: Value) -> None:
        points = shape[axis] // point.width

        def chunks(evaluation: Evaluation, start: Value, stop: Value) -> list[Value]:
            continues = evaluation is masked
            with builder.loop(
                start, stop, builder.i64(point.width), points=points, continues=continues
            ) as region:
                body(evaluation, point.moved(axis, region.induction))
            return []

        def plain(past: Value | None, targets: frozenset[Access] = frozenset()) -> list[Value]:
            evaluation = Evaluation(builder, span.unmasked, kept, targets, past=past)
            return chunks(evaluation, builder.i64(0), whole)

        def unmasked() -> list[Value]:
            if branches:
                return plain(past, targets)
            assert past is not None
            return builder.if_else(past, lambda: plain(None, targets), lambda: plain(None))

        whole = span.whole(point, point.width)
        past = None if streams is None else streams.condition(point, whole)
        asks = branches and point.axis == axis and whole.constant is None
        if asks and span.is_shared(masks_gathers=masks_gathers):
            with builder.loop(first, last, builder.i64(point.width), points=points) as region:
                here = point.moved(axis, region.induction)
                inside = builder.compare("slt", region.induction, whole)
                split = inside, span.unmasked
                evaluation = Evaluation(builder, frozenset(), kept, targets, split, past)
                span.settle(evaluation, here)
                body(evaluation, here)
            return
        if span.is_pinned:
            builder.if_else(builder.compare("sgt", whole, builder.i64(0)), unmasked)
        else:
            unmasked()
        if whole.constant == shape[axis]:
            return
        start = whole if first.constant == 0 else builder.binary("arith.maxsi", whole, first)
        chunks(masked, start, last)

    tile_loop(builder, shape, lanes, lambda point: body(masked, point), bounds=bounds, line=line)
