"""The C++ form of each operation of a loops module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.compiler.cpp import arithmetic, control, fusion, intrinsics, literals, memory
from triton_porting_kit.compiler.cpp.emitter import Emitter

_CONSTANTS = ("arith.constant", "llvm.mlir.constant", "llvm.mlir.zero", "llvm.mlir.poison")
EXPRESSIONS: dict[str, Callable[[Emitter, Any], str]] = {**arithmetic.EXPRESSIONS, **memory.EXPRESSIONS}
STATEMENTS: dict[str, Callable[[Emitter, Any], None]] = {**memory.STATEMENTS, **control.STATEMENTS}


def write(emitter: Emitter, operation: Any) -> None:
    """Write one operation. Raises `CompilationError` for one without a C++ form."""
    name = operation.name
    if name in _CONSTANTS:
        emitter.define(operation.results[0], _constant(emitter, operation))
    elif intrinsics.write(emitter, operation) or fusion.is_fused(operation):
        return
    elif name in EXPRESSIONS:
        expression = fusion.fused(emitter, operation) or EXPRESSIONS[name](emitter, operation)
        emitter.declare(operation.results[0], expression)
    elif name in STATEMENTS:
        STATEMENTS[name](emitter, operation)
    else:
        raise emitter.unsupported(operation, "this operation")


def _constant(emitter: Emitter, operation: Any) -> str:
    type = emitter.result_type(operation)
    if operation.name in ("llvm.mlir.zero", "llvm.mlir.poison"):
        return literals.zero(type)
    literal = literals.of_attribute(type, str(operation.attributes["value"]))
    if literal is None:
        raise emitter.unsupported(operation, "this constant")
    for function in ("splat", "as"):
        if f"{function}<" in literal:
            emitter.function(function)
    return literal
