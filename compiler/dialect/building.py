"""Creates operations of the dialect with MLIR's bindings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from triton_porting_kit.toolchain.mlir import ir

from .schema import Op


def create(
    cls: type[Op[Any]],
    operands: Mapping[str, Any],
    results: Sequence[Any],
    attributes: Mapping[str, Any] | None = None,
    *,
    at: Any = None,
    location: Any = None,
) -> Any:
    """Create an operation at an insertion point.

    `operands` are given by the names of their groups, as for `Op.operands_of`; `attributes` are MLIR's objects.
    """
    values, sizes = cls.operands_of(operands)
    given = dict(attributes or {})
    if cls.segmented:
        given["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(sizes)
    return ir.Operation.create(
        cls.OPERATION_NAME,
        results=results,
        operands=values,
        attributes=given,
        loc=location,
        ip=at,
    )
