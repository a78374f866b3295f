"""Masks as boxes: a half-open interval of indices per dimension, and the remainder as a tensor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from triton_porting_kit.abi.intervals import within
from triton_porting_kit.toolchain.mlir import ir

from .affine import Affine, Promise, Shape
from .analysis import Analysis
from .depth import Depth, made_of
from .emit import Emitter
from .poly import ONE, ZERO, Poly
from .scalars import Clamped

_SIGNED = {2: "slt", 3: "sle", 4: "sgt", 5: "sge"}
_UNSIGNED = {6: "slt", 7: "sle", 8: "sgt", 9: "sge"}
_FAR = 1 << 61
_STEP = 1 << 40
_NEAR = (-(1 << 62), 1 << 62)
"""Within these bounds, a difference plus a step term does not overflow 64 bits."""


class Bound(NamedTuple):
    """`index < limit / step` (an upper bound) or `index > limit / step` (a lower one), not rounded."""

    dimension: int
    upper: bool
    limit: Poly
    step: int


class Rest(NamedTuple):
    """A mask tensor that is not a box, and the shape operations to apply to it, the outermost last."""

    value: Any
    shape_ops: tuple[Any, ...] = ()


@dataclass(eq=False, repr=False)
class Mask:
    """A conjunction of bounds, conditions and tensors."""

    bounds: list[Bound] = field(default_factory=list)
    uniform: list[Any] = field(default_factory=list)
    """Conditions on the whole tile: i1 SSA values, or polynomials that must be negative."""
    rest: list[Rest] = field(default_factory=list)
    assumed: list[Affine | Promise] = field(default_factory=list)
    """As in `Affine`: without these assumptions, bounds and conditions are meaningless."""


class MaskAnalysis:
    """Splits boolean tensors into a box and a remainder."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._memo: dict[Any, Mask] = {}
        self._depth = Depth()

    def mask(self, value: Any) -> Mask:
        found = self._memo.get(value)
        if found is None:
            with self._depth.deeper() as far:
                for inner in made_of(value, _parts, self._memo) if far else ():
                    self.mask(inner)
                found = self._memo[value] = self._split(value)
        return found

    def _split(self, value: Any) -> Mask:
        owner = value.owner
        name = "" if isinstance(owner, ir.Block) else owner.operation.name
        if name == "arith.andi":
            left, right = self.mask(owner.operands[0]), self.mask(owner.operands[1])
            if not (_is_opaque(left) and _is_opaque(right)):
                return Mask(
                    left.bounds + right.bounds,
                    left.uniform + right.uniform,
                    left.rest + right.rest,
                    left.assumed + right.assumed,
                )
        elif name == "arith.constant":
            attribute = owner.attributes["value"]
            if attribute.is_splat:
                return Mask() if ir.IntegerAttr(attribute.get_splat_value()).value else Mask(uniform=[ONE])
        elif name == "tt.splat":
            return Mask(uniform=[owner.operands[0]])
        elif name in ("tt.broadcast", "tt.expand_dims"):
            return self._reshaped(value, owner, name)
        elif name == "arith.cmpi":
            found = self._comparison(owner)
            if found is not None:
                return found
        return Mask(rest=[Rest(value)])

    def _reshaped(self, value: Any, operation: Any, name: str) -> Mask:
        inner = self.mask(operation.operands[0])
        if _is_opaque(inner):
            return Mask(rest=[Rest(value)])
        bounds, assumed = inner.bounds, inner.assumed
        if name == "tt.expand_dims":
            axis = ir.IntegerAttr(operation.attributes["axis"]).value
            bounds = [Bound(b.dimension + (b.dimension >= axis), b.upper, b.limit, b.step) for b in bounds]
            assumed = [part.expanded(axis) for part in assumed]
        # A dimension of size 1 has stride 0, so conditions on it are uniform, and broadcasting moves no bound.
        rest = [Rest(r.value, (*r.shape_ops, operation)) for r in inner.rest]
        return Mask(bounds, inner.uniform, rest, assumed)

    def _comparison(self, operation: Any) -> Mask | None:
        predicate = ir.IntegerAttr(operation.attributes["predicate"]).value
        exact = self._analysis.exact_unsigned if predicate in _UNSIGNED else self._analysis.exact
        left = exact(operation.operands[0])
        right = exact(operation.operands[1]) if left is not None else None
        if left is None or right is None:
            return None
        kind = _SIGNED.get(predicate) or _UNSIGNED.get(predicate)
        if predicate == 0:
            kinds = ["sle", "sge"]
        elif kind is not None:
            kinds = [kind]
        else:
            return None
        mask = Mask(assumed=[*left.assumed, *right.assumed])
        for kind in kinds:
            if not self._add_comparison(mask, left, right, kind):
                return None
        return mask

    def _add_comparison(self, mask: Mask, left: Affine, right: Affine, kind: str) -> bool:
        """Add `left kind right` to the mask; False if it is not an interval of one dimension's indices."""
        if kind in ("sgt", "sge"):
            left, right = right, left
        pair = self._comparable(left, right)
        difference = pair[0].add(pair[1].scaled(Poly.constant(-1))) if pair else None
        if difference is None or difference.is_wrapped:
            return False
        # Now the condition is: offset + step * index < 0.
        offset = difference.offset - (ONE if kind in ("sle", "sge") else ZERO)
        moving = [(d, stride) for d, stride in enumerate(difference.strides) if stride.terms]
        if not moving:
            mask.uniform.append(offset)
            return True
        if len(moving) > 1:
            return False
        dimension, stride = moving[0]
        step = stride.value
        if step is None or (pair != (left, right) and abs(step) > _STEP):
            return False
        mask.bounds.append(Bound(dimension, step > 0, -offset if step > 0 else offset, abs(step)))
        return True

    def _comparable(self, left: Affine, right: Affine) -> tuple[Affine, Affine] | None:
        """Both sides such that their difference fits 64 bits: an offset that is far away is clamped."""
        ranges = self._analysis.ranges
        if within(ranges.interval(left.offset - right.offset), _NEAR):
            return left, right
        near = [within(ranges.interval(side.offset), (-_FAR // 2, _FAR // 2)) for side in (left, right)]
        if near[1] and left.is_uniform:
            return left.at_offset(self._clamped(left.offset)), right
        if near[0] and right.is_uniform:
            return left, right.at_offset(self._clamped(right.offset))
        return None

    def _clamped(self, poly: Poly) -> Poly:
        return self._analysis.scalars.poly(Clamped(poly, _FAR))


def _parts(value: Any) -> list[Any]:
    """The operands of a compound mask."""
    owner = value.owner
    whole = isinstance(owner, ir.Block) or owner.operation.name not in _COMPOUND
    return [] if whole else list(owner.operands)


_COMPOUND = ("arith.andi", "tt.broadcast", "tt.expand_dims")


def _is_opaque(mask: Mask) -> bool:
    return not mask.bounds and not mask.uniform and bool(mask.rest)


def emit_box(emitter: Emitter, mask: Mask, shape: Shape) -> tuple[list[Any], list[Any]]:
    """Bounds lo and hi for every dimension as i64 values within [0, size]; both empty for the whole tile."""
    lows, highs = [], []
    if not any(_restricts(bound, shape) for bound in mask.bounds) and not mask.uniform:
        return [], []
    for d, size in enumerate(shape):
        low: Any = None
        high: Any = None
        for bound in mask.bounds:
            if bound.dimension != d or not _restricts(bound, shape):
                continue
            value = _limit(emitter, bound, size)
            if bound.upper:
                high = value if high is None else _binary(emitter, "arith.minsi", high, value)
            else:
                low = value if low is None else _binary(emitter, "arith.maxsi", low, value)
        lows.append(emitter.constant(0) if low is None else low)
        highs.append(emitter.constant(size) if high is None else high)
    for condition in mask.uniform:
        highs[0] = _conditional(emitter, condition, highs[0])
    return lows, highs


def _limit(emitter: Emitter, bound: Bound, size: int) -> Any:
    """The bound as i64, clamped to [0, size]."""
    # Upper: index < limit / step. Lower: index > limit / step, that is index >= floor(limit / step) + 1.
    constant = bound.limit.value
    if constant is not None:
        limit = -(-constant // bound.step) if bound.upper else constant // bound.step + 1
        return emitter.constant(min(max(limit, 0), size))
    if bound.step == 1:
        value = emitter.poly(bound.limit if bound.upper else bound.limit + ONE)
    else:
        step = emitter.constant(bound.step)
        value = _binary(
            emitter, "arith.ceildivsi" if bound.upper else "arith.floordivsi", emitter.poly(bound.limit), step
        )
        if not bound.upper:
            value = emitter.add(value, emitter.constant(1))
    value = _binary(emitter, "arith.maxsi", value, emitter.constant(0))
    return _binary(emitter, "arith.minsi", value, emitter.constant(size))


def _restricts(bound: Bound, shape: Shape) -> bool:
    """Whether a bound can exclude an index of the tile."""
    constant = bound.limit.value
    if constant is None:
        return True
    if bound.upper:
        return constant <= bound.step * (shape[bound.dimension] - 1)
    return constant >= 0


def _conditional(emitter: Emitter, condition: Any, high: Any) -> Any:
    kind = emitter.types.i64
    return emitter.value(
        "arith.select", [emit_condition(emitter, condition), high, emitter.constant(0)], kind
    )


def emit_condition(emitter: Emitter, condition: Any) -> Any:
    """A condition on the whole tile (`Mask.uniform`) as an i1 value."""
    if not isinstance(condition, Poly):
        return condition
    known = condition.value
    if known is not None:
        return emitter.constant(int(known < 0), emitter.types.i1)
    return emitter.value(
        "arith.cmpi",
        [emitter.poly(condition), emitter.constant(0)],
        emitter.types.i1,
        {"predicate": emitter.integer(2)},
    )


def _binary(emitter: Emitter, name: str, a: Any, b: Any) -> Any:
    return emitter.value(name, [a, b], emitter.types.i64)
