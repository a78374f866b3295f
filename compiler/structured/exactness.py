"""Which affine forms equal their integer, and not only modulo 2**bits of its type.

A form is exact if its bounds fit the type, or if it does not wrap around within the tile: then its offset is the
wrapped one. If neither can be proved for a 32-bit form, it is assumed. The launch must verify the assumption if it can,
otherwise the kernel.
"""

from __future__ import annotations

from triton_porting_kit.abi.intervals import Interval, index, limits, plus, times, within

from .affine import Affine, Shape
from .poly import ZERO, Poly
from .ranges import Ranges
from .residues import Residues
from .scalars import Leaf, Scalars, Wrapped
from .types import Types

_TOLD: Interval = (-(1 << 64) + (1 << 32), (1 << 64) - (1 << 32))
"""Within these bounds, a 64-bit sum shows the kernel whether the true sum fits 32 bits: it is exact, or 2**64 off."""


class Exactness:
    """Proves exactness from what is known of one function's integers."""

    def __init__(self, types: Types, ranges: Ranges, residues: Residues, scalars: Scalars) -> None:
        self._types = types
        self._ranges = ranges
        self._residues = residues
        self._scalars = scalars

    def signed(self, form: Affine, shape: Shape, bits: int) -> Affine | None:
        """A form that equals the signed `bits`-bit integers that `form` represents."""
        bounds = self.interval(form, shape)
        if within(bounds, limits(bits)):
            return form
        if self._wraps_nowhere(form, shape, bits - 1):
            fits = within(self._ranges.interval(form.offset), limits(bits))
            return form if fits else self._at_wrapped_offset(form, bits)
        if self._is_carried(form.offset):
            form = self._at_wrapped_offset(form, bits)
            bounds = self.interval(form, shape)
        if bits != 32:
            return None
        part = Affine(form.offset, form.strides, form.wraps)
        promise = self._ranges.promise(part, shape)
        if promise is not None:
            return form.assuming(promise)
        told = within(bounds, _TOLD) and self._is_told(form, shape)
        return form.assuming(part) if told else None

    def _is_carried(self, poly: Poly) -> bool:
        """Whether it depends on a loop-carried i64 that stands for a tensor, and is correct modulo 2**bits only."""
        return any(self._types.info(value).shape is not None for value in self._scalars.values(poly.scalars))

    def _at_wrapped_offset(self, form: Affine, bits: int) -> Affine:
        return form.at_offset(self._scalars.poly(Wrapped(form.offset, bits)))

    def unsigned(self, form: Affine, shape: Shape, bits: int) -> Affine | None:
        """The same for unsigned integers; None if it cannot be proved.

        Values above the i64 range are not represented.
        """
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
        fits = within(self._ranges.interval(offset), whole)
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
        total = self._ranges.interval(form.offset)
        for d, size in enumerate(shape):
            total = plus(total, self._along(form, d, size))
        return total

    def _along(self, form: Affine, d: int, size: int) -> Interval:
        """Bounds of what a dimension contributes."""
        stride, wrap, indices = form.strides[d], form.wraps[d], (0, size - 1)
        if wrap is not None:
            indices = index(*map(self._ranges.interval, (wrap.start, wrap.size)))
        return times(self._ranges.interval(stride), indices) if stride.terms else (0, 0)

    def _is_told(self, form: Affine, shape: Shape) -> bool:
        """Whether the contribution of each dimension fits 64 bits."""
        return all(within(self._along(form, d, size), limits(64)) for d, size in enumerate(shape))

    def _wraps_nowhere(self, form: Affine, shape: Shape, most: int) -> bool:
        """Whether at most `most` low bits change within the tile, without a carry into higher bits."""
        low = high = 0
        for stride, wrap, size in zip(form.strides, form.wraps, shape, strict=True):
            if not stride.terms:
                continue
            step = stride.value
            if step is None or wrap is not None:
                return False
            low, high = low + min(0, step * (size - 1)), high + max(0, step * (size - 1))
        known, rest = self._residues.of(form.offset)
        known = min(known, most)
        rest %= 1 << known
        return rest + low >= 0 and rest + high < 1 << known
