"""The combined elements and partial results of several reductions that run in one loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from triton_porting_kit.compiler.dialect.operations import Reduce
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Block, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.reductions import number_extremes
from triton_porting_kit.compiler.loops.reductions.accumulation import Accumulation
from triton_porting_kit.compiler.loops.reductions.combine import takes_vectors
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Tensor, closure

LOOK_AHEAD = 32
"""How many of the following operations are searched for reductions that can run in the same loop."""
TOGETHER = 4
"""Most results to compute in one loop: their partial results must stay in registers."""


def identity(operation: str, element: str) -> int | float | str | None:
    """The neutral element of an ``arith`` operation, as a literal; None if there is none or it is not known."""
    if element in ("f32", "f64"):
        # The maximum of NaN and x is x; the sum of -0 and x is x, even if x is 0.
        nan = "0x7FC00000" if element == "f32" else "0x7FF8000000000000"
        floats: dict[str, int | float | str] = {
            "arith.addf": -0.0,
            "arith.mulf": 1.0,
            "arith.maxnumf": nan,
            "arith.minnumf": nan,
            "arith.maximumf": -math.inf,
            "arith.minimumf": math.inf,
        }
        return floats.get(operation)
    if element not in ("i8", "i16", "i32", "i64"):
        return None
    half = 1 << (types.BITS[element] - 1)
    integers = {
        "arith.addi": 0,
        "arith.muli": 1,
        "arith.ori": 0,
        "arith.xori": 0,
        "arith.andi": -1,
        "arith.maxsi": -half,
        "arith.minsi": half - 1,
        "arith.maxui": 0,
        "arith.minui": -1,
    }
    return integers.get(operation)


class Combination:
    """The elements of the inputs of several reductions, one reduction after the other.

    With `may_repeat`, it may be one of numbers only, of which `extreme` is the operation (see `number_extremes`), and
    `ordinary` is the combination of what may be no number.
    """

    def __init__(
        self, lowering: Lowering, operations: Sequence[Operation], *, may_repeat: bool = False
    ) -> None:
        self._lowering = lowering
        self.extreme = number_extremes.extreme_of(lowering, operations) if may_repeat else None
        self.ordinary = self if self.extreme is None else Combination(lowering, operations)
        self._parts = [
            (
                Accumulation(lowering, operation.regions[0], operation.operands),
                operation.regions[0],
                len(operation.operands),
            )
            for operation in operations
        ]

    @property
    def takes_vectors(self) -> bool:
        """Whether whole vectors can be combined."""
        return all(takes_vectors(region) for _, region, _ in self._parts)

    def held_elements(self, elements: Sequence[str]) -> list[str]:
        """The types of partial results, of those of the elements."""
        accumulations = [accumulation for accumulation, _, count in self._parts for _ in range(count)]
        return [part.held_element(each) for part, each in zip(accumulations, elements, strict=True)]

    def hold(self, values: Sequence[Value]) -> list[Value]:
        """Convert elements to partial results."""
        return self._each(lambda part, held: part.hold(held), values)

    def release(self, held: Sequence[Value]) -> list[Value]:
        """Convert partial results to elements."""
        return self._each(lambda part, held: part.release(held), held)

    def combine(self, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        """Combine the partial results `a` with the partial results or elements `b`, lane by lane."""
        if self.extreme is not None:
            return [number_extremes.combined(self._lowering.builder, self.extreme, a[0], b[0])]
        return self._each(lambda part, left, right: part.combine(left, right), a, b)

    def _each(self, function: Callable[..., list[Value]], *values: Sequence[Value]) -> list[Value]:
        results: list[Value] = []
        for accumulation, _, count in self._parts:
            at = len(results)
            results += function(accumulation, *(group[at : at + count] for group in values))
        return results

    def neutral(self) -> list[Value] | None:
        """Neutral scalars for all combinations; None unless each is a single operation with a neutral element."""
        values = []
        for accumulation, region, _ in self._parts:
            first, last = region.operations[0], region.operations[-1]
            alone = len(region.operations) == 2 and last.operands == first.results
            if not alone or set(first.operands) != set(region.arguments):
                return None
            element = accumulation.held_element(first.operands[0].type.element)
            literal = identity(first.name, element)
            if self.extreme is not None:
                literal = number_extremes.FIRST[self.extreme]
            if literal is None:
                return None
            values.append(self._lowering.builder.constant(literal, element))
        return values


def companions(lowering: Lowering, operation: Operation) -> list[Operation]:
    """This reduction and later ones that can share its loop.

    They reduce along the same dimension, read what this one reads, and depend on nothing in between.
    """
    found = [operation]
    if not _is_simple(operation.regions[0]):
        return found
    shape, axis = operation.operands[0].type.shape, Reduce(operation).axis
    following = operation.block.operations[operation.position + 1 : operation.position + 1 + LOOK_AHEAD]
    for other in following:
        alike = (
            Reduce.isa(other)
            and other.operands[0].type.shape == shape
            and Reduce(other).axis == axis
            and _is_simple(other.regions[0])
        )
        if not alike or not all(map(lowering.advance, other.operands)):
            continue
        sources = _sources(lowering.tensor(operand) for operand in operation.operands)
        if sources.isdisjoint(_sources(lowering.tensor(operand) for operand in other.operands)):
            continue
        found.append(other)
        if len(found) == TOGETHER:
            break
    return found


def _is_simple(region: Block) -> bool:
    return len(region.operations) == 2 and takes_vectors(region)


def _sources(tensors: Iterable[Tensor]) -> set[object]:
    """The memory that tensors are computed from."""
    return {part for part in closure(tensors) if isinstance(part, Load | Buffer)}
