"""Arithmetic, comparisons and conversions of scalars and vectors, as expressions.

`EXPRESSIONS` is the table: operation -> (emitter, operation) -> expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.compiler.cpp.emitter import Emitter
from triton_porting_kit.compiler.cpp.types import CppType, cast

Expression = Callable[[Emitter, Any], str]


def signed(emitter: Emitter, value: str, type: CppType) -> str:
    """An unsigned integer, or a vector of them, converted to the signed type."""
    if not type.lanes and emitter.literal_of(value) is not None:
        return f"(i{value[2:]}"
    return emitter.reinterpreted(value, type.signed)


def _lane_literal(type: CppType, number: int) -> str:
    """A number as an operand beside a vector, whose lanes must not be narrower than it."""
    return f"({type.lane}){number}" if type.lanes else str(number)


def binary(emitter: Emitter, name: str, a: str, b: str, type: CppType) -> str:
    """The expression of a binary operation on one type. Raises KeyError for an unknown operation."""
    if name in _FLOAT:
        return f"{a} {_FLOAT[name]} {b}"
    if name in _FUNCTIONS:
        return f"{emitter.function(_FUNCTIONS[name], type)}({a}, {b})"
    if type.is_truth:
        return _truth(name, a, b, type)
    if name in _SIGNED_DIVISION:
        inner = f"{signed(emitter, a, type)} {_SIGNED_DIVISION[name]} {signed(emitter, b, type)}"
        return emitter.reinterpreted(f"({inner})" if type.lanes else inner, type)
    if name in _ROUNDED:
        return _rounded_division(emitter, name, a, b, type)
    if name in _EXTREMA:
        is_signed, order = _EXTREMA[name]
        x, y = (signed(emitter, v, type) if is_signed else v for v in (a, b))
        if type.lanes:
            return f"{emitter.function('choose', type)}({x} {order} {y}, {a}, {b})"
        return f"({x} {order} {y}) ? {a} : {b}"
    if name in _SHIFTS:
        return _shift(emitter, name, a, b, type)
    inner = f"{a} {_INTEGER[name]} {b}"
    if type.lanes or type.bits >= 32:
        return inner
    # Narrow integers would be promoted to int.
    return cast(type.name, f"{cast('u32', a)} {_INTEGER[name]} {cast('u32', b)}")


def _rounded_division(emitter: Emitter, name: str, a: str, b: str, type: CppType) -> str:
    """A quotient rounded up or down: C's is rounded to zero, and corrected by 1 where there is a remainder.

    A true comparison is 1, and -1 in the lanes of a vector.
    """
    is_signed, is_up = _ROUNDED[name]
    x, y = (signed(emitter, value, type) if is_signed else value for value in (a, b))
    zero = _lane_literal(type.signed if is_signed else type, 0)
    remains = f"({x} % {y} != {zero})"
    if is_signed:
        remains += f" & (({x} % {y} ^ {y}) {'>=' if is_up else '<'} {zero})"
    correction = (
        emitter.reinterpreted(f"({remains})", type) if type.lanes and not is_signed else f"({remains})"
    )
    operator = "+" if is_up != bool(type.lanes) else "-"
    return emitter.reinterpreted(f"({x} / {y} {operator} {correction})", type)


def _shift(emitter: Emitter, name: str, a: str, b: str, type: CppType) -> str:
    """A shift by an amount modulo the type's width: more is undefined in C, and the result is unused."""
    literal = emitter.literal_of(b)
    is_literal = literal is not None and 0 <= literal < type.bits
    amount = str(literal) if is_literal else f"({b} & {_lane_literal(type, type.bits - 1)})"
    if is_literal and type.lanes:
        amount = _lane_literal(type, literal or 0)
    operator = "<<" if name == "arith.shli" else ">>"
    if name == "arith.shrsi":
        if type.lanes and not is_literal:
            amount = emitter.reinterpreted(amount, type.signed)
        return emitter.reinterpreted(f"({signed(emitter, a, type)} {operator} {amount})", type)
    if type.lanes or type.bits >= 32:
        return f"{a} {operator} {amount}"
    return cast(type.name, f"{cast('u32', a)} {operator} {amount}")


def _truth(name: str, a: str, b: str, type: CppType) -> str:
    """Arithmetic on i1. A divisor is never 0, so it is always 1."""
    inner = {
        "arith.addi": f"{a} ^ {b}", "arith.subi": f"{a} ^ {b}", "arith.xori": f"{a} ^ {b}",
        "arith.muli": f"{a} & {b}", "arith.andi": f"{a} & {b}", "arith.ori": f"{a} | {b}",
        "arith.maxui": f"{a} | {b}", "arith.minui": f"{a} & {b}",
        "arith.maxsi": f"{a} & {b}", "arith.minsi": f"{a} | {b}",
        "arith.divui": a, "arith.divsi": a, "arith.remui": f"{a} ^ {a}", "arith.remsi": f"{a} ^ {a}",
    }[name]  # fmt: skip
    return inner if type.lanes else cast("bool", inner)


_FLOAT = {"arith.addf": "+", "arith.subf": "-", "arith.mulf": "*", "arith.divf": "/"}
_INTEGER = {
    "arith.addi": "+", "arith.subi": "-", "arith.muli": "*", "arith.andi": "&", "arith.ori": "|",
    "arith.xori": "^", "arith.divui": "/", "arith.remui": "%",
}  # fmt: skip
_SIGNED_DIVISION = {"arith.divsi": "/", "arith.remsi": "%"}
_ROUNDED = {
    "arith.floordivsi": (True, False), "arith.ceildivsi": (True, True), "arith.ceildivui": (False, True),
}  # fmt: skip
"""Whether operands are signed, and whether the quotient is rounded up."""
_SHIFTS = ("arith.shli", "arith.shrui", "arith.shrsi")
_EXTREMA = {
    "arith.maxsi": (True, ">"), "arith.minsi": (True, "<"), "arith.maxui": (False, ">"), "arith.minui": (False, "<"),
}  # fmt: skip
_FUNCTIONS = {
    "arith.minimumf": "minimum", "arith.maximumf": "maximum", "arith.minnumf": "minimum_number",
    "arith.maxnumf": "maximum_number", "arith.remf": "remainder_of", "math.copysign": "copy_sign",
}  # fmt: skip


def _binary(emitter: Emitter, operation: Any) -> str:
    a, b = emitter.operands(operation)
    return binary(emitter, operation.name, a, b, emitter.result_type(operation))


# --- comparisons -------------------------------------------------------------------------------------------

_INTEGER_ORDERS = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_FIRST_SIGNED, _FIRST_UNSIGNED = 2, 6


def _compare_integers(emitter: Emitter, operation: Any) -> str:
    a, b = emitter.operands(operation)
    type = emitter.type_of(operation.operands[0])
    predicate = emitter.integer(operation, "predicate")
    is_signed = _FIRST_SIGNED <= predicate < _FIRST_UNSIGNED
    if type.element == "ptr":
        a, b = cast("u64", a), cast("u64", b)
    elif type.is_truth:
        a, b = _comparable_truth(a, type, is_signed), _comparable_truth(b, type, is_signed)
    elif is_signed:
        a, b = signed(emitter, a, type), signed(emitter, b, type)
    return _as_mask(emitter, f"{a} {_INTEGER_ORDERS[predicate]} {b}", type)


def _comparable_truth(value: str, type: CppType, is_signed: bool) -> str:
    """In signed comparisons true is -1, else 1."""
    if type.lanes:
        return value if is_signed else f"({value} & 1)"
    return f"-{cast('i32', value)}" if is_signed else value


def _as_mask(emitter: Emitter, comparison: str, type: CppType) -> str:
    if not type.lanes:
        return comparison
    emitter.use(type.truths)
    is_wide = type.is_truth or type.bits == 32
    return comparison if is_wide else emitter.converted(comparison, type.truths)


def _compare_floats(emitter: Emitter, operation: Any) -> str:
    """Ordered comparisons are C's. An unordered one is the negation of the opposite ordered one."""
    a, b = emitter.operands(operation)
    type = emitter.type_of(operation.operands[0])
    no = "~" if type.lanes else "!"
    both, either = ("&", "|") if type.lanes else ("&&", "||")
    text = (
        None, f"{a} == {b}", f"{a} > {b}", f"{a} >= {b}", f"{a} < {b}", f"{a} <= {b}",
        f"({a} < {b}) {either} ({a} > {b})", f"({a} == {a}) {both} ({b} == {b})",
        f"{no}(({a} < {b}) {either} ({a} > {b}))", f"{no}({a} <= {b})", f"{no}({a} < {b})", f"{no}({a} >= {b})",
        f"{no}({a} > {b})", f"{a} != {b}", f"({a} != {a}) {either} ({b} != {b})", None,
    )[emitter.integer(operation, "predicate")]  # fmt: skip
    if text is None:
        raise emitter.unsupported(operation, "a comparison whose result is constant")
    return _as_mask(emitter, text, type)


def _select(emitter: Emitter, operation: Any) -> str:
    condition, a, b = emitter.operands(operation)
    if emitter.type_of(operation.operands[0]).lanes:
        return f"{emitter.function('select', emitter.result_type(operation))}({condition}, {a}, {b})"
    return f"{condition} ? {a} : {b}"


# --- conversions -------------------------------------------------------------------------------------------


def _types(emitter: Emitter, operation: Any) -> tuple[str, CppType, CppType]:
    (value,) = emitter.operands(operation)
    return value, emitter.type_of(operation.operands[0]), emitter.result_type(operation)


def _extend_zero(emitter: Emitter, operation: Any) -> str:
    value, source, target = _types(emitter, operation)
    return emitter.converted(f"({value} & 1)" if source.is_truth and source.lanes else value, target)


def _extend_sign(emitter: Emitter, operation: Any) -> str:
    value, source, target = _types(emitter, operation)
    if source.is_truth and not source.lanes:
        return cast(target.name, f"-{cast('i32' if target.bits <= 32 else 'i64', value)}")
    if not source.is_truth:
        value = signed(emitter, value, source)
    return emitter.reinterpreted(emitter.converted(value, target.signed), target)


def _truncate(emitter: Emitter, operation: Any) -> str:
    value, source, target = _types(emitter, operation)
    if not target.is_truth:
        return emitter.converted(value, target)
    one, zero = (_lane_literal(source, number) for number in (1, 0))
    return _as_mask(emitter, f"({value} & {one}) != {zero}", source)


def _from_signed(emitter: Emitter, operation: Any) -> str:
    value, source, target = _types(emitter, operation)
    if source.is_truth:
        return emitter.converted(value if source.lanes else f"-{cast('i32', value)}", target)
    return emitter.converted(signed(emitter, value, source), target)


def _to_signed(emitter: Emitter, operation: Any) -> str:
    value, _, target = _types(emitter, operation)
    return emitter.reinterpreted(emitter.converted(value, target.signed), target)


def _plain(emitter: Emitter, operation: Any) -> str:
    value, _, target = _types(emitter, operation)
    return emitter.converted(value, target)


def _index(extend: Expression) -> Expression:
    def emit(emitter: Emitter, operation: Any) -> str:
        _, source, target = _types(emitter, operation)
        return extend(emitter, operation) if target.bits > source.bits else _plain(emitter, operation)

    return emit


def _bitcast(emitter: Emitter, operation: Any) -> str:
    value, source, target = _types(emitter, operation)
    if source == target:
        return value
    if source.is_truth or target.is_truth:
        raise emitter.unsupported(operation, "a bit cast of booleans")
    if emitter.dialect.spaces and 1 in (source.lanes, target.lanes) and source.lanes != target.lanes:
        raise emitter.unsupported(operation, "a bit cast of a vector of one lane")
    return emitter.bits_as(value, target, source)


# --- functions ---------------------------------------------------------------------------------------------


def _call(function: str) -> Expression:
    """A function of values of one type, which is also the result's."""

    def emit(emitter: Emitter, operation: Any) -> str:
        name = emitter.function(function, emitter.result_type(operation))
        return f"{name}({', '.join(emitter.operands(operation))})"

    return emit


def _negate(emitter: Emitter, operation: Any) -> str:
    (value,) = emitter.operands(operation)
    return f"-{value}" if value[:1] not in "-+" else f"-({value})"


def _absolute_integer(emitter: Emitter, operation: Any) -> str:
    value, source, _ = _types(emitter, operation)
    if source.is_truth:
        return value
    inner = signed(emitter, value, source)
    if source.lanes:
        negative = f"{inner} < {_lane_literal(source.signed, 0)}"
        return f"{emitter.function('choose', source)}({negative}, -{value}, {value})"
    return f"({inner} < 0) ? {cast(source.name, f'0 - {value}')} : {value}"


def _intrinsic(emitter: Emitter, operation: Any) -> str:
    name = emitter.text(operation, "intrin")
    types = [emitter.result_type(operation), *(emitter.type_of(value) for value in operation.operands)]
    for start, (function, kinds) in _INTRINSICS.items():
        if name.startswith(start):
            called = emitter.function(function, *(types[kind] for kind in kinds))
            return f"{called}({', '.join(emitter.operands(operation))})"
    raise emitter.unsupported(operation, f"the intrinsic {name}")


_INTRINSICS = {
    "llvm.fptosi.sat": ("saturated_signed", (0, 1)), "llvm.fptoui.sat": ("saturated_unsigned", (0, 1)),
    "llvm.bitreverse": ("reversed_bits", (0,)), "llvm.ldexp": ("scaled_by_power", (0, 2)),
}  # fmt: skip
"""Support functions of LLVM's intrinsics, and which types they are for: the result's, or an operand's, from 1."""

_NAMED = {
    "math.sqrt": "square_root", "math.roundeven": "round_even", "math.round": "round_away", "math.floor": "round_down",
    "math.ceil": "round_up", "math.trunc": "round_to_zero", "math.absf": "magnitude", "math.fma": "fused_multiply_add",
    "math.ctlz": "leading_zeros", "math.cttz": "trailing_zeros", "math.ctpop": "bit_count",
}  # fmt: skip

EXPRESSIONS: dict[str, Expression] = {
    **dict.fromkeys(
        (*_FLOAT, *_INTEGER, *_SIGNED_DIVISION, *_ROUNDED, *_SHIFTS, *_EXTREMA, *_FUNCTIONS), _binary
    ),
    **{name: _call(function) for name, function in _NAMED.items()},
    "arith.cmpi": _compare_integers,
    "llvm.icmp": _compare_integers,
    "arith.cmpf": _compare_floats,
    "arith.select": _select,
    "arith.extui": _extend_zero,
    "arith.extsi": _extend_sign,
    "arith.trunci": _truncate,
    "arith.sitofp": _from_signed,
    "arith.uitofp": lambda emitter, operation: _extend_zero(emitter, operation),
    "arith.fptosi": _to_signed,
    "arith.fptoui": _plain,
    "arith.extf": _plain,
    "arith.truncf": _plain,
    "arith.index_cast": _index(_extend_sign),
    "arith.index_castui": _index(_extend_zero),
    "arith.bitcast": _bitcast,
    "vector.bitcast": _bitcast,
    "arith.negf": _negate,
    "math.absi": _absolute_integer,
    "llvm.call_intrinsic": _intrinsic,
    "llvm.ptrtoint": lambda emitter, operation: cast("u64", emitter.operands(operation)[0]),
    "llvm.inttoptr": lambda emitter, operation: cast("ptr", emitter.operands(operation)[0]),
}
