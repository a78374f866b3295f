"""Interval analysis: bounds of scalars over all programs of a launch, computed before the first program runs.

Interval arithmetic, in 64 bits, over the kernel's arguments and the program ids. A value that cannot be followed has no
bounds. What a rule assumes (a divisor above zero, a value that fits its type) becomes a runtime condition, collected in
`Ranges.holds`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from triton_porting_kit.compiler.dialect.operations import ProgramId
from triton_porting_kit.compiler.loops.ir.program import Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering


@dataclass(frozen=True)
class Range:
    """Both ends, i64. A value that is the same for all programs has one Value for both."""

    low: Value
    high: Value


Polynomial = dict[tuple[Def, ...], int]
"""A sum of products of 64-bit scalars: the coefficient of each product."""


@dataclass(eq=False)
class Ranges:
    """The bounds of the scalars of one kernel."""

    lowering: Lowering
    holds: Value = field(init=False)
    """i1: whether the assumptions behind all bounds hold."""

    def __post_init__(self) -> None:
        self._known: dict[Def, Range | None] = {}
        self._numbers: dict[Def, int] = {}
        self._asked: set[Value] = set()
        self.holds = self.lowering.builder.constant(1, "i1")

    def of(self, definition: Def) -> Range | None:
        """The bounds of an integer; None where they are not known."""
        if definition not in self._known:
            self._known[definition] = None  # a value that depends on itself has no bounds
            self._known[definition] = self._of(definition)
        return self._known[definition]

    def at_least(self, value: Value, least: int) -> None:
        """Require `value` >= `least` as a runtime condition."""
        self._ask(self.lowering.builder.compare("sge", value, self.lowering.builder.i64(least)))

    def least(self, terms: Polynomial) -> Value | None:
        """A lower bound of a sum; its factors may not be negative."""
        return self._sum(terms, lowest=True)

    def most(self, terms: Polynomial) -> Value | None:
        """An upper bound of a sum; its factors may not be negative."""
        return self._sum(terms, lowest=False)

    def expand(self, definition: Def) -> Polynomial:
        """A 64-bit scalar as a sum of products of others, so that equal parts of two sums can be found."""
        value = self.lowering.scalars.get(definition)
        if value is not None and isinstance(value.constant, int):
            return {(): value.constant}
        owner = definition.owner
        if definition.type.element != "i64" or owner is None or owner.name not in _SUMS:
            return {(definition,): 1}
        a, b = map(self.expand, owner.operands)
        if owner.name == "arith.muli":
            return self.product(a, b)
        return plus(a, b, 1 if owner.name == "arith.addi" else -1)

    def product(self, a: Polynomial, b: Polynomial) -> Polynomial:
        """a * b."""
        found: Polynomial = {}
        for left, x in a.items():
            found = plus(found, {self._ordered(left + right): x * y for right, y in b.items()})
        return found

    def _ordered(self, factors: tuple[Def, ...]) -> tuple[Def, ...]:
        """The factors in a canonical order, the same in every compilation."""
        for factor in factors:
            self._numbers.setdefault(factor, len(self._numbers))
        return tuple(sorted(factors, key=self._numbers.__getitem__))

    def _ask(self, condition: Value) -> None:
        if condition not in self._asked:
            self._asked.add(condition)
            self.holds = self.lowering.builder.logical_and(self.holds, condition)

    def _of(self, definition: Def) -> Range | None:
        builder, owner = self.lowering.builder, definition.owner
        value = self.lowering.scalars.get(definition)
        if value is not None and value.level == 0 and value.type in ("i32", "i64"):
            wide = builder.i64(value.constant) if isinstance(value.constant, int) else value
            wide = builder.cast("arith.extsi", wide, "i64")
            return Range(wide, wide)
        if owner is None:
            return None
        if (position := ProgramId.dyn_cast(owner)) is not None:
            count = self.lowering.grid.counts[position.axis]
            last = builder.sub(builder.cast("arith.extsi", count, "i64"), builder.i64(1))
            return Range(builder.i64(0), last)
        if owner.name not in _FOLLOWED:
            return None
        ranges = [found for operand in owner.operands if (found := self.of(operand)) is not None]
        if len(ranges) < len(owner.operands):
            return None
        found = self._computed(owner, ranges)
        narrow = definition.type.element == "i32"
        if owner.name == "arith.trunci" and not narrow:
            return None
        if owner.name in (*_SUMS, "arith.trunci") and narrow:  # which may overflow
            self.at_least(found.low, -(1 << 31))
            self._ask(builder.compare("sle", found.high, builder.i64((1 << 31) - 1)))
        return found

    def _computed(self, operation: Operation, ranges: list[Range]) -> Range:
        builder, name = self.lowering.builder, operation.name
        a, b = ranges[0], ranges[-1]
        if name in ("arith.extsi", "arith.trunci"):
            return a
        if name == "arith.subi":
            return Range(builder.sub(a.low, b.high), builder.sub(a.high, b.low))
        if name in ("arith.addi", "arith.minsi", "arith.maxsi"):
            return Range(builder.binary(name, a.low, b.low), builder.binary(name, a.high, b.high))
        self.at_least(a.low, 0)
        if name == "arith.muli":
            self.at_least(b.low, 0)
            return Range(builder.mul(a.low, b.low), builder.mul(a.high, b.high))
        self.at_least(b.low, 1)
        one = builder.i64(1)
        if name == "arith.divsi":
            return Range(self._quotient(a.low, b.high), self._quotient(a.high, b.low))
        return Range(builder.i64(0), builder.binary("arith.minsi", a.high, builder.sub(b.high, one)))

    def _quotient(self, dividend: Value, divisor: Value) -> Value:
        """The quotient of a divisor that must be above zero.

        If it is not, `holds` is false, and the division does not trap.
        """
        if dividend.constant == 0:
            return dividend
        builder = self.lowering.builder
        divisor = builder.binary("arith.maxsi", divisor, builder.i64(1))
        return builder.binary("arith.divsi", dividend, divisor)

    def _sum(self, terms: Polynomial, *, lowest: bool) -> Value | None:
        builder = self.lowering.builder
        total = builder.i64(0)
        for factors, count in terms.items():
            term = builder.i64(count)
            for factor in factors:
                found = self.of(factor)
                if found is None:
                    return None
                self.at_least(found.low, 0)
                term = builder.mul(term, found.low if lowest == (count > 0) else found.high)
            total = builder.add(total, term)
        return total


def plus(a: Polynomial, b: Polynomial, times: int = 1) -> Polynomial:
    """a + times * b."""
    found = dict(a)
    for factors, count in b.items():
        found[factors] = found.get(factors, 0) + times * count
    return {factors: count for factors, count in found.items() if count}


_SUMS = {"arith.addi", "arith.subi", "arith.muli"}
_FOLLOWED = {
    *_SUMS,
    "arith.divsi",
    "arith.extsi",
    "arith.trunci",
    "arith.minsi",
    "arith.maxsi",
    "arith.remsi",
}
