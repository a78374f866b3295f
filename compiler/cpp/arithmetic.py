"""Arithmetic, comparisons and conversions of scalars and vectors, as C++ expressions.

`EXPRESSIONS` is the table: operation -> (emitter, operation) -> expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.compiler.cpp.emitter import Emitter
from triton_porting_kit.compiler.cpp.types import CppType

Expression = Callable[[Emitter, Any], str]


def converted(value: str, source: CppType, target: CppType) -> str:
    """A C++ conversion that preserves values: of a scalar, or of each lane."""
    if not target.lanes:
        return f"{target.name}({value})"
    return f"__builtin_convertvector({value}, {target.name})"


def signed(emitter: Emitter, value: str, type: CppType) -> str:
    """An unsigned integer, or a vector of them, converted to the signed type."""
    emitter.use(type.signed)
    if not type.lanes and emitter.literal_of(value) is not None:
        return f"i{value[1:]}"
    return f"({type.signed.name}){value}" if type.lanes else f"{type.signed.name}({value})"


def binary(emitter: Emitter, name: str, a: str, b: str, type: CppType) -> str:
    """The expression of a binary operation on one type. Raises KeyError for an unknown operation."""
    if name in _FLOAT:
        return f"{a} {_FLOAT[name]} {b}"
    if name in _FUNCTIONS:
        return f"{emitter.function(_FUNCTIONS[name])}({a}, {b})"
    if type.is_truth:
        return _truth(name, a, b, type)
    if name in _SIGNED_DIVISION:
        inner = f"{signed(emitter, a, type)} {_SIGNED_DIVISION[name]} {signed(emitter, b, type)}"
        return f"({type.name})({inner})" if type.lanes else f"{type.name}({inner})"
    if name in _EXTREMA:
        is_signed, order = _EXTREMA[name]
        x, y = (signed(emitter, v, type) if is_signed else v for v in (a, b))
        return f"({x} {order} {y}) ? {a} : {b}"
    if name in _SHIFTS:
        return _shift(emitter, name, a, b, type)
    inner = f"{a} {_INTEGER[name]} {b}"
    if type.lanes or type.bits >= 32:
        return inner
    return f"{type.name}(u32({a}) {_INTEGER[name]} u32({b}))"  # narrow integers would be promoted to int


def _shift(emitter: Emitter, name: str, a: str, b: str, type: CppType) -> str:
    """A shift by an amount modulo the type's width: more is undefined in C++, and the result is unused."""
    literal = emitter.literal_of(b)
    amount = str(literal) if literal is not None and 0 <= literal < type.bits else f"({b} & {type.bits - 1})"
    if type.lanes and literal is not None and 0 <= literal < type.bits:
        amount = str(literal)
    operator = "<<" if name == "arith.shli" else ">>"
    if name == "arith.shrsi":
        if type.lanes and not amount.isdigit():
            emitter.use(type.signed)
            amount = f"({type.signed.name}){amount}"
        inner = f"({signed(emitter, a, type)} {operator} {amount})"
        return f"({type.name}){inner}" if type.lanes else f"{type.name}{inner}"
    if type.lanes or type.bits >= 32:
        return f"{a} {operator} {amount}"
    return f"{type.name}(u32({a}) {operator} {amount})"


def _truth(name: str, a: str, b: str, type: CppType) -> str:
    """Arithmetic on i1. A divisor is never 0, so it is always 1."""
    inner = {
        "arith.addi": f"{a} ^ {b}", "arith.subi": f"{a} ^ {b}", "arith.xori": f"{a} ^ {b}",
        "arith.muli": f"{a} & {b}", "arith.andi": f"{a} & {b}", "arith.ori": f"{a} | {b}",
        "arith.maxui": f"{a} | {b}", "arith.minui": f"{a} & {b}",
        "arith.maxsi": f"{a} & {b}", "arith.minsi": f"{a} | {b}",
        "arith.divui": a, "arith.divsi": a, "arith.remui": f"{a} ^ {a}", "arith.remsi": f"{a} ^ {a}",
    }[name]  # fmt: skip
    return inner if type.lanes else f"bool({inner})"


_FLOAT = {"arith.addf": "+", "arith.subf": "-", "arith.mulf": "*", "arith.divf": "/"}
_INTEGER = {
    "arith.addi": "+", "arith.subi": "-", "arith.muli": "*", "arith.andi": "&", "arith.ori": "|",
    "arith.xori": "^", "arith.divui": "/", "arith.remui": "%",
}  # fmt: skip
_SIGNED_DIVISION = {"arith.divsi": "/", "arith.remsi": "%"}
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
        a, b = f"u64({a})", f"u64({b})"
    elif type.is_truth:
        a, b = _comparable_truth(a, type, is_signed), _comparable_truth(b, type, is_signed)
    elif is_signed:
        a, b = signed(emitter, a, type), signed(emitter, b, type)
    return _as_mask(emitter, f"{a} {_INTEGER_ORDERS[predicate]} {b}", type)


def _comparable_truth(value: str, type: CppType, is_signed: bool) -> str:
    """In signed comparisons true is -1, else 1."""
    if type.lanes:
        return value if is_signed else f"({value} & 1)"
    return f"-i32({value})" if is_signed else value


def _as_mask(emitter: Emitter, comparison: str, type: CppType) -> str:
    if not type.lanes:
        return comparison
    mask = CppType("bool", 1, type.lanes)
    emitter.use(mask)
    wide = type.is_truth or type.bits == 32
    return comparison if wide else f"__builtin_convertvector({comparison}, {mask.name})"


def _compare_floats(emitter: Emitter, operation: Any) -> str:
    """Ordered comparisons are C++'s. An unordered one is the negation of the opposite ordered one."""
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
        return f"{emitter.function('select')}({condition}, {a}, {b})"
    return f"{condition} ? {a} : {b}"


# --- conversions -------------------------------------------------------------------------------------------


def _types(emitter: Emitter, operation: Any) -> tuple[str, CppType, CppType]:
    (value,) = emitter.operands(operation)
    return value, emitter.type_of(operation.operands[0]), emitter.result_type(operation)


def _extend_zero(emitter: Emitter, operation: Any) -> str:
    value, source, target = _types(emitter, operation)
    return converted(f"({value} & 1)" if source.is_truth and source.lanes else value, source, target)


def _extend_sign(emitter: Emitter, operation: Any) -> str:
    value, source, target = _types(emitter, operation)
    if source.is_truth and not source.lanes:
        return f"{target.name}(-i32({value}))" if target.bits <= 32 else f"{target.name}(-i64({value}))"
    if not source.is_truth:
        value = signed(emitter, value, source)
    if not target.lanes:
        return f"{target.name}({target.signed.name}({value}))"
    emitter.use(target.signed)
    return f"({target.name})__builtin_convertvector({value}, {target.signed.name})"


def _truncate(emitter: Emitter, operation: Any) -> str:
    value, source, target = _types(emitter, operation)
    if not target.is_truth:
        return converted(value, source, target)
    return _as_mask(emitter, f"({value} & 1) != 0", source)


def _from_signed(emitter: Emitter, operation: Any) -> str:
    value, source, target = _types(emitter, operation)
    if source.is_truth:
        return converted(value if source.lanes else f"-i32({value})", source, target)
    return converted(signed(emitter, value, source), source, target)


def _to_signed(emitter: Emitter, operation: Any) -> str:
    value, source, target = _types(emitter, operation)
    emitter.use(target.signed)
    inner = converted(value, source, target.signed)
    return f"({target.name}){inner}" if target.lanes else f"{target.name}({inner})"


def _plain(emitter: Emitter, operation: Any) -> str:
    return converted(*_types(emitter, operation))


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
    return f"{emitter.function('as')}<{target.name}>({value})"


# --- functions ---------------------------------------------------------------------------------------------


def _call(function: str) -> Expression:
    def emit(emitter: Emitter, operation: Any) -> str:
        return f"{emitter.function(function)}({', '.join(emitter.operands(operation))})"

    return emit


def _on_bits(function: str) -> Expression:
    """A function of the bits of an integer, lane by lane."""

    def emit(emitter: Emitter, operation: Any) -> str:
        return _lanewise(emitter, operation, emitter.function(function) + "({})")

    return emit


def _lanewise(emitter: Emitter, operation: Any, call: str) -> str:
    """`call` for a scalar or for each lane; ``{}`` in it is the operand."""
    value, source, target = _types(emitter, operation)
    if not source.lanes:
        return call.format(value)
    body = f"[]({source.element} x) {{ return {call.format('x')}; }}"
    return f"{emitter.function('each')}<{target.name}>({body}, {value})"


def _negate(emitter: Emitter, operation: Any) -> str:
    (value,) = emitter.operands(operation)
    return f"-{value}" if value[:1] not in "-+" else f"-({value})"


def _absolute_integer(emitter: Emitter, operation: Any) -> str:
    value, source, _ = _types(emitter, operation)
    if source.is_truth:
        return value
    negative = f"0 - {value}" if source.lanes else f"{source.name}(0 - {value})"
    return f"({signed(emitter, value, source)} < 0) ? {negative} : {value}"


def _intrinsic(emitter: Emitter, operation: Any) -> str:
    name = emitter.text(operation, "intrin")
    if name.startswith(("llvm.fptosi.sat", "llvm.fptoui.sat")):
        target = emitter.result_type(operation)
        letter = "i" if name.startswith("llvm.fptosi") else "u"
        call = f"{emitter.function('saturated')}<{letter}{target.bits}>({{}})"
        return _lanewise(emitter, operation, f"{target.element}({call})")
    if name.startswith("llvm.bitreverse"):
        return _on_bits("reversed_bits")(emitter, operation)
    if name.startswith("llvm.ldexp"):
        x, exponent = emitter.operands(operation)
        type = emitter.result_type(operation)
        builtin = "__builtin_ldexpf" if type.bits == 32 else "__builtin_ldexp"
        if not type.lanes:
            return f"{builtin}({x}, i32({exponent}))"
        body = f"[]({type.element} x, u32 exponent) {{ return {builtin}(x, i32(exponent)); }}"
        return f"{emitter.function('each')}<{type.name}>({body}, {x}, {exponent})"
    raise emitter.unsupported(operation, f"the intrinsic {name}")


_NAMED = {
    "math.sqrt": "square_root", "math.roundeven": "round_even", "math.round": "round_away", "math.floor": "round_down",
    "math.ceil": "round_up", "math.trunc": "round_to_zero", "math.absf": "magnitude", "math.fma": "fused_multiply_add",
}  # fmt: skip
_BITS = {"math.ctlz": "leading_zeros", "math.cttz": "trailing_zeros", "math.ctpop": "bit_count"}

EXPRESSIONS: dict[str, Expression] = {
    **dict.fromkeys((*_FLOAT, *_INTEGER, *_SIGNED_DIVISION, *_SHIFTS, *_EXTREMA, *_FUNCTIONS), _binary),
    **{name: _call(function) for name, function in _NAMED.items()},
    **{name: _on_bits(function) for name, function in _BITS.items()},
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
    "llvm.ptrtoint": lambda emitter, operation: f"u64({emitter.operands(operation)[0]})",
    "llvm.inttoptr": lambda emitter, operation: f"ptr({emitter.operands(operation)[0]})",
}
