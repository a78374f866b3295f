"""The scalars that polynomials consist of, numbered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from .poly import Poly


class Leaf(NamedTuple):
    """An integer SSA value. Narrower ones are sign-extended, or zero-extended if `unsigned`."""

    value: Any
    unsigned: bool = False


@dataclass(frozen=True)
class Wrapped:
    """The lowest `bits` of a polynomial, sign-extended: its value after it has wrapped around."""

    poly: Poly
    bits: int


@dataclass(frozen=True)
class Clamped:
    """A polynomial clamped to [-most, most]."""

    poly: Poly
    most: int


Scalar = Leaf | Wrapped | Clamped
"""Keys of `Scalars`. Named tuples with equal fields are equal, so `Wrapped` and `Clamped` are none."""


class Scalars:
    """A table of scalars. Polynomials refer to them by index."""

    def __init__(self) -> None:
        self._all: list[Scalar] = []
        self._numbers: dict[Scalar, int] = {}

    def __getitem__(self, identifier: int) -> Scalar:
        return self._all[identifier]

    def poly(self, scalar: Scalar) -> Poly:
        """A scalar as a polynomial."""
        found = self._numbers.get(scalar)
        if found is None:
            found = self._numbers[scalar] = len(self._all)
            self._all.append(scalar)
        return Poly.scalar(found)

    def leaves(self, identifiers: Iterable[int]) -> set[int]:
        """The numbers of the SSA values that scalars are computed from."""
        found: set[int] = set()
        pending = list(identifiers)
        while pending:
            identifier = pending.pop()
            scalar = self._all[identifier]
            if isinstance(scalar, Leaf):
                found.add(identifier)
            else:
                pending += scalar.poly.scalars
        return found

    def values(self, identifiers: Iterable[int]) -> list[Any]:
        """The SSA values that scalars are computed from."""
        leaves = (self._all[identifier] for identifier in sorted(self.leaves(identifiers)))
        return [leaf.value for leaf in leaves if isinstance(leaf, Leaf)]
