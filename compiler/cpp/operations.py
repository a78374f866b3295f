"""The form of each operation of a loops module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.compiler.cpp import (
    arithmetic,
    control,
    fusion,
    high_products,
    intrinsics,
    literals,
    memory,
)
from triton_porting_kit.compiler.cpp.emitter import Emitter
from triton_porting_kit.compiler.cpp.types import parse

_CONSTANTS = ("arith.constant", "llvm.mlir.constant", "llvm.mlir.zero", "llvm.mlir.poison")
EXPRESSIONS: dict[str, Callable[[Emitter, Any], str]] = {**arithmetic.EXPRESSIONS, **memory.EXPRESSIONS}
STATEMENTS: dict[str, Callable[[Emitter, Any], None]] = {**memory.STATEMENTS, **control.STATEMENTS}


def write(emitter: Emitter, operation: Any) -> None:
    """Write one operation. Raises `CompilationError` for one that the dialect cannot express."""
    name = operation.name
    if name in _CONSTANTS:
        emitter.define(operation.results[0], _constant(emitter, operation))
    elif (
        intrinsics.write(emitter, operation)
        or fusion.is_fused(operation)
        or high_products.is_part(emitter, operation)
    ):
        return
    elif (half := high_products.high_half(emitter, operation)) is not None:
        emitter.declare(operation.results[0], half)
    elif name in EXPRESSIONS:
        expression = fusion.fused(emitter, operation) or EXPRESSIONS[name](emitter, operation)
        emitter.declare(operation.results[0], expression)
    elif name in STATEMENTS:
        STATEMENTS[name](emitter, operation)
    else:
        raise emitter.unsupported(operation, "this operation")


def _constant(emitter: Emitter, operation: Any) -> str:
    kind = parse(str(operation.results[0].type))
    if kind is not None and emitter.dialect.lacks(kind):
        return (
            ""  # The operation that uses it is refused: it has a kernel line, which a constant may not have.
        )
    type = emitter.result_type(operation)
    if operation.name in ("llvm.mlir.zero", "llvm.mlir.poison"):
        return literals.zero(emitter.support, type)
    literal = literals.of_attribute(emitter.support, type, str(operation.attributes["value"]))
    if literal is None:
        raise emitter.unsupported(operation, "this constant")
    return literal
