"""Element-wise operations on scalars and vectors alike: how each ``arith`` and ``math`` operation is emitted.

`OPERATIONS` is the one table of them: name -> (emit, cost). All operands of a call have the same lanes.
Arithmetic on narrower floats is done in f32 and rounded after each operation, as on hardware without such units.
"""

from __future__ import annotations

from typing import NamedTuple

from triton_porting_kit.compiler.dialect.operations import ClampF, FpToFp
from triton_porting_kit.compiler.loops.arithmetic import functions, minifloats, shifts
from triton_porting_kit.compiler.loops.arithmetic.divisions import INTEGER_DIVISIONS, division, quotient
from triton_porting_kit.compiler.loops.arithmetic.mode import Emit, Mode
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.tiles.tensors import FUNCTION_COST


class Entry(NamedTuple):
    """How one operation is emitted, and its cost in simple operations."""

    emit: Emit
    cost: int


def _arithmetic(name: str) -> Emit:
    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        flags = " fastmath<contract>" if mode.fuse_multiply_add else ""
        a, b = _wide_operands(builder, operation, values)
        result, element = builder.binary(name, a, b, flags), _result_element(operation)
        if element == "bf16" and mode.keeps_payloads:
            return [functions.round_to_bf16(builder, result, of_bf16=True)]
        return [narrow(builder, result, element)]

    return emit


def _one_of_both(name: str) -> Emit:
    """A maximum or minimum, which is one of its operands."""

    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        a, b = _wide_operands(builder, operation, values)
        result, element = builder.binary(name, a, b), _result_element(operation)
        return [
            functions.upper_half(builder, result) if element == "bf16" else narrow(builder, result, element)
        ]

    return emit


def _remainder(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
    a, b = _wide_operands(builder, operation, values)
    return [narrow(builder, builder.binary("arith.remf", a, b), _result_element(operation))]


def _divide(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
    a, b = _wide_operands(builder, operation, values)
    return [narrow(builder, quotient(builder, mode, a, b), _result_element(operation))]


def _float_unary(name: str) -> Emit:
    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        wide = _wide_operands(builder, operation, values)
        type = wide[0].type
        text = f"{name} {', '.join(value.name for value in wide)} : {type}"
        return [narrow(builder, builder.pure(text, type, wide), _result_element(operation))]

    return emit


def _integer_binary(name: str) -> Emit:
    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        a, b = values
        return [builder.binary(name, a, b)]

    return emit


def _shift(name: str) -> Emit:
    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        return [shifts.shift(builder, name, *values)]

    return emit


def _extended_multiply(name: str) -> Emit:
    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        a, b = values
        bits = types.BITS[a.element]
        if mode.multiplies_high and name == "arith.mului_extended" and bits == 32 and a.lanes in (4, 8, 16):
            return [builder.mul(a, b), _upper_half(builder, a, b)]
        extend = "arith.extui" if name == "arith.mului_extended" else "arith.extsi"
        wide = vector_type(f"i{2 * bits}", a.lanes)
        product = builder.mul(builder.cast(extend, a, wide), builder.cast(extend, b, wide))
        high = builder.binary("arith.shrui", product, builder.constant(bits, wide))
        return [builder.mul(a, b), builder.cast("arith.trunci", high, a.type)]

    return emit


def _upper_half(builder: LoopBuilder, a: Value, b: Value) -> Value:
    """The upper halves of the unsigned products of 32-bit lanes, as fixed-point products with 32 fraction bits.

    The resulting code is that of products in lanes of twice the width, but LLVM takes three times as long to recognise
    those.
    """
    places = builder.constant(32, "i32")
    text = (
        f'llvm.call_intrinsic "llvm.umul.fix.v{a.lanes}i32"({a.name}, {b.name}, {places.name}) : '
        f"({a.type}, {b.type}, i32) -> {a.type}"
    )
    return builder.pure(text, a.type, (a, b))


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
    a, b = _wide_operands(builder, operation, values)
    predicate = CMPF[operation.integer("predicate")]
    type = vector_type("i1", a.lanes)
    return [builder.pure(f"arith.cmpf {predicate}, {a.name}, {b.name} : {a.type}", type, (a, b))]


def _select(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
    return [builder.select(*values)]


def _cast(name: str) -> Emit:
    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        (value,) = values
        source = operation.operands[0].type.element
        toward_zero = operation.integer("roundingmode", TO_NEAREST) == _TOWARD_ZERO
        return [convert(builder, name, value, source, _result_element(operation), toward_zero=toward_zero)]

    return emit


TO_NEAREST, _TOWARD_ZERO = 0, 3  # values in upstream's enumeration of rounding modes


def convert(
    builder: LoopBuilder, name: str, value: Value, source: str, target: str, *, toward_zero: bool = False
) -> Value:
    """The ``arith`` cast `name` of a value of element type `source` to `target`, rounded once."""
    if name == "arith.truncf":
        return _truncate(builder, value, source, target, toward_zero)
    if name == "arith.extf" and target in types.NARROW_FLOATS:
        return _extend(builder, value, source, target)
    if name in ("arith.sitofp", "arith.uitofp") and target in types.NARROW_FLOATS:
        return _from_integer(builder, name, value, source, target)
    if name != "arith.bitcast":
        value = widen(builder, value, source)
    return builder.cast(name, value, vector_type(types.register(target), value.lanes))


def round_to_bf16(builder: LoopBuilder, values: list[Value]) -> Value:
    """f32 rounded to bf16 by AVX512-BF16's VCVTNEPS2BF16, which LLVM emits for this cast; held as bits.

    LLVM 22 aborts if the operand turns out to be constant when types are legal already, so a fence hides it.
    """
    (value,) = values
    suffix = f"v{value.lanes}f32" if value.lanes > 1 else "f32"
    text = (
        f'llvm.call_intrinsic "llvm.arithmetic.fence.{suffix}"({value.name}) : ({value.type}) -> {value.type}'
    )
    hidden = builder.pure(text, value.type, (value,))
    nearest = builder.cast("arith.truncf", hidden, vector_type("bf16", value.lanes))
    return builder.cast("arith.bitcast", nearest, vector_type(types.register("bf16"), value.lanes))


def _extend(builder: LoopBuilder, value: Value, source: str, target: str) -> Value:
    """Convert an 8-bit float to a 16-bit one, which represents all its values."""
    value = widen(builder, value, source)
    if target == "bf16":
        return functions.upper_half(builder, value)
    return narrow(builder, value, target)


def _float_to_float(
    builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]
) -> list[Value]:
    """Convert to an 8-bit float as Triton does: rounding to nearest never produces an infinity."""
    (value,) = values
    op = FpToFp(operation)
    source, toward_zero = op.x.type.element, op.rounding == "rtz"
    target = _result_element(operation)
    return [_truncate(builder, value, source, target, toward_zero, keep_infinity=toward_zero)]


def _truncate(
    builder: LoopBuilder,
    value: Value,
    source: str,
    target: str,
    toward_zero: bool,
    *,
    keep_infinity: bool = True,
) -> Value:
    value = widen(builder, value, source)
    if value.element == "f64" and target in types.NARROW_FLOATS:
        # Through f32 without double rounding: a set last bit marks that something was cut off.
        value = functions.truncate_to_odd(builder, value)
    if target in types.FLOAT8:
        return minifloats.round_f32(
            builder, value, target, toward_zero=toward_zero, keep_infinity=keep_infinity
        )
    if target in types.NARROW_FLOATS:
        nearest = functions.NARROW[target].round(builder, value)
    else:
        nearest = builder.cast("arith.truncf", value, vector_type(target, value.lanes))
    if not toward_zero:
        return nearest
    back = builder.cast("arith.extf", widen(builder, nearest, target), value.type)
    return functions.step_back(builder, nearest, back, value)


def _from_integer(builder: LoopBuilder, name: str, value: Value, source: str, target: str) -> Value:
    """Convert an integer to a 16-bit float.

    For f16, f32 is exact enough: f16's range ends before f32 becomes inexact. bf16 represents all integers of 8 bits.
    """
    wide = "f32"
    if target == "bf16" and types.BITS[source] > 16:
        wide = "f64"
        if source == "i64":
            value = functions.sticky_integer(builder, value)
    number = builder.cast(name, value, vector_type(wide, value.lanes))
    if target == "bf16" and types.BITS[source] <= 8:
        return functions.upper_half(builder, number)
    return _truncate(builder, number, wide, target, False)


def widen(builder: LoopBuilder, value: Value, element: str) -> Value:
    """Convert a narrow float to f32; other values are returned unchanged."""
    if element not in types.NARROW_FLOATS:
        return value
    known = functions.NARROW.get(element)
    return known.widen(builder, value) if known else minifloats.widen(builder, value, element)


def narrow(builder: LoopBuilder, value: Value, element: str) -> Value:
    """Round an f32 to the narrow type `element`; values of other types are returned unchanged."""
    return _truncate(builder, value, "f32", element, False) if element in types.NARROW_FLOATS else value


def _wide_operands(builder: LoopBuilder, operation: Operation, values: list[Value]) -> list[Value]:
    elements = (operand.type.element for operand in operation.operands)
    return [widen(builder, value, element) for value, element in zip(values, elements, strict=True)]


def _result_element(operation: Operation) -> str:
    return operation.results[0].type.element


def _clamp(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
    """``min(max(x, low), high)``. A NaN is propagated only with `propagate_nan`."""
    x, low, high = _wide_operands(builder, operation, values)
    propagate = ClampF(operation).propagate_nan
    maximum, minimum = (
        ("arith.maximumf", "arith.minimumf") if propagate else ("arith.maxnumf", "arith.minnumf")
    )
    result = builder.binary(minimum, builder.binary(maximum, x, low), high)
    return [narrow(builder, result, _result_element(operation))]


def _absolute(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
    (value,) = values
    element = _result_element(operation)
    if element in types.NARROW_FLOATS:
        sign = 1 << (types.BITS[element] - 1)
        magnitude = builder.binary("arith.andi", value, builder.constant(sign - 1, value.type))
        return [_unless_nan(builder, element, value, magnitude)]
    return [builder.pure(f"math.absf {value.name} : {value.type}", value.type, (value,))]


def _negate(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
    (value,) = values
    element = _result_element(operation)
    if element in types.NARROW_FLOATS:
        sign = builder.constant(1 << (types.BITS[element] - 1), value.type)
        flipped = _unless_nan(builder, element, value, builder.binary("arith.xori", value, sign))
        if element in _UNSIGNED_ZERO:
            zero = builder.constant(0, value.type)
            flipped = builder.select(builder.compare("eq", value, zero), zero, flipped)
        return [flipped]
    return [builder.pure(f"arith.negf {value.name} : {value.type}", value.type, (value,))]


_UNSIGNED_ZERO = tuple(name for name, form in minifloats.FORMATS.items() if not form.signed_zero)


def _unless_nan(builder: LoopBuilder, element: str, value: Value, changed: Value) -> Value:
    """`changed`, or `value` where it is NaN, for types whose NaN has the bit pattern of -0."""
    if element not in _UNSIGNED_ZERO:
        return changed
    nan = builder.constant(minifloats.FORMATS[element].sign, value.type)
    return builder.select(builder.compare("eq", value, nan), value, changed)


def reciprocal_root(
    builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]
) -> list[Value]:
    """1 / sqrt(x)."""
    (wide,) = _wide_operands(builder, operation, values)
    root = builder.pure(f"math.sqrt {wide.name} : {wide.type}", wide.type, (wide,))
    result = builder.binary("arith.divf", builder.constant(1.0, wide.type), root)
    return [narrow(builder, result, _result_element(operation))]


OPERATIONS: dict[str, Entry] = {
    **{f"arith.{n}": Entry(_arithmetic(f"arith.{n}"), 1) for n in ("addf", "subf", "mulf")},
    **{
        f"arith.{n}": Entry(_one_of_both(f"arith.{n}"), 1)
        for n in ("maximumf", "minimumf", "maxnumf", "minnumf")
    },
    "arith.divf": Entry(_divide, 4),
    "arith.remf": Entry(_remainder, FUNCTION_COST),
    "arith.negf": Entry(_negate, 1),
    **{
        f"arith.{n}": Entry(_integer_binary(f"arith.{n}"), 1)
        for n in (
            "addi", "subi", "muli", "andi", "ori", "xori",
            "maxsi", "minsi", "maxui", "minui",
        )
    },
    **{f"arith.{n}": Entry(_shift(f"arith.{n}"), 1) for n in ("shli", "shrsi", "shrui")},
    **{
        name: Entry(division(name), FUNCTION_COST) for name in INTEGER_DIVISIONS
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
    "math.sqrt": Entry(_float_unary("math.sqrt"), FUNCTION_COST),
    **{
        f"math.{n}": Entry(_float_unary(f"math.{n}"), 1)
        for n in ("floor", "ceil", "round", "roundeven", "trunc", "copysign", "fma")
    },
    FpToFp.OPERATION_NAME: Entry(_float_to_float, 2),
    "math.absf": Entry(_absolute, 1),
    "math.absi": Entry(lambda b, m, o, v: [b.pure(f"math.absi {v[0].name} : {v[0].type}", v[0].type, v)], 1),
    "math.rsqrt": Entry(reciprocal_root, FUNCTION_COST),
    ClampF.OPERATION_NAME: Entry(_clamp, 2),
}  # fmt: skip
