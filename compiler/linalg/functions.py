"""Functions that upstream has no operation for: calls of external functions of scalars, by libdevice's names."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.dialect.operations import FpToFp, Function
from triton_porting_kit.compiler.dialect.types import element_of, shape_of
from triton_porting_kit.toolchain.mlir import ir

from .accesses import generic
from .expansion import Text
from .rewriting import Rewriting

PREFIX = "tpk_scalar_"
"""The functions' names begin with it, and end with the types of their operands and of their result."""


def function(rewriting: Rewriting, operation: Any) -> None:
    op = Function(operation)
    kinds = [element_of(value) for value in op.inputs]
    result = element_of(op.result)
    name = rewriting.external(f"{PREFIX}{op.name}", kinds, result)
    body = Text()
    shape = shape_of(op.result)
    if shape is None:
        given = ", ".join(f"%a{i}" for i in range(len(kinds)))
        value = body.let(f"func.call @{name}({given}) : ({', '.join(kinds)}) -> {result}")
        rewriting.replace(operation, "function", body, [value])
        return
    inputs = [(f"%a{i}", str(value.type)) for i, value in enumerate(op.inputs)]
    made, names = generic(body, shape, inputs, result)
    value = body.let(f"func.call @{name}({', '.join(names)}) : ({', '.join(kinds)}) -> {result}")
    body.do(f"linalg.yield {value} : {result}")
    body.do(f"}} -> {op.result.type}")
    rewriting.replace(operation, "function", body, [made])


def convert(rewriting: Rewriting, operation: Any) -> None:
    """A conversion to an 8-bit float, by way of f32 if its source is another 8-bit float."""
    op, body = FpToFp(operation), Text()
    source = element_of(op.x)
    mode = " to_nearest_even" if op.rounding == "rtne" else " toward_zero"
    kind = str(op.x.type)
    value = "%a0"
    if ir.Type.parse(source).width <= 16:
        wide = kind.replace(source, "f32")
        value, kind = body.let(f"arith.extf {value} : {kind} to {wide}"), wide
    rewriting.replace(
        operation, "convert", body, [body.let(f"arith.truncf {value}{mode} : {kind} to {op.result.type}")]
    )
