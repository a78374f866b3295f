"""Integer polynomials over scalar SSA values, in exact (unbounded) arithmetic.

The address of a tile element is `offset + stride_0 * i_0 + ...`, where offset and strides are sums of products of the
kernel's scalars. Polynomials are a canonical form: the order in which a kernel added the terms, and whether it did so
on pointers or on integers, makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Monomial = tuple[int, ...]
"""Sorted ids of the scalars that are multiplied; the empty product is the constant term."""


@dataclass(eq=False, repr=False)
class Poly:
    """A sum of `coefficient * product of scalars`; a scalar is named by its id in the scalar table."""

    terms: frozenset[tuple[Monomial, int]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.terms)

    @staticmethod
    def of(terms: Iterable[tuple[Monomial, int]]) -> Poly:
        total: dict[Monomial, int] = {}
        for monomial, coefficient in terms:
            total[monomial] = total.get(monomial, 0) + coefficient
        return Poly(frozenset((m, c) for m, c in total.items() if c))

    @staticmethod
    def constant(value: int) -> Poly:
        return Poly(frozenset({((), value)})) if value else ZERO

    @staticmethod
    def scalar(identifier: int) -> Poly:
        return Poly(frozenset({((identifier,), 1)}))

    @property
    def value(self) -> int | None:
        """The constant value; None if it depends on a scalar."""
        if not self.terms:
            return 0
        if len(self.terms) == 1:
            ((monomial, coefficient),) = self.terms
            if not monomial:
                return coefficient
        return None

    @property
    def scalars(self) -> set[int]:
        """Ids of the scalars that it depends on."""
        return {identifier for monomial, _ in self.terms for identifier in monomial}

    def sorted_terms(self) -> list[tuple[Monomial, int]]:
        """Terms in a stable order, the constant last, as a person would write them."""
        return sorted(self.terms, key=lambda term: (not term[0], term[1] < 0, term[0]))

    def __add__(self, other: Poly) -> Poly:
        if not self.terms:
            return other
        if not other.terms:
            return self
        return Poly.of([*self.terms, *other.terms])

    def __neg__(self) -> Poly:
        return Poly(frozenset((m, -c) for m, c in self.terms))

    def __sub__(self, other: Poly) -> Poly:
        return self + -other

    def __mul__(self, other: Poly) -> Poly:
        if not self.terms or not other.terms:
            return ZERO
        return Poly.of((tuple(sorted(m + n)), c * d) for m, c in self.terms for n, d in other.terms)

    def divided(self, divisor: int) -> Poly | None:
        """`self / divisor`; None if a coefficient is not divisible."""
        if any(c % divisor for _, c in self.terms):
            return None
        return Poly(frozenset((m, c // divisor) for m, c in self.terms))


ZERO = Poly(frozenset())
ONE = Poly.constant(1)
