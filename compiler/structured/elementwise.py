"""Functions given by name (libdevice) and by region (tl.map_elementwise), as operations on whole tensors."""

from __future__ import annotations

import re
from typing import Any

from triton_porting_kit.toolchain.mlir import ir

from .diagnostics import fail
from .regions import with_region
from .rewriter import Rewriter

_SYMBOL = re.compile(r"(?:__nv_(?:fast_)?|__ocml_|math\.)(\w+?)(?:_f(?:16|32|64))?$")
_SAME_NAME = frozenset(
    [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cbrt",
        "ceil",
        "copysign",
        "cos",
        "cosh",
        "erf",
        "erfc",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "fma",
        "log",
        "log10",
        "log1p",
        "log2",
        "round",
        "roundeven",
        "rsqrt",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
        "trunc",
    ]
)
_RENAMED = {"fabs": "absf", "pow": "powf", "rint": "roundeven", "nearbyint": "roundeven"}


def extern_elementwise(rewriter: Rewriter, operation: Any) -> None:
    """tt.extern_elementwise of a function that upstream's math dialect has."""
    symbol = ir.StringAttr(operation.attributes["symbol"]).value
    match = _SYMBOL.match(symbol)
    name = _math_name(match[1]) if match else None
    if name is None:
        fail(
            operation,
            f"the library function {symbol} is not known",
            "use a function of triton.language, or one of libdevice that computes a function of C's <math.h>",
        )
    emitter = rewriter.emitter.before(operation)
    result = emitter.value(f"math.{name}", list(operation.operands), operation.results[0].type)
    rewriter.replace(operation, result)


def _math_name(name: str) -> str | None:
    # CUDA's single-precision functions end in f, which some names end in anyway.
    for candidate in (name, name.removesuffix("f")):
        if candidate in _SAME_NAME:
            return candidate
        if candidate in _RENAMED:
            return _RENAMED[candidate]
    return None


def map_elementwise(rewriter: Rewriter, operation: Any) -> None:
    """tt.map_elementwise of straight-line code: its operations on whole tensors; of other code: tpk.map."""
    blocks = list(operation.regions[0].blocks)
    pack = ir.IntegerAttr(operation.attributes["pack"]).value
    shape = rewriter.types.info(operation.results[0]).shape
    body = list(blocks[0].operations)
    simple = all(
        op.operation.name.startswith(("arith.", "math.")) and not len(op.regions) for op in body[:-1]
    )
    if len(blocks) != 1 or pack != 1 or not simple or shape is None:
        with_region(rewriter, operation, "tpk.map", ("pack",))
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
    rewriter.replace(operation, *[mapped[v] for v in body[-1].operands])
