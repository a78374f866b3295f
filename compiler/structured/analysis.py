"""Affine forms of the integers and pointers of a TTIR function.

Integers wrap around. The form of an integer tensor (`affine`) is correct modulo 2**bits of its type; sums, products and
shifts keep that. Where the value itself matters (it is extended, compared, divided, or added to a pointer), `exact` is
used.

The analysis only reads the function; rewriting comes later. Results are kept in one insertion-ordered
memo, so that an assumption about a loop-carried value (see `carried`) can be undone together with everything derived
from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.toolchain.mlir import ir

from .affine import Affine, Pointer
from .depth import Depth, made_of
from .exactness import Exactness
from .poly import ONE, ZERO, Poly
from .ranges import Ranges
from .residues import Residues
from .scalars import Leaf, Scalars
from .types import Types

CARRIERS = frozenset({"scf.for", "scf.while", "scf.if", "arith.select"})
"""Operations that pass on one of several values. `carried` resolves them."""


class Analysis:
    """Affine forms of integers, and bases and affine indices of pointers, by SSA value."""

    def __init__(self, types: Types, *, promises: bool = False) -> None:
        """With `promises`, assumptions that depend only on arguments and the grid are left for the launch to verify."""
        self.types = types
        self.memo: dict[Any, Any] = {}
        self.scalars = Scalars()
        self._depth = Depth()
        self.decide: Callable[[Any], None] = lambda operation: None
        """Fills the memo for the results and block arguments of a carrier operation."""
        self.sources: Callable[[Any], list[Any] | None] = lambda value: None
        """The values that a carrier's result or block argument may come from; None for other values."""
        self.ranges = Ranges(types, self.scalars, lambda value: self.sources(value), promises=promises)
        residues = Residues(types, self.scalars, lambda value: self.sources(value))
        self._exactness = Exactness(types, self.ranges, residues, self.scalars)

    def scalar(self, value: Any, unsigned: bool = False) -> Poly:
        """A scalar integer SSA value, signed unless `unsigned`."""
        return self.scalars.poly(Leaf(value, unsigned))

    # --- integers --------------------------------------------------------------------------------

    def affine(self, value: Any) -> Affine | None:
        """The affine form of an integer scalar or tensor, correct modulo its width; None if it has none."""
        if value in self.memo:
            return self.memo[value]  # type: ignore[no-any-return]
        info = self.types.info(value)
        if not info.is_index:
            self.memo[value] = None
            return None
        with self._depth.deeper() as far:
            if far:
                self._look_at_operands(value)
            if info.shape is not None:
                self._decide_carrier(value)
            if value not in self.memo:
                self.memo[value] = self._affine(value)
        return self.memo[value]  # type: ignore[no-any-return]

    def _look_at_operands(self, value: Any) -> None:
        for inner in made_of(value, self._operands, self.memo):
            if self.types.info(inner).is_pointer:
                self.pointer(inner)
            else:
                self.affine(inner)

    def _operands(self, value: Any) -> list[Any]:
        """The operands that the form of a value is derived from."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            return []
        if owner.operation.name in ("tt.addptr", "tt.bitcast") or owner.operation.name in _INTEGER_RULES:
            infos = ((operand, self.types.info(operand)) for operand in owner.operands)
            return [operand for operand, info in infos if info.is_pointer or info.is_index]
        return []

    def _affine(self, value: Any) -> Affine | None:
        shape = self.types.info(value).shape
        owner = value.owner
        name = "" if isinstance(owner, ir.Block) else owner.operation.name
        if name == "arith.constant":
            return _constant(owner, 0 if shape is None else len(shape))
        if shape is None:
            if name == "arith.extsi":
                return self.affine(owner.operands[0]) or Affine(self.scalar(value))
            return Affine(self.scalar(value))
        rule = _INTEGER_RULES.get(name)
        found = rule(self, owner, shape) if rule else None
        return None if found is None or _surely_wraps(found, shape, self.types.info(value).bits) else found

    def _binary(self, operation: Any) -> tuple[Affine, Affine] | None:
        left = self.affine(operation.operands[0])
        right = self.affine(operation.operands[1]) if left is not None else None
        return (left, right) if left is not None and right is not None else None

    def exact(self, value: Any) -> Affine | None:
        """The form that equals a signed integer, possibly under assumptions (`Affine.assumed`)."""
        key = ("exact", value)
        if key not in self.memo:
            found, info = self.affine(value), self.types.info(value)
            if found is not None and info.shape is not None:
                found = self._exactness.signed(found, info.shape, info.bits)
            self.memo[key] = found
        return self.memo[key]  # type: ignore[no-any-return]

    def exact_unsigned(self, value: Any) -> Affine | None:
        """The form that equals an unsigned integer."""
        found, info = self.affine(value), self.types.info(value)
        if found is None:
            return None
        if info.shape is None:
            found = Affine(self.scalar(value))
        # A loop-carried offset may have been negative before it became a scalar.
        if any(self.types.info(leaf).shape is not None for leaf in self.scalars.values(found.scalars)):
            return None
        return self._exactness.unsigned(found, info.shape or (), info.bits)

    # --- pointers --------------------------------------------------------------------------------

    def pointer(self, value: Any) -> Pointer:
        """The pointer form of a scalar or tensor of pointers."""
        found = self.memo.get(value)
        if found is None:
            with self._depth.deeper() as far:
                if far:
                    self._look_at_operands(value)
                self._decide_carrier(value)
                found = self.memo.get(value)
                if found is None:
                    found = self.memo[value] = self._pointer(value)
        assert isinstance(found, Pointer)
        return found

    def _pointer(self, value: Any) -> Pointer:
        info = self.types.info(value)
        owner = value.owner
        name = "" if isinstance(owner, ir.Block) else owner.operation.name
        size = info.element_bytes
        if name == "tt.addptr":
            source = self.pointer(owner.operands[0])
            offset = self.moves_by(owner.operands[1]) if source.index is not None else None
            index = source.index.add(offset) if source.index is not None and offset is not None else None
            return Pointer(source.base, index, size)
        if name == "tt.bitcast":
            return self._cast(self.pointer(owner.operands[0]), size)
        if info.shape is None:
            return Pointer(value, Affine(ZERO), size)
        if name == "tt.splat":
            source = self.pointer(owner.operands[0])
            assert source.index is not None
            return Pointer(source.base, Affine.uniform(source.index.offset, len(info.shape)), size)
        if name in _SHAPE_RULES:
            source = self.pointer(owner.operands[0])
            if source.index is None:
                return source
            return Pointer(source.base, _SHAPE_RULES[name](self, owner, info.shape, source.index), size)
        return Pointer(None, None, size)

    def moves_by(self, value: Any) -> Affine | None:
        """The offset of a pointer addition. Addresses have 64 bits, so a 64-bit offset need not be exact."""
        return self.affine(value) if self.types.info(value).bits == 64 else self.exact(value)

    def _cast(self, source: Pointer, size: int) -> Pointer:
        if source.element_bytes == size or source.index is None:
            return Pointer(source.base if source.element_bytes == size else None, source.index, size)
        index = source.index.scaled(Poly.constant(source.element_bytes)).divided(size)
        return Pointer(source.base if index is not None else None, index, size)

    def _decide_carrier(self, value: Any) -> None:
        owner = value.owner
        operation = owner.owner if isinstance(owner, ir.Block) else owner
        if operation.operation.name in CARRIERS:
            self.decide(operation)


def _constant(operation: Any, rank: int) -> Affine | None:
    attribute = operation.attributes["value"]
    if isinstance(attribute, ir.DenseIntElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    return Affine.uniform(Poly.constant(ir.IntegerAttr(attribute).value), rank)


def _make_range(analysis: Analysis, operation: Any, shape: tuple[int, ...]) -> Affine | None:
    start = Poly.constant(ir.IntegerAttr(operation.attributes["start"]).value)
    return Affine(start, (ONE if shape[0] != 1 else ZERO,), (None,))


def _splat(analysis: Analysis, operation: Any, shape: tuple[int, ...]) -> Affine | None:
    scalar = analysis.affine(operation.operands[0])
    return None if scalar is None else Affine.uniform(scalar.offset, len(shape))


def _add(analysis: Analysis, operation: Any, shape: tuple[int, ...]) -> Affine | None:
    pair = analysis._binary(operation)
    return pair[0].add(pair[1]) if pair else None


def _subtract(analysis: Analysis, operation: Any, shape: tuple[int, ...]) -> Affine | None:
    pair = analysis._binary(operation)
    return pair[0].add(pair[1].scaled(Poly.constant(-1))) if pair else None


def _multiply(analysis: Analysis, operation: Any, shape: tuple[int, ...]) -> Affine | None:
    pair = analysis._binary(operation)
    if pair is None:
        return None
    left, right = pair
    if right.is_uniform:
        return left.scaled(right.offset)
    return right.scaled(left.offset) if left.is_uniform else None


def _shift_left(analysis: Analysis, operation: Any, shape: tuple[int, ...]) -> Affine | None:
    pair = analysis._binary(operation)
    if pair is None or not pair[1].is_uniform:
        return None
    amount = pair[1].offset.value
    return pair[0].scaled(Poly.constant(1 << amount)) if amount is not None and 0 <= amount < 32 else None


def _remainder(analysis: Analysis, operation: Any, shape: tuple[int, ...]) -> Affine | None:
    exact = analysis.exact if operation.operation.name == "arith.remsi" else analysis.exact_unsigned
    left = exact(operation.operands[0])
    right = exact(operation.operands[1]) if left is not None else None
    if left is None or right is None or not right.is_uniform:
        return None
    largest = _largest(left, shape)
    size = right.offset.value
    if largest is not None and size is not None and largest < size:
        return left
    found = left.wrapped(right.offset)
    return None if found is None else found.assuming(*right.assumed)


def _largest(affine: Affine, shape: tuple[int, ...]) -> int | None:
    """The largest element, if all elements are known constants and not negative."""
    values = [affine.offset.value, *(stride.value for stride in affine.strides)]
    if affine.is_wrapped or any(v is None or v < 0 for v in values):
        return None
    known = [v for v in values if v is not None]
    return known[0] + sum(s * (n - 1) for s, n in zip(known[1:], shape, strict=True))


def _surely_wraps(affine: Affine, shape: tuple[int, ...], bits: int) -> bool:
    """Whether the constant parts alone exceed the range of the type: then it is a hash rather than an address."""
    reach = [abs(stride.value or 0) * (size - 1) for stride, size in zip(affine.strides, shape, strict=True)]
    return max([abs(affine.offset.value or 0), *reach]) >= 1 << (bits - 1)


def _truncated(analysis: Analysis, operation: Any, shape: tuple[int, ...]) -> Affine | None:
    return analysis.affine(operation.operands[0])


def _extended(analysis: Analysis, operation: Any, shape: tuple[int, ...]) -> Affine | None:
    signed = operation.operation.name == "arith.extsi"
    return (analysis.exact if signed else analysis.exact_unsigned)(operation.operands[0])


def _shape_change(analysis: Analysis, operation: Any, shape: tuple[int, ...]) -> Affine | None:
    source = analysis.affine(operation.operands[0])
    if source is None:
        return None
    return _SHAPE_RULES[operation.operation.name](analysis, operation, shape, source)


def _expand_dims(analysis: Analysis, operation: Any, shape: tuple[int, ...], source: Affine) -> Affine | None:
    return source.expanded(ir.IntegerAttr(operation.attributes["axis"]).value)


def _broadcast(analysis: Analysis, operation: Any, shape: tuple[int, ...], source: Affine) -> Affine | None:
    return source


def _transpose(analysis: Analysis, operation: Any, shape: tuple[int, ...], source: Affine) -> Affine | None:
    return source.transposed(tuple(ir.DenseI32ArrayAttr(operation.attributes["order"])))


def _reshape(analysis: Analysis, operation: Any, shape: tuple[int, ...], source: Affine) -> Affine | None:
    before = analysis.types.info(operation.operands[0]).shape
    assert before is not None
    return source.reshaped(before, shape)


_SHAPE_RULES: dict[str, Callable[[Analysis, Any, tuple[int, ...], Affine], Affine | None]] = {
    "tt.expand_dims": _expand_dims,
    "tt.broadcast": _broadcast,
    "tt.trans": _transpose,
    "tt.reshape": _reshape,
}
_INTEGER_RULES: dict[str, Callable[[Analysis, Any, tuple[int, ...]], Affine | None]] = {
    "tt.make_range": _make_range,
    "tt.splat": _splat,
    "arith.addi": _add,
    "arith.subi": _subtract,
    "arith.muli": _multiply,
    "arith.shli": _shift_left,
    "arith.remsi": _remainder,
    "arith.remui": _remainder,
    "arith.extsi": _extended,
    "arith.extui": _extended,
    "arith.trunci": _truncated,
    **dict.fromkeys(_SHAPE_RULES, _shape_change),
}
