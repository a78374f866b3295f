"""Creates upstream operations at a place in the function: scalars of addresses, and tensors made from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from triton_porting_kit.compiler.dialect import Op
from triton_porting_kit.compiler.dialect.building import create
from triton_porting_kit.compiler.dialect.operations import Range
from triton_porting_kit.toolchain.mlir import ir

from .affine import Affine, Shape
from .analysis import Analysis
from .poly import Poly
from .scalars import Clamped, Wrapped
from .types import Types, element_bits


class Emitter:
    """Creates operations before `at` (an insertion point) with the location `location`."""

    def __init__(self, types: Types, analysis: Analysis, entry: Any) -> None:
        self.types = types
        self._analysis = analysis
        self._entry = entry
        self._constants: dict[Any, Any] = {}
        self._extended: dict[int, Any] = {}
        self._ranges: dict[tuple[int, int], Any] = {}
        self.readers: dict[Any, Any] = {}
        """Values whose type will change -> the cast that gives them in their new type."""
        self.unknown = ir.Location.unknown()
        self.at: Any = None
        self.location: Any = self.unknown

    def before(self, operation: Any) -> Self:
        """Create the following operations before `operation`, with its location."""
        self.at = ir.InsertionPoint(operation)
        self.location = operation.location
        return self

    def op(
        self,
        name: str,
        operands: Sequence[Any],
        results: Sequence[Any],
        attributes: dict[str, Any] | None = None,
        regions: int = 0,
    ) -> Any:
        """Create an operation."""
        return ir.Operation.create(
            name,
            results=results,
            operands=operands,
            attributes=attributes,
            regions=regions,
            loc=self.location,
            ip=self.at,
        )

    def create(
        self,
        cls: type[Op[Any]],
        results: list[Any],
        attributes: dict[str, Any] | None = None,
        **operands: Any,
    ) -> Any:
        """Create an operation of the dialect; `operands` by the names of their groups."""
        return create(cls, operands, results, attributes, at=self.at, location=self.location)

    def value(
        self, name: str, operands: Sequence[Any], result: Any, attributes: dict[str, Any] | None = None
    ) -> Any:
        """Create an operation with one result and return that."""
        return self.op(name, operands, [result], attributes).results[0]

    # --- attributes ------------------------------------------------------------------------------

    def integer(self, value: int, kind: Any = None) -> Any:
        return ir.IntegerAttr.get(kind or self.types.i64, value)

    # --- scalars ---------------------------------------------------------------------------------

    def constant(self, value: int, kind: Any = None) -> Any:
        """A scalar integer constant, created once at the function's entry.

        The default type is i64, which wraps around.
        """
        if kind is None:
            kind, value = self.types.i64, (value + (1 << 63)) % (1 << 64) - (1 << 63)
        return self.constant_attribute(ir.IntegerAttr.get(kind, value), kind)

    def constant_attribute(self, attribute: Any, kind: Any) -> Any:
        """A scalar constant of type `kind`, created once at the function's entry."""
        found = self._constants.get(attribute)
        if found is None:
            found = self._constants[attribute] = ir.Operation.create(
                "arith.constant",
                results=[kind],
                attributes={"value": attribute},
                loc=self.unknown,
                ip=ir.InsertionPoint.at_block_begin(self._entry),
            ).results[0]
        return found

    def add(self, a: Any, b: Any) -> Any:
        return self.value("arith.addi", [a, b], a.type)

    def scalar(self, identifier: int) -> Any:
        """A scalar of the polynomials as i64, extended once right after its definition."""
        found = self._extended.get(identifier)
        if found is not None:
            return found
        scalar = self._analysis.scalars[identifier]
        if isinstance(scalar, Wrapped):
            return self._wrapped(scalar)
        if isinstance(scalar, Clamped):
            low, high = self.constant(scalar.least), self.constant(scalar.most)
            return self.i64("arith.maxsi", self.i64("arith.minsi", self.poly(scalar.poly), high), low)
        value, unsigned = scalar.value, scalar.unsigned
        info = self.types.info(value)
        if info.shape is not None or info.is_pointer:
            found = self.as_type(value, self.types.i64)
        elif info.element == "i64":
            found = value
        else:
            found = self._after(value, "arith.extui" if unsigned else "arith.extsi", self.types.i64).results[
                0
            ]
        self._extended[identifier] = found
        return found

    def _wrapped(self, scalar: Wrapped) -> Any:
        total = self.poly(scalar.poly)
        if scalar.bits == 64:
            return total
        low = self.value("arith.trunci", [total], self.types.parse(f"i{scalar.bits}"))
        return self.i64("arith.extsi", low)

    def i64(self, name: str, *operands: Any) -> Any:
        """An operation with an i64 result."""
        return self.value(name, operands, self.types.i64)

    def as_type(self, value: Any, kind: Any) -> Any:
        """A value that will have type `kind` after the rewriting, usable in that type now.

        After the rewriting, the cast is one from a type to itself, and folds away.
        """
        found = self.readers.get(value)
        if found is None:
            found = self.readers[value] = self._after(value, "builtin.unrealized_conversion_cast", kind)
        return found.results[0]

    def _after(self, value: Any, name: str, result: Any) -> Any:
        """An operation on `value` right after its definition."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            place, location = ir.InsertionPoint.at_block_begin(owner), value.location
        else:
            place, location = ir.InsertionPoint.after(owner), owner.location
        return ir.Operation.create(name, results=[result], operands=[value], loc=location, ip=place)

    def poly(self, poly: Poly) -> Any:
        """A polynomial as an i64 value."""
        total = None
        for monomial, coefficient in poly.sorted_terms():
            if coefficient < 0 and (monomial or total is not None):
                less = self._monomial(monomial, -coefficient)
                start = self.constant(0) if total is None else total
                total = self.value("arith.subi", [start, less], self.types.i64)
                continue
            term = self._monomial(monomial, coefficient)
            total = term if total is None else self.value("arith.addi", [total, term], self.types.i64)
        return self.constant(0) if total is None else total

    def _monomial(self, monomial: tuple[int, ...], coefficient: int) -> Any:
        product = None
        for identifier in monomial:
            factor = self.scalar(identifier)
            product = (
                factor if product is None else self.value("arith.muli", [product, factor], self.types.i64)
            )
        if product is None:
            return self.constant(coefficient)
        if coefficient == 1:
            return product
        return self.value("arith.muli", [product, self.constant(coefficient)], self.types.i64)

    def pointer(self, base: Any, offset: Poly, element_bytes: int) -> Any:
        """`base` advanced by `offset` elements."""
        if not offset.terms:
            return base
        element = self.types.parse(f"i{8 * element_bytes}")
        return self.value(
            "llvm.getelementptr",
            [base, self.poly(offset)],
            self.types.pointer,
            {
                "elem_type": ir.TypeAttr.get(element),
                "rawConstantIndices": ir.DenseI32ArrayAttr.get([-(2**31)]),
            },
        )

    # --- tensors ---------------------------------------------------------------------------------

    def splat(self, scalar: Any, shape: Shape) -> Any:
        return self.value("tensor.splat", [scalar], self.types.tensor(shape, scalar.type))

    def extract(self, source: Any) -> Any:
        """The first (and only) element of a tensor."""
        zero = self.constant(0, self.types.index)
        kind = source.type
        return self.value("tensor.extract", [source, *[zero] * kind.rank], kind.element_type)

    def range(self, start: int, size: int) -> Any:
        """`start, start + 1, ...` as tensor<size x i32>, created once at the function's entry."""
        found = self._ranges.get((start, size))
        if found is None:
            found = self._ranges[start, size] = ir.Operation.create(
                Range.OPERATION_NAME,
                results=[self.types.tensor((size,), self.types.i32)],
                attributes={"start": self.integer(start, self.types.i32)},
                loc=self.unknown,
                ip=ir.InsertionPoint.at_block_begin(self._entry),
            ).results[0]
        return found

    def broadcast(self, source: Any, target: Shape, added: Sequence[int]) -> Any:
        """`source` repeated along the dimensions `added` of `target`, which it lacks."""
        element = source.type.element_type
        kind = self.types.tensor(target, element)
        if not added:
            return source
        empty = self.value("tensor.empty", [], kind)
        operation = self.op(
            "linalg.broadcast",
            [source, empty],
            [kind],
            {"dimensions": ir.DenseI64ArrayAttr.get(list(added))},
            regions=1,
        )
        self._yield_first(operation, [element, element])
        return operation.results[0]

    def transpose(self, source: Any, target: Shape, order: Sequence[int]) -> Any:
        element = source.type.element_type
        kind = self.types.tensor(target, element)
        empty = self.value("tensor.empty", [], kind)
        operation = self.op(
            "linalg.transpose",
            [source, empty],
            [kind],
            {"permutation": ir.DenseI64ArrayAttr.get(list(order))},
            regions=1,
        )
        self._yield_first(operation, [element, element])
        return operation.results[0]

    def _yield_first(self, operation: Any, arguments: Sequence[Any]) -> None:
        block = operation.regions[0].blocks.append(*arguments, arg_locs=[self.location] * len(arguments))
        ir.Operation.create(
            "linalg.yield",
            operands=[block.arguments[0]],
            loc=self.location,
            ip=ir.InsertionPoint.at_block_begin(block),
        )

    def reshape(self, source: Any, before: Shape, after: Shape) -> Any:
        """`source` in another shape with the same number of elements, row-major."""
        if before == after:
            return source
        element = source.type.element_type
        if len(before) > 1:
            total = 1
            for size in before:
                total *= size
            source = self._collapse(source, [list(range(len(before)))], (total,), element)
        if len(after) > 1:
            source = self.expand(source, [list(range(len(after)))], after)
        return source

    def expand(self, source: Any, groups: Sequence[Sequence[int]], target: Shape) -> Any:
        """tensor.expand_shape"""
        return self.value(
            "tensor.expand_shape",
            [source],
            self.types.tensor(target, source.type.element_type),
            {
                "reassociation": self._groups(groups),
                "static_output_shape": ir.DenseI64ArrayAttr.get(list(target)),
            },
        )

    def _collapse(self, source: Any, groups: Sequence[Sequence[int]], target: Shape, element: Any) -> Any:
        kind = self.types.tensor(target, element)
        return self.value("tensor.collapse_shape", [source], kind, {"reassociation": self._groups(groups)})

    def _groups(self, groups: Sequence[Sequence[int]]) -> Any:
        return ir.ArrayAttr.get([ir.ArrayAttr.get([self.integer(d) for d in group]) for group in groups])

    def expand_dims(self, source: Any, before: Shape, axis: int) -> Any:
        """Add a dimension of size 1 at `axis`."""
        after = (*before[:axis], 1, *before[axis:])
        groups: list[list[int]] = []
        for d in range(len(after)):
            if groups and (d == axis or (d == 1 and axis == 0)):
                groups[-1].append(d)
            else:
                groups.append([d])
        return self.expand(source, groups, after)

    def broadcast_dims(self, source: Any, before: Shape, after: Shape) -> Any:
        """Broadcast dimensions of size 1 to those of `after`."""
        added = [d for d, (s, t) in enumerate(zip(before, after, strict=True)) if s != t]
        if not added:
            return source
        kept = [d for d in range(len(before)) if d not in added]
        if not kept:
            return self.splat(self.extract(source), after)
        # Each dropped dimension is merged into the kept one before it; leading ones are merged into the one after.
        groups = [list(range(kept[0] + 1))]
        for d in range(kept[0] + 1, len(before)):
            if d in kept:
                groups.append([d])
            else:
                groups[-1].append(d)
        smaller = tuple(before[d] for d in kept)
        source = self._collapse(source, groups, smaller, source.type.element_type)
        return self.broadcast(source, after, added)

    def affine(self, affine: Affine, shape: Shape, element: Any = None) -> Any:
        """An affine expression as a tensor of i64 (or of the integer type `element`)."""
        element = element or self.types.i64
        total = (
            self.splat(self._cast(self.poly(affine.offset), element), shape) if affine.offset.terms else None
        )
        for d, (stride, wrap) in enumerate(zip(affine.strides, affine.wraps, strict=True)):
            if not stride.terms:
                continue
            size = (shape[d],)
            index = self._cast(self.range(0, shape[d]), element)
            if wrap is not None:
                start = self.splat(self._cast(self.poly(wrap.start), element), size)
                limit = self.splat(self._cast(self.poly(wrap.size), element), size)
                index = self.value("arith.remsi", [self.add(start, index), limit], index.type)
            if stride.value != 1:
                factor = self.splat(self._cast(self.poly(stride), element), size)
                index = self.value("arith.muli", [index, factor], index.type)
            index = self.broadcast(index, shape, [k for k in range(len(shape)) if k != d])
            total = index if total is None else self.add(total, index)
        return self.splat(self.constant(0, element), shape) if total is None else total

    def to_i64(self, value: Any) -> Any:
        """A scalar or tensor of integers, sign-extended to i64."""
        return self._cast(value, self.types.i64)

    def to_offsets(self, value: Any) -> Any:
        """A tensor of integers in a type that accesses take: narrower ones are sign-extended to i32."""
        narrow = element_bits(str(value.type.element_type)) < 32
        return self._cast(value, self.types.i32) if narrow else value

    def _cast(self, value: Any, element: Any) -> Any:
        tensor = isinstance(value.type, ir.RankedTensorType)
        have = value.type.element_type if tensor else value.type
        if have == element:
            return value
        wider = element_bits(str(element)) > element_bits(str(have))
        kind = self.types.tensor(tuple(value.type.shape), element) if tensor else element
        return self.value("arith.extsi" if wider else "arith.trunci", [value], kind)
