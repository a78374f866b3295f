"""Bounds of a kernel's integers, as steps that can be evaluated again when its arguments and its grid are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.abi.intervals import (
    ANY_LAUNCH,
    MODEST_LAUNCH,
    Interval,
    Op,
    Step,
    limits,
    plus,
    times,
    within,
)
from triton_porting_kit.toolchain.mlir import ir

from .affine import Affine, Promise, Shape
from .poly import Poly
from .scalars import Clamped, Leaf, Scalars, Wrapped
from .types import Types

DEPTH = 60
"""Most operations to follow from a value to its operands."""
_WORD = limits(64)

_BINARY: dict[str, Op] = {
    "arith.addi": Op.ADD,
    "arith.subi": Op.SUBTRACT,
    "arith.muli": Op.MULTIPLY,
    "arith.divsi": Op.DIVIDE,
    "arith.remsi": Op.REMAINDER,
    "arith.minsi": Op.MINIMUM,
    "arith.maxsi": Op.MAXIMUM,
}
_POSITIONS = {"tt.get_program_id": Op.PROGRAM, "tt.get_num_programs": Op.PROGRAMS}
_CHOICES = ("arith.select", "scf.if")


class Ranges:
    """The steps of all integers of one function whose bounds were asked for."""

    def __init__(
        self, types: Types, scalars: Scalars, sources: Callable[[Any], list[Any] | None], *, promises: bool
    ) -> None:
        self._types = types
        self._scalars = scalars
        self._sources = sources
        self._promises = promises
        """Whether the launch can verify promises."""
        self.steps: list[Step] = []
        self._bounds: list[Interval] = []
        """The bounds of each step, in any launch."""
        self._modest: list[Interval | None] = []
        """The bounds of the first steps in a modest launch; None where nothing is known."""
        self._numbers: dict[Step, int] = {}
        self._values: dict[Any, int] = {}
        self._deep = 0

    def interval(self, poly: Poly) -> Interval:
        """Bounds of a polynomial in any launch, in exact arithmetic."""
        total = (0, 0)
        for monomial, coefficient in poly.terms:
            term = (coefficient, coefficient)
            for identifier in monomial:
                term = times(term, self._bounds[self._of_scalar(identifier)])
            total = plus(total, term)
        return total

    def promise(self, form: Affine, shape: Shape) -> Promise | None:
        """The promise that `form` fits 32 bits in the whole tile; None if a launch cannot verify it, or it would often
        fail.
        """
        if not self._promises:
            return None
        number = self._of_form(form, shape)
        self._modest += MODEST_LAUNCH.intervals(self.steps, self._modest)
        found = self._modest[number]
        return Promise(number) if found is not None and within(found, limits(32)) else None

    def natural(self, form: Affine, shape: Shape) -> list[Promise] | None:
        """The promises under which `form` has no negative element and fits 32 bits in the whole tile; None if a launch
        cannot verify them, or they would often fail.
        """
        narrow: dict[int, None] = {}

        def of_scalar(identifier: int) -> int:
            number = self._of_scalar(identifier)
            scalar = self._scalars[identifier]
            if self._bounds[number][0] >= 0 or not isinstance(scalar, Leaf) or scalar.unsigned:
                return number
            # It is negative only if it has wrapped around.
            info = self._types.info(scalar.value)
            exact = None if info.shape is not None else self._made(scalar.value, info.bits)
            if exact is None or self._bounds[exact][0] < 0:
                return number
            narrow[exact] = None
            return exact

        total = self._of_form(form, shape, of_scalar)
        if self._bounds[total][0] < 0:
            return None
        unsure = [number for number in (*narrow, total) if not within(self._bounds[number], limits(32))]
        if unsure and not self._promises:
            return None
        self._modest += MODEST_LAUNCH.intervals(self.steps, self._modest)
        modest = [self._modest[number] for number in unsure]
        if not all(found is not None and within(found, limits(32)) for found in modest):
            return None
        return [Promise(number) for number in unsure]

    # --- steps -----------------------------------------------------------------------------------

    def _step(self, op: Op, a: int = 0, b: int = 0) -> int:
        step = (op, a, b)
        number = self._numbers.get(step)
        if number is None:
            number = self._numbers[step] = len(self.steps)
            self.steps.append(step)
            self._bounds.append(ANY_LAUNCH.interval(step, self._bounds))
        return number

    def _constant(self, value: int) -> int:
        return self._step(Op.CONSTANT, value) if within((value, value), _WORD) else self._step(Op.INTEGER, 64)

    def _within(self, number: int, bits: int) -> int:
        """A step, wrapped around to `bits` if it may not fit them."""
        fits = within(self._bounds[number], limits(bits))
        return number if fits else self._step(Op.WRAPPED, number, bits)

    def _of_form(self, form: Affine, shape: Shape, of_scalar: Callable[[int], int] | None = None) -> int:
        """`of_scalar` gives the step of a scalar, in the offset."""
        total = self._of_poly(form.offset, of_scalar)
        for stride, wrap, size in zip(form.strides, form.wraps, shape, strict=True):
            if not stride.terms:
                continue
            if wrap is None:
                index = self._step(Op.UNION, self._constant(0), self._constant(size - 1))
            else:
                index = self._step(Op.INDEX, self._of_poly(wrap.start), self._of_poly(wrap.size))
            total = self._step(Op.ADD, total, self._step(Op.MULTIPLY, self._of_poly(stride), index))
        return total

    def _of_poly(self, poly: Poly, of_scalar: Callable[[int], int] | None = None) -> int:
        of_scalar = of_scalar or self._of_scalar
        total: int | None = None
        for monomial, coefficient in poly.sorted_terms():
            term: int | None = None if coefficient == 1 and monomial else self._constant(coefficient)
            for identifier in monomial:
                scalar = of_scalar(identifier)
                term = scalar if term is None else self._step(Op.MULTIPLY, term, scalar)
            assert term is not None
            total = term if total is None else self._step(Op.ADD, total, term)
        return self._constant(0) if total is None else total

    def _of_scalar(self, identifier: int) -> int:
        scalar = self._scalars[identifier]
        if isinstance(scalar, Wrapped):
            return self._within(self._of_poly(scalar.poly), scalar.bits)
        if isinstance(scalar, Clamped):
            return self._step(Op.UNION, self._constant(scalar.least), self._constant(scalar.most))
        assert isinstance(scalar, Leaf)
        info = self._types.info(scalar.value)
        if info.shape is not None:
            return self._step(Op.INTEGER, 64)  # see `Exactness._is_carried`
        number = self._of(scalar.value)
        return self._step(Op.UNSIGNED, number, info.bits) if scalar.unsigned else number

    # --- SSA values ------------------------------------------------------------------------------

    def _of(self, value: Any) -> int:
        """The step of a signed scalar integer."""
        number = self._values.get(value)
        if number is None:
            bits = self._types.info(value).bits
            self._deep += 1
            found = self._made(value, bits) if self._deep < DEPTH else None
            self._deep -= 1
            number = self._step(Op.INTEGER, bits) if found is None else self._within(found, bits)
            self._values[value] = number
        return number

    def _made(self, value: Any, bits: int) -> int | None:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return self._of_argument(value, bits)
        operation = owner.operation
        name = operation.name
        if name == "arith.constant":
            return self._constant(ir.IntegerAttr(operation.attributes["value"]).value)
        if name in _BINARY:
            return self._step(_BINARY[name], *map(self._of, operation.operands))
        if name in _POSITIONS:
            return self._step(_POSITIONS[name], ir.IntegerAttr(operation.attributes["axis"]).value)
        if name in ("arith.extsi", "arith.trunci"):
            return self._of(operation.operands[0])
        if name == "arith.extui":
            source = operation.operands[0]
            return self._step(Op.UNSIGNED, self._of(source), self._types.info(source).bits)
        if name in _CHOICES:
            first, *others = map(self._of, self._sources(value) or [])
            for other in others:
                first = self._step(Op.UNION, first, other)
            return first
        return None

    def _of_argument(self, value: Any, bits: int) -> int | None:
        holder = value.owner.owner
        if holder.operation.name == "scf.for" and value.arg_number == 0:
            return self._step(Op.COUNTER, *map(self._of, list(holder.operands)[:2]))
        is_parameter = holder.operation.name == "tt.func" and value.owner == holder.regions[0].blocks[0]
        if is_parameter and self._promises and bits >= 8:
            return self._step(Op.ARGUMENT, value.arg_number, bits)
        return None
