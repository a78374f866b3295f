"""Runtime checks that 32-bit expressions do not overflow where a tile accesses memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triton_porting_kit.toolchain.mlir import ir

from .affine import Affine, Shape
from .poly import Poly
from .rewriter import Rewriter

_SLE, _ULT = 3, 6

Bounds = tuple[Sequence[Any], Sequence[Any]]
"""lo and hi of each dimension as i64; both empty for the whole tile."""


def stays(rewriter: Rewriter, parts: Sequence[Affine], shape: Shape, bounds: Bounds = ((), ())) -> Any:
    """i1: all of `parts` fit 32 bits at the indices of a tile that are in bounds, or no index is in bounds."""
    emitter = rewriter.emitter
    holds = None
    for part in parts:
        for end in _ends(rewriter, part, shape, bounds):
            shifted = emitter.i64("arith.addi", end, emitter.constant(1 << 31))
            inside = _compare(rewriter, _ULT, shifted, emitter.constant(1 << 32))
            holds = inside if holds is None else _either(rewriter, "arith.andi", holds, inside)
    for low, high in zip(*bounds, strict=True):
        if _constant(high) is None or _constant(low) is None:
            holds = _either(rewriter, "arith.ori", holds, _compare(rewriter, _SLE, high, low))
    return holds


def _ends(rewriter: Rewriter, part: Affine, shape: Shape, bounds: Bounds) -> list[Any]:
    """The minimum and the maximum of an expression; if it varies along one dimension, the values at both ends."""
    emitter = rewriter.emitter
    moving = [d for d, stride in enumerate(part.strides) if stride.terms]
    steps = [_step(rewriter, part, d, shape, bounds) for d in moving]
    start = emitter.poly(part.offset) if part.offset.terms else None
    if start is None and len(steps) == 1 and part.wraps[moving[0]] is not None:
        return [emitter.i64("arith.maxsi", *steps[0])]  # its magnitude is the same above and below zero
    if len(steps) == 1:
        ends = [_moved(rewriter, start, step) for step in steps[0]]
        starts_inside = steps[0][0] is None and (start is None or _is_narrow(rewriter, part.offset))
        return ends[1:] if starts_inside else ends
    low = high = start
    for first, last in steps:
        zero = emitter.constant(0)
        pair = (zero if first is None else first, last)
        low = _moved(rewriter, low, emitter.i64("arith.minsi", *pair))
        high = _moved(rewriter, high, emitter.i64("arith.maxsi", *pair))
    return [low, high]


def _is_narrow(rewriter: Rewriter, offset: Poly) -> bool:
    low, high = rewriter.analysis.ranges.interval(offset)
    return low >= -(1 << 31) and high < 1 << 31


def _moved(rewriter: Rewriter, start: Any, step: Any) -> Any:
    emitter = rewriter.emitter
    if start is None or step is None:
        return start if step is None else step
    return emitter.i64("arith.addi", start, step)


def _step(rewriter: Rewriter, part: Affine, d: int, shape: Shape, bounds: Bounds) -> tuple[Any, Any]:
    """The contribution of a dimension at its first and at its last index; None for zero."""
    emitter, stride, wrap = rewriter.emitter, part.strides[d], part.wraps[d]
    factor = emitter.poly(stride)
    if wrap is not None:
        last = emitter.i64("arith.muli", emitter.poly(wrap.size - Poly.constant(1)), factor)
        return emitter.i64("arith.subi", emitter.constant(0), last), last
    low, high = (side[d] if side else None for side in bounds)
    first = None
    if low is not None and _constant(low) != 0:
        first = emitter.i64("arith.muli", low, factor)
    if high is None or _constant(high) == shape[d]:
        return first, emitter.poly(stride * Poly.constant(shape[d] - 1))
    behind = emitter.i64("arith.subi", high, emitter.constant(1))
    return first, emitter.i64("arith.muli", behind, factor)


def _constant(value: Any) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(owner.attributes["value"]).value)


def _compare(rewriter: Rewriter, predicate: int, a: Any, b: Any) -> Any:
    emitter = rewriter.emitter
    return emitter.value("arith.cmpi", [a, b], emitter.types.i1, {"predicate": emitter.integer(predicate)})


def _either(rewriter: Rewriter, name: str, a: Any, b: Any) -> Any:
    return rewriter.emitter.value(name, [a, b], rewriter.types.i1)
