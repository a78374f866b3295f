"""Which operations are exact on every chip, and which may round differently on correct chips, and by how much."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compare.roundings import float_of
from triton_porting_kit.compiler.dialect.operations import AtomicRmw
from triton_porting_kit.toolchain.mlir import ir

EXACT = {
    *(f"arith.{name}" for name in ("maximumf", "minimumf", "maxnumf", "minnumf", "negf", "select", "cmpf")),
    *(f"math.{name}" for name in ("absf", "copysign", "floor", "ceil", "round", "roundeven", "trunc")),
    *(f"math.{name}" for name in ("isnan", "isinf", "isfinite", "isnormal")),
    *("arith.fptosi", "arith.fptoui", "tpk.clampf", "tensor.extract"),
    *("tensor.splat", "tensor.expand_shape", "tensor.collapse_shape", "tensor.concat", "tensor.empty"),
    *("linalg.broadcast", "linalg.transpose", "linalg.yield", "tpk.yield"),
    *("tpk.join", "tpk.split", "tpk.repeat", "tpk.gather_along"),
    *("scf.for", "scf.if", "scf.while", "scf.yield", "scf.condition"),
}
"""Operations that give the same result in float64, or only pass values on."""

ROUNDED_ONCE = {
    *(f"arith.{name}" for name in ("addf", "subf", "mulf", "sitofp", "uitofp", "truncf", "remf")),
    "math.fma",
}
"""Operations whose result is exact on every chip if the type can represent it."""

DIVISIONS = {"arith.divf": 2, "math.sqrt": 2}
"""Operations that some chips round once and others approximate, with their error in units."""
FUNCTION_UNITS = 4
"""The error of a mathematical function in units, in addition to the effect of one unit of its operand."""
TO_INTEGER = ("arith.fptosi", "arith.fptoui")
_DIVISION = {
    f"arith.{name}" for name in ("divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi")
}
SHIFTS = {"arith.shli", "arith.shrsi", "arith.shrui"}
"""`TO_INTEGER`, `_DIVISION` and `SHIFTS` have undefined results for some operands: numbers out of range, a divisor of
0, shifts by the width or more."""
SCATTERED = ("tpk.store", "tpk.scatter")
PRECISIONS = {"tf32": (2, 10), "tf32x3": (4, 20), "bf16x3": (4, 16), "bf16x6": (4, 22)}
"""For each input precision of fp32 products: the roundings of one product, and the bits that are kept."""
EIGHT_BITS = (2, 13)
"""The same for 8-bit floats, where some matrix units keep 13 bits of the largest product."""


def varies(module: Any) -> bool:
    """Whether an operation of a structured module may give different results on correct chips: it rounds floating-point
    numbers, or its result is undefined for some operands."""
    found = False

    def visit(operation: Any) -> Any:
        nonlocal found
        if is_partial(operation):
            found = True
        elif operation.name not in EXACT and not operation.name.startswith(("func.", "builtin.")):
            kinds = [value.type for value in (*operation.operands, *operation.results)]
            memory = operation.name in (
                *SCATTERED,
                "tpk.load",
                "tpk.gather",
                "arith.constant",
                "arith.bitcast",
            )
            adds = AtomicRmw.isa(operation)
            if (
                any(float_of(kind) for kind in kinds)
                and not memory
                and (not adds or kind_of(operation) == "fadd")
            ):
                found = True
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def is_partial(operation: Any) -> bool:
    """Whether an operation has an undefined result for some operands that it may get."""
    name = operation.name
    if name in TO_INTEGER:
        return True
    return name in _DIVISION | SHIFTS and not _is_constant(operation.operands[1])


def _is_constant(value: Any) -> bool:
    owner = value.owner
    return isinstance(owner, ir.Operation | ir.OpView) and (
        owner.name in ("arith.constant",)
        or (owner.name == "tensor.splat" and _is_constant(owner.operands[0]))
    )


def kind_of(op: Any) -> str:
    attribute = op.attributes["kind"]
    return str(attribute.value if hasattr(attribute, "value") else attribute).strip('"')
