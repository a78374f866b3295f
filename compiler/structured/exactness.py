"""Which forms of integers are numbers, and not only right modulo two to the width of their type.

A form is shown to be one by its bounds, or because it wraps around nowhere within the tile: then its offset is the
wrapped one. Where neither can be shown of 32 bits, the form is assumed to be one, and who uses it has to ask.
"""

from __future__ import annotations

from .affine import Affine, Shape
from .facts import Facts, Interval, limits, plus, times, within
from .poly import ZERO, Poly
from .scalars import Leaf, Scalars, Wrapped

_TOLD: Interval = (-(1 << 64) + (1 << 32), (1 << 64) - (1 << 32))
"""Within these bounds, a sum in 64 bits tells whether it lies within 32: it is off by 2**64 or not at all."""


class Exactness:
    """Shows what can be shown of forms with the facts of one kernel."""

    def __init__(self, facts: Facts, scalars: Scalars) -> None:
        self._facts = facts
        self._scalars = scalars

    def signed(self, form: Affine, shape: Shape, bits: int) -> Affine | None:
        """A form that is equal to the signed integers of `bits` which `form` stands for."""
        bounds = self.interval(form, shape)
        if within(bounds, limits(bits)):
            return form
        if self._wraps_nowhere(form, shape, bits - 1):
            fits = within(self._facts.interval(form.offset), limits(bits))
            return form if fits else self._at_wrapped_offset(form, bits)
        if self._facts.is_carried(form.offset):
            form = self._at_wrapped_offset(form, bits)
            bounds = self.interval(form, shape)
        if bits != 32 or not within(bounds, _TOLD) or not self._is_told(form, shape):
            return None
        return form.assuming(Affine(form.offset, form.strides, form.wraps))

    def _at_wrapped_offset(self, form: Affine, bits: int) -> Affine:
        return form.at_offset(self._scalars.poly(Wrapped(form.offset, bits)))

    def unsigned(self, form: Affine, shape: Shape, bits: int) -> Affine | None:
        """The same for unsigned ones; None where that can not be shown. What i64 cannot hold is none."""
        if within(self.interval(form, shape), (0, min((1 << bits) - 1, limits(64)[1]))):
            return form
        polys = [form.offset, *form.strides]
        if bits == 64 or any(c < 0 for poly in polys for _, c in poly.terms):
            return None
        wraps = [(w.start, w.size) for w in form.wraps if w is not None]
        if any(self._as_unsigned(poly) != poly for pair in wraps for poly in pair):
            return None
        offset, *strides = (self._as_unsigned(poly) for poly in polys)
        if offset is None or any(stride is None for stride in strides):
            return None
        found = Affine(offset, tuple(s for s in strides if s is not None), form.wraps, form.assumed)
        whole = (0, (1 << bits) - 1)
        if within(self.interval(found, shape), whole):
            return found
        fits = within(self._facts.interval(offset), whole)
        return found if fits and self._wraps_nowhere(found, shape, bits) else None

    def _as_unsigned(self, poly: Poly) -> Poly | None:
        """The same sum with its scalars zero-extended."""
        total = ZERO
        for monomial, coefficient in poly.terms:
            term = Poly.constant(coefficient)
            for identifier in monomial:
                scalar = self._scalars[identifier]
                if not isinstance(scalar, Leaf):
                    return None
                term = term * self._scalars.poly(Leaf(scalar.value, unsigned=True))
            total = total + term
        return total

    def interval(self, form: Affine, shape: Shape) -> Interval:
        """Bounds of a form over all positions of a tile."""
        total = self._facts.interval(form.offset)
        for d, size in enumerate(shape):
            total = plus(total, self._along(form, d, size))
        return total

    def _along(self, form: Affine, d: int, size: int) -> Interval:
        """Bounds of what a dimension adds."""
        stride, wrap, index = form.strides[d], form.wraps[d], (0, size - 1)
        if wrap is not None:
            low, high = self._facts.interval(wrap.size)
            last = max(abs(low), abs(high), 1) - 1
            index = (0 if self._facts.interval(wrap.start)[0] >= 0 else -last, last)
        return times(self._facts.interval(stride), index) if stride.terms else (0, 0)

    def _is_told(self, form: Affine, shape: Shape) -> bool:
        """Whether what each dimension adds is computed in 64 bits."""
        return all(within(self._along(form, d, size), limits(64)) for d, size in enumerate(shape))

    def _wraps_nowhere(self, form: Affine, shape: Shape, most: int) -> bool:
        """Whether the lowest bits, `most` at most, change within the tile without a carry to those above."""
        low = high = 0
        for stride, wrap, size in zip(form.strides, form.wraps, shape, strict=True):
            if not stride.terms:
                continue
            step = stride.value
            if step is None or wrap is not None:
                return False
            low, high = low + min(0, step * (size - 1)), high + max(0, step * (size - 1))
        known, rest = self._facts.residue(form.offset)
        known = min(known, most)
        rest %= 1 << known
        return rest + low >= 0 and rest + high < 1 << known
