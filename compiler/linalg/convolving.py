"""Writes a convolution in the place of the loops that were found to be one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.compiler.dialect.operations import Load
from triton_porting_kit.compiler.dialect.types import element_of
from triton_porting_kit.compiler.structured.poly import Poly
from triton_porting_kit.toolchain.mlir import ir

from .integers import Integers
from .nests import Nest
from .windows import Bound

CONVOLUTION = "linalg.conv_2d_nhwc_hwcf"


@dataclass
class Tile:
    """A load of all that a convolution reads of one operand."""

    load: Any
    """One of the loads that it takes the place of."""
    shape: tuple[int, ...]
    offset: Poly
    strides: tuple[Poly, ...]
    bounds: list[Bound]
    conditions: tuple[Any, ...]
    """Booleans: nothing is read unless all are set."""


@dataclass(frozen=True)
class Loop:
    """A loop around the convolution, from 0."""

    size: int
    counter: Poly
    """The name of its counter."""
    steps: tuple[Poly, ...]
    """What sums grow by with each iteration."""


@dataclass
class Convolution:
    """What takes the place of a nest."""

    nest: Nest
    window: Tile
    weights: Tile
    result: tuple[int, ...]
    """The shape of the result: image, rows, columns, filters."""
    strides: tuple[int, int]
    dilations: tuple[int, int]
    loops: list[Loop]
    """The fastest first."""
    integers: Integers


def emit(convolution: Convolution) -> None:
    """Replace the nest of a convolution."""
    nest, place = convolution.nest, convolution.nest.place
    product = nest.products[-1]
    start = nest.loops[0].operands[3] if nest.loops else nest.products[0].operands[2]
    writer = _Writer(place, product.location, convolution.integers.symbols)
    outer: list[Any] = []
    carried = start
    for loop in nest.others:
        carried = writer.enter(
            list(loop.operands)[:3], loop.regions[0].blocks[0].arguments[0], carried, outer
        )
    for counted in reversed(convolution.loops):
        bounds = [writer.number(value, writer.index) for value in (0, counted.size, 1)]
        ((monomial, _),) = counted.counter.terms
        carried = writer.enter(bounds, convolution.integers.symbols[monomial[0]], carried, outer)
    made = writer.convolved(convolution, carried)
    for loop in reversed(outer):
        list(loop.regions[0].blocks[0].operations)[-1].operation.operands[0] = made
        made = loop.results[0]
    product = nest.loops[0] if nest.loops else product
    product.results[0].replace_all_uses_with(made)
    _erase(nest)


def _erase(nest: Nest) -> None:
    if nest.loops:
        nest.loops[0].erase()
        return
    for product in reversed(nest.products):
        operands = list(product.operands)[:2]
        product.erase()
        for value in operands:
            while value is not None and not any(True for _ in value.uses):
                operation = value.owner.operation
                value = operation.operands[0] if operation.name == "tensor.collapse_shape" else None
                operation.erase()


class _Writer:
    """Writes operations before one."""

    def __init__(self, at: Any, location: Any, symbols: Sequence[Any]) -> None:
        self._at, self._location = at, location
        self._symbols = list(symbols)
        self._renamed: dict[Any, Any] = {}
        self._numbers: dict[tuple[int, str], Any] = {}
        self._wide: dict[int, Any] = {}
        self.index = ir.IndexType.get()
        self.i64 = ir.IntegerType.get_signless(64)

    def enter(self, bounds: Sequence[Any], counter: Any, carried: Any, outer: list[Any]) -> Any:
        """Begin a loop whose counter has the name `counter`; returns what it carries. Go on inside of it."""
        kind = carried.type
        loop = self._op("scf.for", [*bounds, carried], [kind], regions=1)
        kinds = [bounds[0].type, kind]
        block = loop.regions[0].blocks.append(*kinds, arg_locs=[self._location] * 2)
        with ir.InsertionPoint(block):
            end = ir.Operation.create("scf.yield", operands=[block.arguments[1]], loc=self._location)
        self._renamed[counter] = block.arguments[0]
        self._at = end
        outer.append(loop)
        return block.arguments[1]

    def convolved(self, convolution: Convolution, carried: Any) -> Any:
        """The convolution of the loaded tiles, added to `carried`."""
        window, weights = self._load(convolution.window), self._load(convolution.weights)
        element = ir.RankedTensorType(carried.type).element_type
        shape = convolution.result
        kind = ir.RankedTensorType.get(list(shape), element)
        groups = ir.ArrayAttr.get(
            [
                ir.ArrayAttr.get([ir.IntegerAttr.get(self.i64, d) for d in group])
                for group in ((0, 1, 2), (3,))
            ]
        )
        sizes = ir.DenseI64ArrayAttr.get(list(shape))
        init = self._value(
            "tensor.expand_shape", [carried], kind, reassociation=groups, static_output_shape=sizes
        )
        pair = ir.RankedTensorType.get([2], self.i64)

        def pairs(values: Sequence[int]) -> Any:
            return ir.DenseElementsAttr.get([ir.IntegerAttr.get(self.i64, v) for v in values], pair)

        made = self._op(
            CONVOLUTION,
            [window, weights, init],
            [kind],
            regions=1,
            strides=pairs(convolution.strides),
            dilations=pairs(convolution.dilations),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([2, 1]),
        )
        kinds = [ir.RankedTensorType(value.type).element_type for value in (window, weights, init)]
        self._multiply_add(made, kinds)
        return self._value("tensor.collapse_shape", [made.results[0]], carried.type, reassociation=groups)

    def _multiply_add(self, operation: Any, kinds: Sequence[Any]) -> None:
        """The region of a named operation that adds products, as that of the kernel's own products."""
        block = operation.regions[0].blocks.append(*kinds, arg_locs=[self._location] * 3)
        outer, location = ir.InsertionPoint(block), self._location
        a, b, c = block.arguments
        floating = str(kinds[2])[0] != "i"

        def op(name: str, operands: Sequence[Any]) -> Any:
            return ir.Operation.create(
                name, results=[c.type], operands=list(operands), loc=location, ip=outer
            ).results[0]

        wide = [
            x if x.type == c.type else op("arith.extf" if floating else "arith.extsi", [x]) for x in (a, b)
        ]
        total = op(
            "arith.addf" if floating else "arith.addi",
            [c, op("arith.mulf" if floating else "arith.muli", wide)],
        )
        ir.Operation.create("linalg.yield", operands=[total], loc=location, ip=outer)

    def _load(self, tile: Tile) -> Any:
        location, self._location = self._location, tile.load.location
        low, high = self._bounds(tile) if tile.bounds or tile.conditions else ([], [])
        element = element_of(tile.load.results[0])
        zero = None
        if low:
            kind = ir.Type.parse(element)
            number = ir.IntegerAttr.get(kind, 0) if element.startswith("i") else ir.FloatAttr.get(kind, 0.0)
            zero = self._value("arith.constant", [], kind, value=number)
        op: Load[Any] = Load(tile.load)
        given = {"base": op.base, "offset": self._sum(tile.offset), "low": low, "high": high, "other": zero}
        operands, sizes = Load.operands_of(
            {**given, "strides": [self._sum(stride) for stride in tile.strides]}
        )
        result = ir.RankedTensorType.get(list(tile.shape), ir.Type.parse(element))
        made = self._value(
            Load.OPERATION_NAME, operands, result, operandSegmentSizes=ir.DenseI32ArrayAttr.get(sizes)
        )
        self._location = location
        return made

    def _bounds(self, tile: Tile) -> tuple[list[Any], list[Any]]:
        """From which index on, and below which, elements are in bounds, of each dimension."""
        zero = self.number(0)
        low, high = [zero] * len(tile.shape), [self.number(size) for size in tile.shape]
        conditions = list(tile.conditions)
        for bound in tile.bounds:
            dim, rest = bound.dim, self._sum(bound.rest)
            if dim is None:
                predicate = ir.IntegerAttr.get(self.i64, 5)  # sge
                i1 = ir.IntegerType.get_signless(1)
                conditions.append(self._value("arith.cmpi", [rest, zero], i1, predicate=predicate))
                continue
            factor = self.number(abs(bound.factor))
            if bound.factor > 0:
                first = self._value("arith.subi", [zero, rest], self.i64)
                if bound.factor > 1:
                    first = self._value("arith.ceildivsi", [first, factor], self.i64)
                low[dim] = self._value("arith.maxsi", [low[dim], first], self.i64)
            else:
                if bound.factor < -1:
                    rest = self._value("arith.floordivsi", [rest, factor], self.i64)
                behind = self._value("arith.addi", [rest, self.number(1)], self.i64)
                high[dim] = self._value("arith.minsi", [high[dim], behind], self.i64)
        for dim, size in enumerate(tile.shape):
            if low[dim] != zero:
                low[dim] = self._value("arith.minsi", [low[dim], self.number(size)], self.i64)
            if high[dim] != self.number(size):
                high[dim] = self._value("arith.maxsi", [high[dim], zero], self.i64)
        for condition in conditions:
            high[0] = self._value("arith.select", [condition, high[0], zero], self.i64)
        return low, high

    # --- integers ------------------------------------------------------------------------------------

    def number(self, value: int, kind: Any = None) -> Any:
        kind = kind or self.i64
        key = value, str(kind)
        if key not in self._numbers:
            made = ir.Operation.create(
                "arith.constant",
                results=[kind],
                attributes={"value": ir.IntegerAttr.get(kind, value)},
                loc=self._location,
                ip=ir.InsertionPoint(self._at),
            )
            self._numbers[key] = made.results[0]
        return self._numbers[key]

    def _sum(self, poly: Poly) -> Any:
        """A polynomial as i64."""
        total = None
        for monomial, coefficient in poly.sorted_terms():
            term = None if coefficient == 1 and monomial else self.number(coefficient)
            for symbol in monomial:
                factor = self._scalar(symbol)
                term = factor if term is None else self._value("arith.muli", [term, factor], self.i64)
            total = term if total is None else self._value("arith.addi", [total, term], self.i64)
        return self.number(0) if total is None else total

    def _scalar(self, symbol: int) -> Any:
        """The value that a polynomial has a number for, as i64."""
        if symbol not in self._wide:
            value = self._symbols[symbol]
            value = self._renamed.get(value, value)
            if value.type == self.index:
                value = self._value("arith.index_cast", [value], self.i64)
            elif value.type != self.i64:
                value = self._value("arith.extsi", [value], self.i64)
            self._wide[symbol] = value
        return self._wide[symbol]

    def _value(self, name: str, operands: Sequence[Any], kind: Any, **attributes: Any) -> Any:
        return self._op(name, operands, [kind], **attributes).results[0]

    def _op(
        self, name: str, operands: Sequence[Any], kinds: Sequence[Any], regions: int = 0, **attributes: Any
    ) -> Any:
        return ir.Operation.create(
            name,
            results=list(kinds),
            operands=list(operands),
            attributes=attributes,
            regions=regions,
            loc=self._location,
            ip=ir.InsertionPoint(self._at),
        )
