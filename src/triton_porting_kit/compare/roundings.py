"""Building float64 operations in a structured form, with simulated random roundings."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.abi.elements import OF_MLIR
from triton_porting_kit.toolchain.mlir import ir


@dataclass(frozen=True)
class _Format:
    """A floating-point type that is computed in float64 instead."""

    precision: int
    smallest: float
    """The possible error near zero: denormals if they may be flushed, otherwise half of the smallest denormal."""


_SMALLEST = {"f16": 2.0**-25, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 0.0}

FORMATS = {
    name: _Format(form.precision, smallest)
    for name, smallest in _SMALLEST.items()
    if (form := OF_MLIR[name].form)
}
"""The formats by MLIR's names. f64 is not widened, but rounded at random like the others."""


class Roundings:
    """Creates operations in a kernel with the parameters `amount`, `direction` and `seed`."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._f64 = ir.F64Type.get()
        self._i64 = ir.IntegerType.get_signless(64)
        self._at: Any = None
        self._location: Any = ir.Location.unknown()
        self._amount: Any = None
        """None if nothing is rounded."""
        self._direction: Any = None
        self._seed: Any = None

    def _narrowed(self, value: Any, kind: Any) -> Any:
        return self._op("arith.truncf", [value], [kind])[0]

    def _op(
        self, name: str, operands: Iterable[Any], kinds: Iterable[Any], regions: int = 0, **attributes: Any
    ) -> Any:
        created = ir.Operation.create(
            name,
            results=list(kinds),
            operands=list(operands),
            attributes=attributes,
            regions=regions,
            loc=self._location,
            ip=self._at,
        )
        return created if regions else created.results

    # --- roundings ---------------------------------------------------------------------------------------

    def _moved(self, value: Any, kind: Any, units: float, exact_stays: bool = False) -> Any:
        """Perturb a value by up to `units`, each half a unit in the last place of type `kind`."""
        if self._amount is None:
            return value
        how = FORMATS[kind]
        noise = self._noise(value)
        factor = self._plus(self._number_like(value, 1.0), self._times(noise, units * 2.0**-how.precision))
        moved = self._op("arith.mulf", [value, factor], [value.type])[0]
        if how.smallest:
            moved = self._plus(moved, self._times(noise, how.smallest))
        return self._unless_exact(value, moved, kind) if exact_stays else moved

    def _spread(self, value: Any, scale: Any, relative: float) -> Any:
        """Perturb a value by up to the share `relative` of `scale`."""
        if self._amount is None:
            return value
        most = self._number_like(value, 1e300)  # Infinity times 0 would be NaN.
        size = self._op(
            "arith.minnumf", [self._op("math.absf", [scale], [scale.type])[0], most], [value.type]
        )[0]
        part = self._op("arith.mulf", [size, self._times(self._noise(value), relative)], [value.type])[0]
        return self._plus(value, part)

    def _directed(self, value: Any, kind: Any, units: float, exact_stays: bool) -> Any:
        """Perturb a value up or down; all values in the same direction."""
        if self._amount is None:
            return value
        how = FORMATS[kind]
        size = self._op("math.absf", [value], [value.type])[0]
        most = self._number_like(value, 1e300)
        size = self._op("arith.minnumf", [size, most], [value.type])[0]
        step = self._like(self._op("arith.mulf", [self._direction, self._amount], [self._f64])[0], value)
        part = self._op("arith.mulf", [self._times(step, units * 2.0**-how.precision), size], [value.type])[0]
        moved = self._plus(value, part)
        if how.smallest:
            moved = self._plus(moved, self._times(step, how.smallest))
        return self._unless_exact(value, moved, kind) if exact_stays else moved

    def _unless_exact(self, value: Any, moved: Any, kind: str) -> Any:
        if kind == "f64":  # There is no more precise type to tell whether the value is exact.
            return moved
        own = (
            ir.RankedTensorType.get(value.type.shape, ir.Type.parse(kind))
            if is_tensor(value.type)
            else ir.Type.parse(kind)
        )
        back = self._op("arith.extf", [self._narrowed(value, own)], [value.type])[0]
        i1 = ir.IntegerType.get_signless(1)
        flag = ir.RankedTensorType.get(value.type.shape, i1) if is_tensor(value.type) else i1
        same = self._op("arith.cmpf", [back, value], [flag], predicate=ir.IntegerAttr.get(self._i64, 1))[
            0
        ]  # oeq
        return self._op("arith.select", [same, value, moved], [value.type])[0]

    def _noise(self, value: Any) -> Any:
        """Pseudo-random numbers of magnitude 0.5 to 1, times `amount`, from the value's bits, place and seed."""
        kind = value.type
        bits_kind = ir.RankedTensorType.get(kind.shape, self._i64) if is_tensor(kind) else self._i64
        salt = self._integer(next(self._numbers) * 0x9E3779B97F4A7C15)
        start = self._like(self._op("arith.addi", [self._seed, salt], [self._i64])[0], value)
        bits = self._op("arith.bitcast", [value], [bits_kind])[0]
        bits = self._op("arith.addi", [bits, start], [bits_kind])[0]
        for shift, factor in ((32, 0xD6E8FEB86659FD93), (29, 0xBF58476D1CE4E5B9)):
            high = self._op("arith.shrui", [bits, self._like(self._integer(shift), value)], [bits_kind])[0]
            bits = self._op("arith.xori", [bits, high], [bits_kind])[0]
            bits = self._op("arith.muli", [bits, self._like(self._integer(factor), value)], [bits_kind])[0]
        number = self._times(self._op("arith.sitofp", [bits], [kind])[0], 2.0**-64)
        half = self._op("math.copysign", [self._number_like(value, 0.5), number], [kind])[0]
        return self._op("arith.mulf", [self._plus(half, number), self._like(self._amount, value)], [kind])[0]

    # --- numbers -----------------------------------------------------------------------------------------

    def _number(self, value: float, shape: Any = None) -> Any:
        attribute = ir.FloatAttr.get(self._f64, value)
        scalar = self._op("arith.constant", [], [self._f64], value=attribute)[0]
        return (
            scalar
            if shape is None
            else self._op("tensor.splat", [scalar], [ir.RankedTensorType.get(shape, self._f64)])[0]
        )

    def _integer(self, value: int) -> Any:
        value = (value + (1 << 63)) % (1 << 64) - (1 << 63)
        return self._op("arith.constant", [], [self._i64], value=ir.IntegerAttr.get(self._i64, value))[0]

    def _like(self, scalar: Any, value: Any) -> Any:
        """A scalar, splat to the shape of a value."""
        if not is_tensor(value.type):
            return scalar
        return self._op("tensor.splat", [scalar], [ir.RankedTensorType.get(value.type.shape, scalar.type)])[0]

    def _number_like(self, value: Any, number: float) -> Any:
        return self._like(self._number(number), value)

    def _plus(self, a: Any, b: Any) -> Any:
        return self._op("arith.addf", [a, b], [a.type])[0]

    def _times(self, value: Any, number: float) -> Any:
        return self._op("arith.mulf", [value, self._number_like(value, number)], [value.type])[0]


def is_tensor(kind: Any) -> bool:
    return isinstance(kind, ir.RankedTensorType)


def float_of(kind: Any) -> str | None:
    """The floating-point type of a scalar or of a tensor's elements, if it is in `FORMATS`."""
    element = str(kind.element_type if is_tensor(kind) else kind)
    return element if element in FORMATS else None
