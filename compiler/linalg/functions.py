"""Functions that upstream has no operation for: arithmetic where the meaning is plain, else external functions.

The external functions are of scalars, and have libdevice's names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triton_porting_kit.compiler.dialect.operations import FpToFp, Function
from triton_porting_kit.compiler.dialect.types import element_of, shape_of
from triton_porting_kit.toolchain.mlir import ir

from .accesses import generic
from .arithmetic import EXPANDED, compute, expand
from .ascend_functions import FUNCTIONS
from .expansion import Text
from .rewriting import Rewriting

PREFIX = "tpk_scalar_"
"""The functions' names begin with it."""


def symbol(name: str, operands: Sequence[str], result: str) -> str:
    """The symbol of an external function: after two underscores, which no name has, come its types, the result last."""
    return f"{PREFIX}{name}__{'_'.join((*operands, result))}"


def parts(external: str) -> tuple[str, list[str]]:
    """The function's name and the types of its operands and result, from its symbol."""
    name, _, kinds = external.removeprefix(PREFIX).rpartition("__")
    return name, kinds.split("_")


def function(rewriting: Rewriting, operation: Any) -> None:
    op = Function(operation)
    kinds = [element_of(value) for value in op.inputs]
    result = element_of(op.result)

    written = None if rewriting.convention.element_wise_generic or "f64" in kinds else FUNCTIONS.get(op.name)

    def one(names: Sequence[str]) -> str:
        if written is not None:
            return compute(body, written, names, kinds, result)
        if op.name in EXPANDED:
            return expand(body, op.name, names, kinds, result)
        external = symbol(op.name, kinds, result)
        rewriting.functions.declare(f"func.func private @{external}({', '.join(kinds)}) -> {result}")
        return body.let(f"func.call @{external}({', '.join(names)}) : ({', '.join(kinds)}) -> {result}")

    body = Text()
    shape = shape_of(op.result)
    if shape is None:
        rewriting.replace(operation, "function", body, [one([f"%a{i}" for i in range(len(kinds))])])
        return
    inputs = [(f"%a{i}", str(value.type)) for i, value in enumerate(op.inputs)]
    made, names = generic(body, shape, inputs, result)
    body.do(f"linalg.yield {one(names)} : {result}")
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
