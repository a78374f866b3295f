"""Which loads of a nest's products are windows of one tile: addresses and bounds, instance by instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.compiler.dialect.operations import Load
from triton_porting_kit.compiler.dialect.types import element_of, shape_of
from triton_porting_kit.compiler.structured.poly import Poly
from triton_porting_kit.toolchain.mlir import ir

from .integers import Integers, Unknown
from .nests import Nest, constant


@dataclass(frozen=True)
class Bound:
    """The condition ``factor * index + rest >= 0`` on a dimension's index; on none if `dim` is None."""

    dim: int | None
    factor: int
    rest: Poly


@dataclass(frozen=True)
class Access:
    """A load of a product, where the loops have certain counters."""

    load: Any
    shape: tuple[int, ...]
    offset: Poly
    strides: tuple[Poly, ...]
    bounds: tuple[Bound, ...]
    conditions: tuple[Any, ...]
    """Booleans that are computed outside of the loops."""

    @property
    def kind(self) -> tuple[Any, ...]:
        """What all instances of a window have in common."""
        base = Load(self.load).base
        bounds = tuple((bound.dim, bound.factor) for bound in self.bounds)
        return (base, element_of(self.load.results[0]), self.shape, self.strides, bounds, self.conditions)

    @property
    def sums(self) -> list[Poly]:
        """What differs between the instances of a window."""
        return [self.offset, *(bound.rest for bound in self.bounds)]


class Reader:
    """Reads the loads of one instance."""

    def __init__(self, integers: Integers, nest: Nest, counters: Mapping[Any, int]) -> None:
        self._integers, self._nest, self._counters = integers, nest, counters
        self._made: dict[Any, Poly] = {}

    def access(self, operation: Any) -> Access:
        """What a load reads. Raises `Unknown`."""
        op: Load[Any] = Load(operation)
        shape = shape_of(op.result)
        if (
            shape is None
            or op.mask is not None
            or op.wrap_dims
            or op.volatile
            or op.sem
            or op.base in self._nest.inside
        ):
            raise Unknown
        bounds: list[Bound] = []
        self._conditions: list[Any] = []
        for dim, (low, high) in enumerate(zip(op.low, op.high, strict=True)):
            bounds += self._from(low, dim, shape[dim])
            bounds += self._below(high, dim, shape[dim])
        if (bounds or self._conditions) and not _is_zero(op.other):
            raise Unknown
        strides = tuple(map(self._poly, op.strides))
        unique = tuple(dict.fromkeys(bounds))
        return Access(operation, shape, self._poly(op.offset), strides, unique, tuple(self._conditions))

    def _poly(self, value: Any) -> Poly:
        return self._integers.poly(value, self._counters, self._made)

    def _from(self, low: Any, dim: int, size: int) -> list[Bound]:
        """The conditions that are ``index >= low``, of an index in the tile."""
        number = constant(low)
        if number is not None:
            return [] if number <= 0 else [Bound(dim, 1, Poly.constant(-number))]
        clipped = self._clipped(low, size)
        if clipped is not None:
            return self._from(clipped, dim, size)
        sum_, shift, name, divisor = self._quotient(low)
        if name == "arith.floordivsi":  # divisor * (index - shift + 1) > sum
            return [Bound(dim, divisor, Poly.constant(divisor * (1 - shift) - 1) - sum_)]
        return [Bound(dim, divisor, Poly.constant(-divisor * shift) - sum_)]

    def _below(self, high: Any, dim: int, size: int) -> list[Bound]:
        """The conditions that are ``index < high``, of an index in the tile."""
        number = constant(high)
        if number is not None:
            return [] if number >= size else [Bound(dim, -1, Poly.constant(number - 1))]
        clipped = self._clipped(high, size)
        if clipped is not None:
            return self._below(clipped, dim, size)
        owner = high.owner
        if not isinstance(owner, ir.Block) and owner.name == "arith.select":
            condition, chosen, otherwise = owner.operands
            if (constant(otherwise) or 0) <= 0 and constant(otherwise) is not None:
                return [*self._where(condition), *self._below(chosen, dim, size)]
        sum_, shift, name, divisor = self._quotient(high)
        if name == "arith.floordivsi":  # divisor * (index - shift + 1) <= sum
            return [Bound(dim, -divisor, sum_ - Poly.constant(divisor * (1 - shift)))]
        return [Bound(dim, -divisor, sum_ + Poly.constant(divisor * shift - 1))]

    def _clipped(self, value: Any, size: int) -> Any:
        """What a value is clipped from, where an index of the tile does not tell the difference."""
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name not in ("arith.maxsi", "arith.minsi"):
            return None
        first, second = owner.operands
        limit = constant(second)
        if limit is None:
            return None
        return first if (limit <= 0 if owner.name == "arith.maxsi" else limit >= size) else None

    def _quotient(self, value: Any) -> tuple[Poly, int, str, int]:
        """A value as a quotient plus a number: the dividend, the number, the operation, and the divisor (else 1)."""
        shift = 0
        while not isinstance(value.owner, ir.Block) and value.owner.name in ("arith.addi", "arith.subi"):
            first, second = value.owner.operands
            number = constant(second)
            if number is None:
                break
            shift += number if value.owner.name == "arith.addi" else -number
            value = first
        owner = value.owner
        if not isinstance(owner, ir.Block) and owner.name in ("arith.floordivsi", "arith.ceildivsi"):
            divisor = constant(owner.operands[1])
            if divisor is not None and divisor > 0:
                return self._poly(owner.operands[0]), shift, str(owner.name), divisor
        return self._poly(value), shift, "", 1

    def _where(self, condition: Any) -> list[Bound]:
        """The conditions that a boolean is."""
        owner = condition.owner
        name = "" if isinstance(owner, ir.Block) or not self._nest.sees(condition) else owner.name
        if name == "arith.andi":
            return [bound for operand in owner.operands for bound in self._where(operand)]
        if name == "arith.cmpi":
            a, b = map(self._poly, owner.operands)
            one = Poly.constant(1)
            signed: dict[int, Poly] = {
                2: b - a - one,
                3: b - a,
                4: a - b - one,
                5: a - b,
            }  # slt, sle, sgt, sge
            predicate = ir.IntegerAttr(owner.attributes["predicate"]).value
            if predicate in signed:
                return [Bound(None, 0, signed[predicate])]
        if condition in self._nest.inside:
            raise Unknown
        if condition not in self._conditions:
            self._conditions.append(condition)
        return []


def _is_zero(other: Any) -> bool:
    """Whether what a load gives for elements out of bounds is 0."""
    if other is None:
        return True
    owner = other.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return False
    attribute = owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return False
        attribute = attribute.get_splat_value()
    return isinstance(attribute, ir.IntegerAttr | ir.FloatAttr) and attribute.value == 0


@dataclass(frozen=True)
class Digit:
    """A digit of an instance's number: how many values it has, and what sums grow by with each."""

    size: int
    steps: tuple[Poly, ...]


def digits(instances: Sequence[Sequence[Poly]]) -> list[Digit]:
    """Digits, the fastest first, in which the sums of all instances are linear. Raises `Unknown` if there are none."""
    found = []
    while len(instances) > 1:
        step = tuple(b - a for a, b in zip(instances[0], instances[1], strict=True))
        size = 1
        while size < len(instances) and _at(instances[0], step, size) == tuple(instances[size]):
            size += 1
        groups = instances[::size]
        if len(instances) % size or any(
            _at(group, step, place) != tuple(instances[number * size + place])
            for number, group in enumerate(groups)
            for place in range(size)
        ):
            raise Unknown
        found.append(Digit(size, step))
        instances = groups
    return found


def _at(first: Sequence[Poly], step: Sequence[Poly], count: int) -> tuple[Poly, ...]:
    times = Poly.constant(count)
    return tuple(a + b * times for a, b in zip(first, step, strict=True))


def ratio(a: Poly, b: Poly) -> tuple[int, int, Poly] | None:
    """(p, q, unit) with ``a = p * unit`` and ``b = q * unit``, p and q positive and without a common factor."""
    import math

    if not a.terms or {m for m, _ in a.terms} != {m for m, _ in b.terms}:
        return None
    first, second = dict(a.terms), dict(b.terms)
    monomial = next(iter(first))
    common = math.gcd(first[monomial], second[monomial])
    p, q = abs(first[monomial]) // common, abs(second[monomial]) // common
    unit = a.divided(p)
    if unit is None or unit * Poly.constant(q) != b:
        return None
    return p, q, unit
