"""Affine index expressions over the positions of a tile, and the symbolic pointers made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from .poly import ONE, ZERO, Poly

Shape = tuple[int, ...]


class Promise(NamedTuple):
    """An expression that must stay within 32 bits, which the launch has to verify (see `ranges`)."""

    step: int

    @property
    def scalars(self) -> frozenset[int]:
        """Ids of the scalars that it depends on: its step knows them."""
        return frozenset()

    def expanded(self, axis: int) -> Promise:
        return self

    def transposed(self, order: tuple[int, ...]) -> Promise:
        return self

    def reshaped(self, source: Shape, target: Shape) -> Promise:
        return self


class Wrap(NamedTuple):
    """The index of a dimension is `(start + i) remsi size` instead of `i`."""

    start: Poly
    size: Poly


class Affine(NamedTuple):
    """`offset + sum of strides[d] * index_d`; rank 0 (a scalar) has an offset only.

    Canonical form: a dimension of size 1 has stride 0, a dimension of stride 0 has no wrap. So broadcasting changes
    nothing.
    """

    offset: Poly
    strides: tuple[Poly, ...] = ()
    wraps: tuple[Wrap | None, ...] = ()
    assumed: tuple[Affine | Promise, ...] = ()
    """The assumptions of this form: promises, and 32-bit expressions that the kernel must check for overflow when it
    runs.
    """

    @staticmethod
    def uniform(offset: Poly, rank: int) -> Affine:
        """The same number at every position."""
        return Affine(offset, (ZERO,) * rank, (None,) * rank)

    @property
    def is_uniform(self) -> bool:
        return all(not stride.terms for stride in self.strides)

    @property
    def is_wrapped(self) -> bool:
        return any(wrap is not None for wrap in self.wraps)

    @property
    def scalars(self) -> set[int]:
        """Ids of the scalars that the expression depends on."""
        polys = [self.offset, *self.strides]
        polys += [poly for wrap in self.wraps if wrap for poly in (wrap.start, wrap.size)]
        found = set[int]().union(*(poly.scalars for poly in polys))
        return found.union(*(part.scalars for part in self.assumed))

    def same_shape_as(self, other: Affine) -> bool:
        """Whether the two differ at most in the offset."""
        return self.strides == other.strides and self.wraps == other.wraps

    def at_offset(self, offset: Poly) -> Affine:
        return self._replace(offset=offset)

    @property
    def is_open(self) -> bool:
        """Whether the kernel must check, when it runs, that this form may be used."""
        return any(isinstance(part, Affine) for part in self.assumed)

    def assuming(self, *parts: Affine | Promise) -> Affine:
        """The same form, with the further assumption that `parts` stay within 32 bits."""
        return self._replace(assumed=tuple(dict.fromkeys((*self.assumed, *parts)))) if parts else self

    def add(self, other: Affine) -> Affine | None:
        """The sum; None if one dimension would need two different indices."""
        strides, wraps = [], []
        for a, b, wrap_a, wrap_b in zip(self.strides, other.strides, self.wraps, other.wraps, strict=True):
            if a.terms and b.terms and wrap_a != wrap_b:
                return None
            stride = a + b
            strides.append(stride)
            wraps.append((wrap_a or wrap_b) if stride.terms else None)
        found = Affine(self.offset + other.offset, tuple(strides), tuple(wraps), self.assumed)
        return found.assuming(*other.assumed)

    def scaled(self, factor: Poly) -> Affine:
        strides = tuple(stride * factor for stride in self.strides)
        wraps = tuple(w if s.terms else None for w, s in zip(self.wraps, strides, strict=True))
        return Affine(self.offset * factor, strides, wraps, self.assumed)

    def divided(self, divisor: int) -> Affine | None:
        """The form divided by `divisor`; None if not all of its parts are divisible."""
        offset = self.offset.divided(divisor)
        strides = [stride.divided(divisor) for stride in self.strides]
        if offset is None or any(stride is None for stride in strides):
            return None
        return Affine(offset, tuple(s for s in strides if s is not None), self.wraps, self.assumed)

    def wrapped(self, size: Poly) -> Affine | None:
        """`self % size`; None unless this is `start + i` along a single dimension."""
        moving = [d for d, stride in enumerate(self.strides) if stride.terms]
        if len(moving) != 1 or self.strides[moving[0]] != ONE or self.is_wrapped:
            return None
        d = moving[0]
        wraps = (*self.wraps[:d], Wrap(self.offset, size), *self.wraps[d + 1 :])
        return Affine(ZERO, self.strides, wraps, self.assumed)

    def expanded(self, axis: int) -> Affine:
        """With a new dimension of size 1 at `axis`."""
        return Affine(
            self.offset,
            (*self.strides[:axis], ZERO, *self.strides[axis:]),
            (*self.wraps[:axis], None, *self.wraps[axis:]),
            tuple(part.expanded(axis) for part in self.assumed),
        )

    def transposed(self, order: tuple[int, ...]) -> Affine:
        return Affine(
            self.offset,
            tuple(self.strides[o] for o in order),
            tuple(self.wraps[o] for o in order),
            tuple(part.transposed(order) for part in self.assumed),
        )

    def reshaped(self, source: Shape, target: Shape) -> Affine | None:
        """The form in another shape; None unless only dimensions of size 1 are added or dropped, or all positions are
        equal.
        """
        if self.is_uniform and not self.assumed:
            return Affine.uniform(self.offset, len(target))
        kept = [d for d, size in enumerate(source) if size != 1]
        if [source[d] for d in kept] != [size for size in target if size != 1]:
            return None
        strides, wraps, remaining = [], [], iter(kept)
        for size in target:
            d = next(remaining) if size != 1 else None
            strides.append(ZERO if d is None else self.strides[d])
            wraps.append(None if d is None else self.wraps[d])
        assumed = [part.reshaped(source, target) for part in self.assumed]
        known = tuple(part for part in assumed if part is not None)
        return (
            Affine(self.offset, tuple(strides), tuple(wraps), known) if len(known) == len(assumed) else None
        )


@dataclass(frozen=True)
class Pointer:
    """Addresses `base + element_bytes * index` for every position of a tile.

    `base` is the scalar pointer (an SSA value) that all positions share. It is None if there is none; then only byte
    addresses are known. `index` is None if the positions' offsets are not affine.
    """

    base: Any
    index: Affine | None
    element_bytes: int
