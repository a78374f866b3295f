"""``tt.dot_scaled``: operands in microscaling formats become f32 tensors, which are multiplied as usual.

The formats are those of the Open Compute Project's specification of microscaling: groups of elements along K, each
group with one scale. An element times its scale is exact in f32 unless that over- or underflows.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.dialect.operations import Repeat, Unpack
from triton_porting_kit.toolchain.mlir import ir

from .matmuls import matmul
from .rewriter import Rewriter

_E2M1 = 4
"""Triton's number of the element format with two elements per byte.

The other formats follow from their tensors' types.
"""


def dot_scaled(rewriter: Rewriter, operation: Any) -> None:
    """tt.dot_scaled. `fastMath`, which permits skipping the NaN check of scales, has no effect."""
    rewriter.emitter.before(operation)
    attributes = operation.attributes
    sizes = list(ir.DenseI32ArrayAttr(attributes["operandSegmentSizes"]))
    operands = iter(operation.operands)
    a, b, c, a_scale, b_scale = (next(operands) if size else None for size in sizes)
    rank = len(rewriter.types.info(a).shape or ())
    rows, columns = rank - 2, rank - 1
    left = _elements(
        rewriter, a, attributes, "a_elem_type", columns if _flag(attributes, "lhs_k_pack") else rows
    )
    right = _elements(
        rewriter, b, attributes, "b_elem_type", rows if _flag(attributes, "rhs_k_pack") else columns
    )
    if a_scale is not None:
        left = _scaled(rewriter, left, _scales(rewriter, a_scale), columns)
    if b_scale is not None:
        # The scales of B are laid out as those of A: K along the last dimension.
        scales = _scales(rewriter, b_scale)
        shape = tuple(scales.type.shape)
        order = (*range(rank - 2), columns, rows)
        turned = rewriter.emitter.transpose(scales, tuple(shape[d] for d in order), order)
        right = _scaled(rewriter, right, turned, rows)
    rewriter.replace(operation, matmul(rewriter, left, right, c, "ieee"))


def _flag(attributes: Any, name: str) -> bool:
    return bool(ir.BoolAttr(attributes[name]).value)


def _elements(rewriter: Rewriter, value: Any, attributes: Any, format_name: str, packed: int) -> Any:
    """The elements as f32. In the 4-bit format, two elements share a byte along the dimension `packed`."""
    if ir.IntegerAttr(attributes[format_name]).value == _E2M1:
        shape = list(value.type.shape)
        shape[packed] *= 2
        kind = rewriter.types.tensor(tuple(shape), rewriter.types.parse("f4E2M1FN"))
        value = rewriter.emitter.value(
            Unpack.OPERATION_NAME, [value], kind, {"dim": rewriter.emitter.integer(packed)}
        )
    return _widened(rewriter, value)


def _scales(rewriter: Rewriter, value: Any) -> Any:
    """Scales as f32. Bytes are exponents of two."""
    types = rewriter.types
    if value.type.element_type == types.i8:
        kind = types.tensor(tuple(value.type.shape), types.parse("f8E8M0FNU"))
        value = rewriter.emitter.value("arith.bitcast", [value], kind)
    return _widened(rewriter, value)


def _scaled(rewriter: Rewriter, value: Any, scales: Any, dimension: int) -> Any:
    """`value` times `scales`. Each scale applies to a group of neighbours along `dimension`."""
    emitter = rewriter.emitter
    group = value.type.shape[dimension] // scales.type.shape[dimension]
    attributes = {"dim": emitter.integer(dimension), "times": emitter.integer(group)}
    repeated = emitter.value(Repeat.OPERATION_NAME, [scales], value.type, attributes)
    return emitter.value("arith.mulf", [value, repeated], value.type)


def _widened(rewriter: Rewriter, value: Any) -> Any:
    kind = rewriter.types.tensor(tuple(value.type.shape), rewriter.types.parse("f32"))
    return rewriter.emitter.value("arith.extf", [value], kind)
