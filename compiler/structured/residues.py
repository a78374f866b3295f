"""What is known of integers at compile time: remainders by powers of two.

`tl.arange` has a power of two of elements. So `program_id * BLOCK` is a multiple of BLOCK even after it has wrapped
around, and `program_id * BLOCK + tl.arange(0, BLOCK)` never wraps within a tile. That makes most index expressions
exact, whatever the scalars are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.toolchain.mlir import ir

from .poly import Poly
from .ranges import DEPTH
from .scalars import Leaf, Scalars, Wrapped
from .types import Types

Residue = tuple[int, int]
"""(k, r): the value is r modulo 2**k."""

UNKNOWN: Residue = (0, 0)
_ANYTHING = None
"""The residue of a value that has not been visited yet; it agrees with every other."""
WIDEST = 64


class Residues:
    """The residues of SSA values and of polynomials."""

    def __init__(self, types: Types, scalars: Scalars, sources: Callable[[Any], list[Any] | None]) -> None:
        self._types = types
        self._scalars = scalars
        self._sources = sources
        """The values that a carrier's result or block argument may come from; None for other values."""
        self._residues: dict[Any, Residue | None] = {}
        self._deep = 0

    def of(self, poly: Poly) -> Residue:
        """The residue of a polynomial."""
        total: Residue = (WIDEST, 0)
        for monomial, coefficient in poly.terms:
            term: Residue = (WIDEST, coefficient)
            for identifier in monomial:
                term = _product(term, self._residue_of_scalar(identifier))
            total = _sum(total, term)
        return total

    def _residue_of_scalar(self, identifier: int) -> Residue:
        scalar = self._scalars[identifier]
        if isinstance(scalar, Wrapped):
            return _narrowed(self.of(scalar.poly), scalar.bits)
        return self.of_value(scalar.value) if isinstance(scalar, Leaf) else UNKNOWN

    # --- SSA values ------------------------------------------------------------------------------

    def of_value(self, value: Any) -> Residue:
        """The residue of an integer; for a tensor, that of its first element."""
        return self._residue_or_anything(value) or UNKNOWN

    def _residue_or_anything(self, value: Any) -> Residue | None:
        if value not in self._residues:
            self._residues[value] = _ANYTHING  # for values that depend on themselves
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
        """The residue of a value with several sources, possibly itself among them: assumed, and weakened until it
        holds.
        """
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
            first, step = map(self.of_value, (loop.operands[0], loop.operands[2]))
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
    """The scf.for whose induction variable this block argument is, or None."""
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
    """The number of trailing zero bits that are certain."""
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
    """What holds for both residues."""
    return _narrowed((min(a[0], b[0], _trailing_zeros(a[1] ^ b[1])), a[1]), WIDEST)


def _same(a: Residue) -> Residue:
    return a


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
