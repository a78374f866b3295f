"""Element-wise operations on scalars and vectors alike: how each ``arith`` and ``math`` operation is emitted.

`OPERATIONS` is the one table of them: name -> (emit, cost). All operands of a call have the same lanes.
Arithmetic on f16 and bf16 is done in f32 and rounded after each operation, as on hardware without such units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from triton_porting_kit.compiler.loops import element_types as types
from triton_porting_kit.compiler.loops import functions
from triton_porting_kit.compiler.loops.builder import LoopBuilder, Value, vector_type
from triton_porting_kit.compiler.loops.program import Operation
from triton_porting_kit.compiler.loops.tensors import FUNCTION_COST


@dataclass(frozen=True)
class Mode:
    """What element-wise emission depends on beside the operands."""

    fuse_multiply_add: bool
    has_scalef: bool


Emit = Callable[[LoopBuilder, Mode, Operation, list[Value]], list[Value]]


@dataclass(frozen=True)
class Entry:
    """How one operation is emitted, and its cost in simple operations."""

    emit: Emit
    cost: int


def _float_binary(name: str, *, contract: bool = False) -> Emit:
    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        flags = " fastmath<contract>" if contract and mode.fuse_multiply_add else ""
        a, b = (widen(builder, value) for value in values)
        return [narrow(builder, builder.binary(name, a, b, flags), values[0].element)]

    return emit


def _float_unary(name: str) -> Emit:
    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        wide = [widen(builder, value) for value in values]
        type = wide[0].type
        text = f"{name} {', '.join(value.name for value in wide)} : {type}"
        return [narrow(builder, builder.pure(text, type, wide), values[0].element)]

    return emit


def _function(function: Callable[[LoopBuilder, Value, bool], Value], fallback: str) -> Emit:
    """A function with code of ours for f32 (and the 16-bit types through it); others go to the C library."""

    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        (value,) = values
        wide = widen(builder, value)
        if wide.element == "f32":
            result = function(builder, wide, mode.has_scalef)
        else:
            result = builder.pure(f"{fallback} {wide.name} : {wide.type}", wide.type, (wide,))
        return [narrow(builder, result, value.element)]

    return emit


def _integer_binary(name: str) -> Emit:
    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        a, b = values
        return [builder.binary(name, a, b)]

    return emit


def _division(name: str, *, signed: bool) -> Emit:
    """Integer division and remainder. x86 traps on a zero divisor and on the most negative value over -1; lanes

    whose result nobody uses may hold both, so such divisors are replaced by 1.
    """

    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        dividend, divisor = values
        if isinstance(divisor.constant, int) and divisor.constant not in (0, -1):
            return [builder.binary(name, dividend, divisor)]
        type, element = divisor.type, divisor.element
        one = builder.constant(1, type)
        bad = builder.compare("eq", divisor, builder.constant(0, type))
        if signed:
            bits = types.BITS[element] if element != "i1" else 1
            lowest = builder.compare("eq", dividend, builder.constant(-(1 << (bits - 1)), type))
            minus_one = builder.compare("eq", divisor, builder.constant(-1, type))
            overflow = builder.pure(
                f"arith.andi {lowest.name}, {minus_one.name} : {bad.type}", bad.type, (lowest, minus_one)
            )
            bad = builder.pure(
                f"arith.ori {bad.name}, {overflow.name} : {bad.type}", bad.type, (bad, overflow)
            )
        return [builder.binary(name, dividend, builder.select(bad, one, divisor))]

    return emit


def _extended_multiply(name: str) -> Emit:
    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        a, b = values
        bits = types.BITS[a.element]
        extend = "arith.extui" if name == "arith.mului_extended" else "arith.extsi"
        wide = vector_type(f"i{2 * bits}", a.lanes)
        product = builder.mul(builder.cast(extend, a, wide), builder.cast(extend, b, wide))
        high = builder.binary("arith.shrui", product, builder.constant(bits, wide))
        return [builder.mul(a, b), builder.cast("arith.trunci", high, a.type)]

    return emit


CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CMPF = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip


def _compare_integers(
    builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]
) -> list[Value]:
    return [builder.compare(CMPI[operation.integer("predicate")], *values)]


def _compare_floats(
    builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]
) -> list[Value]:
    a, b = (widen(builder, value) for value in values)
    predicate = CMPF[operation.integer("predicate")]
    type = vector_type("i1", a.lanes)
    return [builder.pure(f"arith.cmpf {predicate}, {a.name}, {b.name} : {a.type}", type, (a, b))]


def _select(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
    return [builder.select(*values)]


def _cast(name: str) -> Emit:
    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        (value,) = values
        element = operation.results[0].type.element
        return [convert(builder, name, value, element)]

    return emit


def convert(builder: LoopBuilder, name: str, value: Value, element: str) -> Value:
    """An ``arith`` cast of `value` to another element type, through f32 where a 16-bit float is involved."""
    type = vector_type(element, value.lanes)
    if name == "arith.truncf" and element == "bf16" and value.element == "f32":
        return functions.round_to_bf16(builder, value)
    if name in ("arith.sitofp", "arith.uitofp") and element in types.NARROW_FLOATS:
        wide = builder.cast(name, value, vector_type("f32", value.lanes))
        return convert(builder, "arith.truncf", wide, element)
    if name in ("arith.fptosi", "arith.fptoui"):
        return builder.cast(name, widen(builder, value), type)
    return builder.cast(name, value, type)


def widen(builder: LoopBuilder, value: Value) -> Value:
    """f16 and bf16 as f32; everything else as it is."""
    if value.element in types.NARROW_FLOATS:
        return builder.cast("arith.extf", value, vector_type("f32", value.lanes))
    return value


def narrow(builder: LoopBuilder, value: Value, element: str) -> Value:
    """Round an f32 back to the 16-bit type it came from."""
    if value.element == element:
        return value
    return convert(builder, "arith.truncf", value, element)


def _clamp(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
    """``min(max(x, low), high)``; a NaN passes through only with `propagate_nan`."""
    x, low, high = (widen(builder, value) for value in values)
    propagate = bool(operation.integer("propagate_nan", 0))
    maximum, minimum = (
        ("arith.maximumf", "arith.minimumf") if propagate else ("arith.maxnumf", "arith.minnumf")
    )
    result = builder.binary(minimum, builder.binary(maximum, x, low), high)
    return [narrow(builder, result, values[0].element)]


def _absolute(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
    (value,) = values
    return [builder.pure(f"math.absf {value.name} : {value.type}", value.type, (value,))]


def _negate(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
    (value,) = values
    return [builder.pure(f"arith.negf {value.name} : {value.type}", value.type, (value,))]


def _reciprocal_root(
    builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]
) -> list[Value]:
    wide = widen(builder, values[0])
    root = builder.pure(f"math.sqrt {wide.name} : {wide.type}", wide.type, (wide,))
    result = builder.binary("arith.divf", builder.constant(1.0, wide.type), root)
    return [narrow(builder, result, values[0].element)]


OPERATIONS: dict[str, Entry] = {
    **{f"arith.{n}": Entry(_float_binary(f"arith.{n}", contract=True), 1) for n in ("addf", "subf", "mulf")},
    **{
        f"arith.{n}": Entry(_float_binary(f"arith.{n}"), 1)
        for n in ("maximumf", "minimumf", "maxnumf", "minnumf")
    },
    "arith.divf": Entry(_float_binary("arith.divf"), 4),
    "arith.remf": Entry(_float_binary("arith.remf"), FUNCTION_COST),
    "arith.negf": Entry(_negate, 1),
    **{
        f"arith.{n}": Entry(_integer_binary(f"arith.{n}"), 1)
        for n in (
            "addi", "subi", "muli", "andi", "ori", "xori", "shli", "shrsi", "shrui",
            "maxsi", "minsi", "maxui", "minui",
        )
    },
    **{
        f"arith.{n}": Entry(_division(f"arith.{n}", signed=s), FUNCTION_COST)
        for n, s in (("divsi", True), ("remsi", True), ("divui", False), ("remui", False), ("ceildivsi", True),
                     ("ceildivui", False), ("floordivsi", True))
    },
    "arith.mului_extended": Entry(_extended_multiply("arith.mului_extended"), 4),
    "arith.mulsi_extended": Entry(_extended_multiply("arith.mulsi_extended"), 4),
    "arith.cmpi": Entry(_compare_integers, 1),
    "arith.cmpf": Entry(_compare_floats, 1),
    "arith.select": Entry(_select, 1),
    **{
        f"arith.{n}": Entry(_cast(f"arith.{n}"), 1)
        for n in ("extf", "truncf", "extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi", "fptoui", "bitcast")
    },
    "math.exp": Entry(_function(functions.exp, "math.exp"), FUNCTION_COST),
    "math.exp2": Entry(_function(functions.exp2, "math.exp2"), FUNCTION_COST),
    **{
        f"math.{n}": Entry(_float_unary(f"math.{n}"), FUNCTION_COST)
        for n in (
            "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos",
            "atan", "erf", "cbrt", "asinh", "acosh", "atanh", "powf", "atan2", "sqrt",
        )
    },
    **{
        f"math.{n}": Entry(_float_unary(f"math.{n}"), 1)
        for n in ("floor", "ceil", "round", "roundeven", "trunc", "copysign", "fma")
    },
    "math.absf": Entry(_absolute, 1),
    "math.absi": Entry(lambda b, m, o, v: [b.pure(f"math.absi {v[0].name} : {v[0].type}", v[0].type, v)], 1),
    "math.rsqrt": Entry(_reciprocal_root, FUNCTION_COST),
    "tpk.clampf": Entry(_clamp, 2),
}  # fmt: skip
