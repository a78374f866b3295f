"""Functions given by a region (tl.map_elementwise), as operations on whole tensors."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.dialect.operations import Map
from triton_porting_kit.toolchain.mlir import ir

from .regions import refuse_pointers, with_region
from .rewriter import Rewriter


def map_elementwise(rewriter: Rewriter, operation: Any) -> None:
    """tt.map_elementwise -> the region's operations on whole tensors if it is straight-line code, else tpk.map."""
    refuse_pointers(rewriter, operation)
    blocks = list(operation.regions[0].blocks)
    pack = ir.IntegerAttr(operation.attributes["pack"]).value
    shape = rewriter.types.info(operation.results[0]).shape
    body = list(blocks[0].operations)
    simple = all(
        op.operation.name.startswith(("arith.", "math.")) and not len(op.regions) for op in body[:-1]
    )
    if len(blocks) != 1 or pack != 1 or not simple or shape is None:
        with_region(rewriter, operation, Map)
        return
    emitter = rewriter.emitter.before(operation)
    mapped = dict(zip(blocks[0].arguments, operation.operands, strict=True))
    for op in body[:-1]:
        emitter.location = op.location
        kinds = [rewriter.types.tensor(shape, result.type) for result in op.results]
        if op.operation.name == "arith.constant":
            scalar = emitter.constant_attribute(op.attributes["value"], op.results[0].type)
            mapped[op.results[0]] = emitter.splat(scalar, shape)
            continue
        attributes = {name: op.attributes[name] for name in op.attributes}
        created = emitter.op(
            op.operation.name,
            [mapped.get(v) or emitter.splat(v, shape) for v in op.operands],
            kinds,
            attributes,
        )
        mapped.update(zip(op.results, created.results, strict=True))
    rewriter.replace(operation, *[mapped.get(v) or emitter.splat(v, shape) for v in body[-1].operands])
