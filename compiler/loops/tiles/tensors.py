"""Tensor values during loop lowering: how to compute a tensor's elements at a point of a tile loop.

A tensor of the structured form becomes a `Tensor` that is evaluated where it is consumed, so that chains of
element-wise operations fuse into the consumer's loop. A `Buffer` is different: its elements are already in scratch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.runs import DIVIDES, RULES, UNIFORM, Run, uniform

if TYPE_CHECKING:
    from triton_porting_kit.compiler.loops.ir.program import Def
    from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation

MEMORY_COST = 1
GATHER_COST = 8
FUNCTION_COST = 8
EXPENSIVE = 8
"""A value of at least this cost that several loops need is kept in scratch instead of being recomputed."""


@dataclass(eq=False, repr=False)
class Point:
    """A position in a tile: an i64 index per dimension. `width` lanes lie along dimension `axis` (-1: one element)."""

    indices: tuple[Value, ...]
    axis: int
    width: int

    @cached_property
    def key(self) -> tuple[object, ...]:
        return (*(index.name for index in self.indices), self.axis, self.width)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def moved(self, dimension: int, index: Value) -> Point:
        """The point with another index along a dimension."""
        return Point(
            (*self.indices[:dimension], index, *self.indices[dimension + 1 :]), self.axis, self.width
        )

    @property
    def first(self) -> Point:
        """The first lane alone."""
        return Point(self.indices, -1, 1)

    def pick(self, dimensions: Sequence[int | None], zero: Value) -> Point:
        """The point of a tensor whose dimension d is this point's dimension `dimensions[d]` (None: index 0)."""
        indices = tuple(zero if d is None else self.indices[d] for d in dimensions)
        axis = dimensions.index(self.axis) if self.axis >= 0 and self.axis in dimensions else -1
        return Point(indices, axis, self.width if axis >= 0 else 1)


JoinAt: TypeAlias = "tuple[Tensor, int]"
"""A tensor, and the first of the two dimensions that have to join."""


class Tensor:
    """A tensor value. It is not an ABC, because `isinstance` of an ABC is ten times as slow.

    `operands` are the tensors that it reads. `own_cost` is what it adds to the cost of an element, in simple
    operations. `buffer` holds its elements once they are kept in scratch.
    """

    definition: Def | None = None
    buffer: Buffer | None = None
    divides = False
    """Whether evaluating it takes a division (see `runs`)."""
    stays_in_chunk = False
    """Whether its operands are evaluated in the same chunk of lanes, although in other lanes of it."""
    asks_for_runs = False
    """Whether its elements are read in another way where its operands are runs."""

    def __init__(
        self, shape: tuple[int, ...], element: str, operands: Sequence[Tensor] = (), cost: int = 0
    ) -> None:
        self.shape = shape
        self.element = element
        self.operands = tuple(operands)
        self.own_cost = cost
        if any(operand.divides for operand in self.operands):
            self.divides = True
        self.depth: int = 1 + max(
            (operand.depth for operand in self.operands if not operand.buffer), default=0
        )

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        """The elements at `point`: a vector of ``point.width`` lanes, or a scalar if all lanes are equal."""
        raise NotImplementedError

    def run(self, evaluation: Evaluation, point: Point) -> Run | None:
        """How the elements at `point` go on from lane to lane; None if that is not known."""
        return None

    @property
    def constant(self) -> int | None:
        """The integer that all elements are known to be."""
        return None

    def operand_dimensions(self, index: int) -> list[int | None]:
        """Which of this tensor's dimensions each dimension of operand `index` follows (None: always 0)."""
        return list(range(len(self.operands[index].shape)))

    def spreads(self, index: int) -> bool:
        """Whether several elements of this tensor read the same element of operand `index`."""
        followed = self.operand_dimensions(index)
        return any(size > 1 and d not in followed for d, size in enumerate(self.shape))

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        """What must join so that indices (i, j) along `dimension` and the next one may be (0, i * size + j).

        Returns operands, each with its first dimension of the two; None if this tensor cannot be indexed so.
        """
        return None

    def operands_join(self, dimension: int) -> list[JoinAt]:
        """All operands, each at `dimension`."""
        return [(operand, dimension) for operand in self.operands]


def joins(tensors: Iterable[Tensor], dimension: int) -> bool:
    """Whether all tensors, or the buffers that hold them, can be indexed with the two dimensions joined.

    Each is asked once for a dimension: operands are often shared, and paths to them can be exponentially many.
    """
    stack: list[JoinAt] = [(tensor, dimension) for tensor in tensors]
    asked: set[JoinAt] = set()
    while stack:
        tensor, at = stack.pop()
        if (tensor, at) in asked:
            continue
        asked.add((tensor, at))
        needed = (tensor.buffer or tensor).joins(at)
        if needed is None:
            return False
        stack += needed
    return True


def joining(inputs: Iterable[Tensor]) -> Callable[[int], bool]:
    """Whether a loop that evaluates `inputs` may join a dimension and the next one.

    Runs are followed through tensors in scratch, to what these were computed from (see `Evaluation.run`), and that may
    not join. So a loop that asks for runs, and reads scratch, joins nothing.
    """
    inputs = list(inputs)
    reached = [*inputs, *(operand for part in closure(inputs) for operand in part.operands)]
    asks = any(tensor.asks_for_runs or tensor.divides for tensor in reached)
    if asks and any(tensor.buffer is not None for tensor in reached):
        return lambda dimension: False
    return lambda dimension: joins(inputs, dimension)


def closure(inputs: Iterable[Tensor]) -> list[Tensor]:
    """The tensors that evaluating `inputs` evaluates, each once. A tensor in scratch does not evaluate its operands."""
    found: dict[Tensor, None] = {}
    stack = list(inputs)
    while stack:
        tensor = stack.pop()
        if tensor in found or tensor.buffer is not None:
            continue
        found[tensor] = None
        stack += tensor.operands
    return list(found)


class Splat(Tensor):
    """One scalar in every element."""

    def __init__(self, shape: tuple[int, ...], value: Value, element: str) -> None:
        super().__init__(shape, element)
        self.value = value

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        return self.value

    def run(self, evaluation: Evaluation, point: Point) -> Run | None:
        return UNIFORM

    @property
    def constant(self) -> int | None:
        known = self.value.constant
        return known if isinstance(known, int) else None

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        return ()


class Range(Tensor):
    """start, start + 1, ... along the only dimension, as i32."""

    def __init__(self, size: int, start: int) -> None:
        super().__init__((size,), "i32")
        self.start = start

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        builder = evaluation.builder
        index = builder.cast("arith.trunci", point.indices[0], "i32")
        if self.start:
            index = builder.add(index, builder.constant(self.start, "i32"))
        if point.axis < 0:
            return index
        return builder.add(builder.broadcast(index, point.width), builder.iota(point.width))

    def run(self, evaluation: Evaluation, point: Point) -> Run | None:
        return UNIFORM if point.axis < 0 else Run(1)


class Elementwise(Tensor):
    """`function` applied to the elements of the operands, all of one shape."""

    def __init__(
        self,
        shape: tuple[int, ...],
        element: str,
        operands: Sequence[Tensor],
        function: Callable[[LoopBuilder, list[Value]], Value],
        cost: int = 1,
        name: str = "",
    ) -> None:
        """`name` is that of the operation in `runs.RULES`."""
        super().__init__(shape, element, operands, cost)
        self._function = function
        self.name = name
        if name in DIVIDES:
            self.divides = True

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        values = [evaluation.at(operand, point) for operand in self.operands]
        lanes = {value.lanes for value in values}
        if len(lanes) > 1:
            values = [evaluation.builder.broadcast(value, max(lanes)) for value in values]
        return self._function(evaluation.builder, values)

    def run(self, evaluation: Evaluation, point: Point) -> Run | None:
        runs = []
        for operand in self.operands:
            run = evaluation.run(operand, point)
            if run is None:
                return None
            runs.append(run)
        if not any(run.step for run in runs):
            return uniform(runs)
        rule = RULES.get(self.name)
        return None if rule is None else rule(self, point, self.operands, runs)

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        return self.operands_join(dimension)


def is_operation(tensor: Tensor, name: str) -> bool:
    """Whether a tensor is the result of the element-wise operation of this name."""
    return isinstance(tensor, Elementwise) and tensor.name == name


class Reindexed(Tensor):
    """An operand with other dimensions: broadcast, unit dimensions added or dropped, or transposed.

    `dimensions[d]` is the dimension of this tensor that dimension d of the operand follows (None: index 0).
    """

    def __init__(self, shape: tuple[int, ...], operand: Tensor, dimensions: Sequence[int | None]) -> None:
        super().__init__(shape, operand.element, (operand,))
        self._dimensions = list(dimensions)

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        return evaluation.at(self.operands[0], point.pick(self._dimensions, evaluation.zero))

    def run(self, evaluation: Evaluation, point: Point) -> Run | None:
        return evaluation.run(self.operands[0], point.pick(self._dimensions, evaluation.zero))

    def operand_dimensions(self, index: int) -> list[int | None]:
        return self._dimensions

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        followed = [d for d in (dimension, dimension + 1) if d in self._dimensions]
        if len(followed) < 2:
            return None if followed else ()
        at = self._dimensions.index(dimension)
        return self.operands_join(at) if self._dimensions[at + 1 : at + 2] == [dimension + 1] else None


def unit_reshape(source: tuple[int, ...], target: tuple[int, ...]) -> list[int | None] | None:
    """Dimensions for `Reindexed` when two shapes differ only in dimensions of size 1, else None."""
    wide = [d for d, size in enumerate(target) if size != 1]
    if [source[d] for d in range(len(source)) if source[d] != 1] != [target[d] for d in wide]:
        return None
    remaining = iter(wide)
    return [None if size == 1 else next(remaining) for size in source]


class Buffer(Tensor):
    """Elements in scratch, contiguous and row-major. `write` writes them; any point can be read.

    `shared`: another value uses the same memory, so this one must not be overwritten even after its last use.
    `on_chip`: it holds what was moved from global memory, within the bounds of an access.
    """

    def __init__(self, shape: tuple[int, ...], element: str, pointer: Value) -> None:
        super().__init__(shape, element)
        self.pointer = pointer
        self.strides = row_major(shape)
        self.shared = False
        self.on_chip = False
        self.most_lanes = sys.maxsize
        """Most lanes that are written at a time."""

    @property
    def is_dense(self) -> bool:
        """Whether elements are contiguous and row-major, as in all buffers but packed factors of products."""
        return self.strides == row_major(self.shape)

    def renamed(self) -> Buffer:
        """The same memory for another value, which replaces this one."""
        return Buffer(self.shape, self.element, self.pointer)

    def reshaped(self, shape: tuple[int, ...]) -> Buffer:
        """The same elements in the same order with another shape. Both values share the memory."""
        other = Buffer(shape, self.element, self.pointer)
        self.shared = other.shared = True
        return other

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        return ()

    def address(self, builder: LoopBuilder, point: Point) -> Value:
        terms = [
            builder.mul(index, builder.i64(stride))
            for index, stride in zip(point.indices, self.strides, strict=True)
        ]
        return builder.address(self.pointer, terms, types.storage(self.element))

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        builder = evaluation.builder
        address = self.address(builder, point)
        stride = self.strides[point.axis] if point.axis >= 0 else 0
        lanes = point.width if point.axis >= 0 else 1
        if lanes == 1 or stride == 1:
            return lane_memory.read(builder, address, self.element, lanes, floor=evaluation.floor)
        pointers = self._pointers(builder, address, lanes, stride)
        return lane_memory.gather(builder, pointers, self.element, floor=evaluation.floor)

    def _pointers(self, builder: LoopBuilder, address: Value, lanes: int, stride: int) -> Value:
        offsets = builder.mul(builder.iota(lanes, "i64"), builder.constant(stride, vector_type("i64", lanes)))
        return lane_memory.pointers_at(builder, address, offsets, types.storage(self.element))

    def write(self, builder: LoopBuilder, point: Point, value: Value) -> None:
        """Store the elements at `point`."""
        lanes = point.width if point.axis >= 0 else 1
        value = builder.broadcast(value, lanes)
        address = self.address(builder, point)
        if lanes == 1 or self.strides[point.axis] == 1:
            lane_memory.write(builder, address, value)
        else:
            pointers = self._pointers(builder, address, lanes, self.strides[point.axis])
            lane_memory.scatter(builder, pointers, value)


def row_major(shape: Sequence[int]) -> list[int]:
    """Strides in elements of a contiguous row-major tensor."""
    strides, step = [1] * len(shape), 1
    for d in reversed(range(len(shape))):
        strides[d] = step
        step *= shape[d]
    return strides
