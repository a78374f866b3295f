"""Device-library functions, given by symbol: upstream's operation if there is one, else ``tpk.function``."""

from __future__ import annotations

import difflib
from typing import Any

from triton_porting_kit.compiler import libdevice
from triton_porting_kit.compiler.dialect.operations import Function
from triton_porting_kit.toolchain.mlir import ir

from .diagnostics import fail
from .rewriter import Rewriter

# Upstream's name depends on the type of the last operand: for floats, for integers.
_BY_TYPE = {"abs": ("math.absf", "math.absi"), "pow": ("math.powf", "math.fpowi")}


def extern_elementwise(rewriter: Rewriter, operation: Any) -> None:
    """tt.extern_elementwise of a function in `libdevice`, by the symbol of any library."""
    symbol = ir.StringAttr(operation.attributes["symbol"]).value
    known = libdevice.symbols()
    meaning = known.get(symbol)
    if meaning is None:
        like = difflib.get_close_matches(symbol, known, 1)
        hint = f" ({like[0]} is)" if like else ""
        fail(
            operation,
            f"the library function {symbol} is not known{hint}",
            "use a function of triton.language or of triton.language.extra.libdevice; docs/libdevice.md lists those",
        )
    operands = list(operation.operands)
    emitter = rewriter.emitter.before(operation)
    type = operation.results[0].type
    if meaning in _BY_TYPE:
        of_floats, of_integers = _BY_TYPE[meaning]
        element = rewriter.types.info(operands[-1]).element
        meaning = of_integers if element.startswith("i") else of_floats
    if "." in meaning:
        result = emitter.value(meaning, operands, type)
    else:
        result = emitter.value(Function.OPERATION_NAME, operands, type, {"name": ir.StringAttr.get(meaning)})
    rewriter.replace(operation, result)
