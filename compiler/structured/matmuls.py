"""Matrix products: ``linalg.matmul`` and ``linalg.batch_matmul``."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.toolchain.mlir import ir

from .rewriter import Rewriter

_PRECISION = {0: "tf32", 1: "tf32x3", 2: "ieee", 3: "bf16x3", 4: "bf16x6"}


def dot(rewriter: Rewriter, operation: Any) -> None:
    """tt.dot. The attribute that permits less precise accumulation is ignored."""
    rewriter.emitter.before(operation)
    a, b, c = operation.operands
    precision = _PRECISION[ir.IntegerAttr(operation.attributes["inputPrecision"]).value]
    rewriter.replace(operation, matmul(rewriter, a, b, c, precision))


def matmul(rewriter: Rewriter, a: Any, b: Any, c: Any, precision: str) -> Any:
    """`c + a * b` in the type of `c`, for matrices or batches of matrices, created at the emitter's place."""
    emitter = rewriter.emitter
    attributes = {
        "tpk.input_precision": ir.StringAttr.get(precision),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1]),
    }
    name = "linalg.matmul" if len(c.type.shape) == 2 else "linalg.batch_matmul"
    created = emitter.op(name, [a, b, c], [c.type], attributes, regions=1)
    outer = emitter.at
    _multiply_add(rewriter, created, [v.type.element_type for v in (a, b, c)])
    emitter.at = outer
    return created.results[0]


def _multiply_add(rewriter: Rewriter, operation: Any, kinds: list[Any]) -> None:
    """The region of a matmul: `c + a * b` in the type of c."""
    emitter = rewriter.emitter
    block = operation.regions[0].blocks.append(*kinds, arg_locs=[emitter.location] * 3)
    emitter.at = ir.InsertionPoint(block)
    a, b, c = block.arguments
    floating = str(kinds[2])[0] != "i"
    wide = [
        v if v.type == c.type else emitter.value("arith.extf" if floating else "arith.extsi", [v], c.type)
        for v in (a, b)
    ]
    product = emitter.value("arith.mulf" if floating else "arith.muli", wide, c.type)
    total = emitter.value("arith.addf" if floating else "arith.addi", [c, product], c.type)
    emitter.op("linalg.yield", [total], [])
