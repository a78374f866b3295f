"""What is known of integers when a kernel is compiled: bounds, and remainders by powers of two.

`tl.arange` has a power of two of elements. So `program_id * BLOCK` is a multiple of BLOCK even after it has wrapped
around, and `program_id * BLOCK + tl.arange(0, BLOCK)` never wraps within a tile: most index expressions are exact
because of that, whatever the scalars are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.toolchain.mlir import ir

from .poly import Poly
from .scalars import Leaf, Scalars, Wrapped
from .types import Types

Interval = tuple[int, int]
"""The smallest and the largest value."""

Residue = tuple[int, int]
"""(k, r): the value is r modulo 2**k."""

UNKNOWN: Residue = (0, 0)
_ANYTHING = None
"""The remainder of what was not looked at yet, which agrees with every other."""
WIDEST = 64
DEPTH = 60
"""So many operations are followed at most from a value to what it is made of."""
_ANY: Interval = (-(1 << 63), (1 << 63) - 1)


def limits(bits: int) -> Interval:
    """What a signed integer holds."""
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def within(inner: Interval, outer: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def plus(a: Interval, b: Interval) -> Interval:
    return a[0] + b[0], a[1] + b[1]


def times(a: Interval, b: Interval) -> Interval:
    products = [x * y for x in a for y in b]
    return min(products), max(products)


class Facts:
    """Bounds and remainders, by SSA value and by polynomial."""

    def __init__(self, types: Types, scalars: Scalars, sources: Callable[[Any], list[Any] | None]) -> None:
        self._types = types
        self._scalars = scalars
        self._sources = sources
        """Of what a loop, a branch or a select hands on: where it comes from; None for other values."""
        self._intervals: dict[Any, Interval] = {}
        self._residues: dict[Any, Residue | None] = {}
        self._deep = 0

    # --- polynomials -----------------------------------------------------------------------------

    def interval(self, poly: Poly) -> Interval:
        """Bounds of a polynomial, in exact arithmetic."""
        total = (0, 0)
        for monomial, coefficient in poly.terms:
            term = (coefficient, coefficient)
            for identifier in monomial:
                term = times(term, self._interval_of_scalar(identifier))
            total = plus(total, term)
        return total

    def residue(self, poly: Poly) -> Residue:
        """What a polynomial is modulo a power of two."""
        total: Residue = (WIDEST, 0)
        for monomial, coefficient in poly.terms:
            term: Residue = (WIDEST, coefficient)
            for identifier in monomial:
                term = _product(term, self._residue_of_scalar(identifier))
            total = _sum(total, term)
        return total

    def is_carried(self, poly: Poly) -> bool:
        """Whether a loop carries part of it as an i64 that stands for a tensor, and is right modulo two to its bits."""
        return any(self._types.info(value).shape is not None for value in self._scalars.values(poly.scalars))

    def _interval_of_scalar(self, identifier: int) -> Interval:
        scalar = self._scalars[identifier]
        if isinstance(scalar, Wrapped):
            return limits(scalar.bits)
        if not isinstance(scalar, Leaf):
            return -scalar.most, scalar.most
        info = self._types.info(scalar.value)
        if info.shape is not None:
            return _ANY  # see `is_carried`
        found = self.interval_of(scalar.value)
        return (0, (1 << info.bits) - 1) if scalar.unsigned and found[0] < 0 else found

    def _residue_of_scalar(self, identifier: int) -> Residue:
        scalar = self._scalars[identifier]
        if isinstance(scalar, Wrapped):
            return _narrowed(self.residue(scalar.poly), scalar.bits)
        return self.residue_of(scalar.value) if isinstance(scalar, Leaf) else UNKNOWN

    # --- SSA values ------------------------------------------------------------------------------

    def interval_of(self, value: Any) -> Interval:
        """Bounds of a scalar integer, taken as signed."""
        found = self._intervals.get(value)
        if found is None:
            whole = limits(self._types.info(value).bits)
            self._intervals[value] = whole  # for what depends on itself
            self._deep += 1
            found = self._computed_interval(value) if self._deep < DEPTH else None
            self._deep -= 1
            found = self._intervals[value] = found if found and within(found, whole) else whole
        return found

    def _computed_interval(self, value: Any) -> Interval | None:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return self._induction_interval(value)
        operation = owner.operation
        name = operation.name
        if name == "arith.constant":
            number = ir.IntegerAttr(operation.attributes["value"]).value
            return number, number
        if name in _POSITIONS:
            return _POSITIONS[name]
        if name not in _INTERVALS:
            return None
        return _INTERVALS[name](*map(self.interval_of, operation.operands))

    def _induction_interval(self, value: Any) -> Interval | None:
        loop = _loop_counting(value)
        if loop is None:
            return None
        first, last = self.interval_of(loop.operands[0])[0], self.interval_of(loop.operands[1])[1] - 1
        return (first, last) if first <= last else None

    def residue_of(self, value: Any) -> Residue:
        """What an integer is modulo a power of two; of a tensor, its first element."""
        return self._residue_or_anything(value) or UNKNOWN

    def _residue_or_anything(self, value: Any) -> Residue | None:
        if value not in self._residues:
            self._residues[value] = _ANYTHING  # for what depends on itself
            self._deep += 1
            found = self._computed_residue(value) if self._deep < DEPTH else UNKNOWN
            self._deep -= 1
            self._residues[value] = found and _narrowed(found, self._types.info(value).bits)
        return self._residues[value]

    def _computed_residue(self, value: Any) -> Residue | None:
        sources = self._sources(value)
        if sources is not None:
            return self._common_residue(value, sources)
        owner = value.owner
        if isinstance(owner, ir.Block):
            return self._argument_residue(value)
        operation = owner.operation
        name = operation.name
        if name == "arith.constant":
            return _constant(operation)
        if name == "tt.make_range":
            return WIDEST, ir.IntegerAttr(operation.attributes["start"]).value
        if name not in _RESIDUES:
            return UNKNOWN
        operands = [self._residue_or_anything(operand) for operand in operation.operands]
        known = [found for found in operands if found is not None]
        return _RESIDUES[name](*known) if len(known) == len(operands) else _ANYTHING

    def _common_residue(self, value: Any, sources: list[Any]) -> Residue | None:
        """Of what may come from several places, itself among them: assumed, and weakened until it is true."""
        bits = self._types.info(value).bits
        assumed: Residue | None = _ANYTHING
        while True:
            mark = len(self._residues)
            self._residues[value] = assumed
            found: Residue | None = _ANYTHING
            for source in sources:
                other = self._residue_or_anything(source)
                found = other if found is None else found if other is None else _either(found, other)
            found = found and _narrowed(found, bits)
            if found == assumed:
                return found
            for key in list(self._residues)[mark:]:
                del self._residues[key]
            assumed = found

    def _argument_residue(self, value: Any) -> Residue:
        loop = _loop_counting(value)
        if loop is not None:
            first, step = map(self.residue_of, (loop.operands[0], loop.operands[2]))
            return _sum(first, (_zeros(step), 0))
        holder = value.owner.owner
        if holder.operation.name != "tt.func" or "arg_attrs" not in holder.attributes:
            return UNKNOWN
        facts = list(holder.attributes["arg_attrs"])
        if value.owner != holder.regions[0].blocks[0] or value.arg_number >= len(facts):
            return UNKNOWN
        known = facts[value.arg_number]
        if "tt.divisibility" not in known:
            return UNKNOWN
        return _trailing_zeros(ir.IntegerAttr(known["tt.divisibility"]).value), 0


def _loop_counting(value: Any) -> Any:
    """The scf.for whose induction variable a block argument is, or None."""
    holder = value.owner.owner
    return holder if holder.operation.name == "scf.for" and value.arg_number == 0 else None


def _constant(operation: Any) -> Residue:
    attribute = operation.attributes["value"]
    if isinstance(attribute, ir.DenseIntElementsAttr):
        if not attribute.is_splat:
            return UNKNOWN
        attribute = attribute.get_splat_value()
    return WIDEST, ir.IntegerAttr(attribute).value % (1 << WIDEST)


# --- arithmetic modulo powers of two -------------------------------------------------------------


def _trailing_zeros(number: int) -> int:
    return (number & -number).bit_length() - 1 if number else WIDEST


def _zeros(residue: Residue) -> int:
    """How often a number can surely be halved."""
    known, rest = residue
    return min(known, _trailing_zeros(rest))


def _narrowed(residue: Residue, bits: int) -> Residue:
    known = min(residue[0], bits)
    return known, residue[1] % (1 << known)


def _sum(a: Residue, b: Residue) -> Residue:
    return _narrowed((min(a[0], b[0]), a[1] + b[1]), WIDEST)


def _difference(a: Residue, b: Residue) -> Residue:
    return _narrowed((min(a[0], b[0]), a[1] - b[1]), WIDEST)


def _product(a: Residue, b: Residue) -> Residue:
    return _narrowed((min(a[0] + _zeros(b), b[0] + _zeros(a)), a[1] * b[1]), WIDEST)


def _shifted(a: Residue, amount: Residue) -> Residue:
    known, by = amount
    return _product(a, (WIDEST, 1 << by)) if known >= 32 and by < WIDEST else UNKNOWN


def _either(a: Residue, b: Residue) -> Residue:
    """What is true of both."""
    return _narrowed((min(a[0], b[0], _trailing_zeros(a[1] ^ b[1])), a[1]), WIDEST)


def _same(a: Residue) -> Residue:
    return a


def _union(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])


_RESIDUES: dict[str, Callable[..., Residue]] = {
    "arith.addi": _sum,
    "arith.subi": _difference,
    "arith.muli": _product,
    "arith.shli": _shifted,
    "arith.minsi": _either,
    "arith.maxsi": _either,
    **dict.fromkeys(
        (
            "arith.extsi", "arith.extui", "arith.trunci", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans",
            "tt.reshape",
        ),
        _same,
    ),
}  # fmt: skip
_INTERVALS: dict[str, Callable[..., Interval | None]] = {
    "arith.extsi": lambda a: a,
    "arith.extui": lambda a: a if a[0] >= 0 else None,
    "arith.addi": plus,
    "arith.subi": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "arith.muli": times,
    "arith.minsi": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "arith.maxsi": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "arith.select": lambda condition, a, b: _union(a, b),
    "arith.remsi": lambda a, b: (
        (min(0, max(a[0], 1 - b[1])), max(0, min(a[1], b[1] - 1))) if b[0] > 0 else None
    ),
    "arith.divsi": lambda a, b: (min(a[0], 0), max(a[1], 0)) if b[0] > 0 else None,
}
_POSITIONS: dict[str, Interval] = {
    "tt.get_program_id": (0, (1 << 31) - 2),
    "tt.get_num_programs": (1, (1 << 31) - 1),
}
