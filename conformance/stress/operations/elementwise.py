"""Elementwise operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from triton_porting_kit.conformance.stress import numbers
from triton_porting_kit.conformance.stress.numbers import Datum, settle, whole
from triton_porting_kit.conformance.stress.operations.base import (
    FLOATS,
    INTEGERS,
    NUMBERS,
    Operation,
    Place,
    Proposal,
    Scope,
    Types,
    Words,
    elementwise,
    joint,
    need,
    operands,
    partner,
    template,
)
from triton_porting_kit.conformance.stress.program import Attrs, IllConditioned, Type
from triton_porting_kit.conformance.types import KINDS, Array

WIDE = ("fp32", "fp64")
Compute = Callable[[Sequence[Datum], Attrs, Place], Datum]


def _each(name: str, form: str, kinds: Sequence[str], compute: Callable[..., Datum], count: int = 2, result: str = "",
    same_shape: bool = False, exact: bool = False, **more: Any) -> Operation:  # fmt: skip
    return Operation(
        name, elementwise(kinds, result), template(form), lambda data, attrs, place: compute(*data),
        operands(count, kinds, same_shape, exact), **more,
    )  # fmt: skip


def _integers(function: Callable[..., Any]) -> Callable[..., Datum]:
    def compute(*data: Datum) -> Datum:
        return whole(data[0].kind, function(*(d.value for d in data)))

    return compute


def _either(function: Callable[..., Any], floating: Callable[..., Datum]) -> Callable[..., Datum]:
    return lambda *data: floating(*data) if data[0].kind.is_float else _integers(function)(*data)


def _guarded(b: Array) -> Array:
    return np.where((b == 0) | ((b == -1) if b.dtype.kind == "i" else False), b.dtype.type(3), b)


def truncated(a: Array, b: Array) -> Array:
    """The quotient rounded toward zero."""
    floor = a // b
    return np.asarray(floor + ((a - floor * b != 0) & ((a < 0) != (b < 0))))


def _quotient(a: Array, b: Array) -> Array:
    return truncated(a, _guarded(b))


def _remainder(a: Array, b: Array) -> Array:
    return np.asarray(a - truncated(a, _guarded(b)) * _guarded(b))


def _shift(function: Callable[[Array, Array], Array]) -> Callable[..., Datum]:
    def compute(a: Datum, b: Datum) -> Datum:
        amount = (b.value & b.value.dtype.type(a.kind.bits - 1)).astype(a.kind.host)
        return whole(a.kind, function(a.value, amount))

    return compute


_ZERO = "tl.where(({1} == 0) | ({1} == -1), tl.full((), 3, {kind}), {1})"


def _division(symbol: str) -> Callable[[Words], str]:
    def text(words: Words) -> str:
        guard = _ZERO if words.types[1].kind.is_signed else _ZERO.replace(" | ({1} == -1)", "")
        return template(f"{{0}} {symbol} {guard}")(words)

    return text


def _compare(symbol: str, function: Callable[[Array, Array], Any]) -> Operation:
    def compute(a: Datum, b: Datum) -> Datum:
        return whole(KINDS["i1"], function(a.exact(), b.exact()))

    return _each(f"compare {symbol}", f"{{0}} {symbol} {{1}}", NUMBERS, compute, result="i1", weight=0.5)


def _minus(x: Datum) -> Datum:
    return Datum(x.kind, -x.value, x.error) if x.kind.is_float else whole(x.kind, -x.value)


def _absolute(x: Datum) -> Datum:
    return Datum(x.kind, np.abs(x.value), x.error) if x.kind.is_float else whole(x.kind, np.abs(x.value))


def _fused(a: Datum, b: Datum, c: Datum) -> Datum:
    return numbers.add(numbers.multiply(a, b), c)


def _clamped(x: Datum, a: Datum, b: Datum) -> Datum:
    low, high = numbers.extreme(a, b, False), numbers.extreme(a, b, True)
    return numbers.extreme(numbers.extreme(x, low, True), high, False)


def _upper_half(a: Datum, b: Datum) -> Datum:
    product = a.value.astype(object) * b.value.astype(object)
    return whole(a.kind, np.asarray(product >> a.kind.bits).astype(a.kind.host))


def _bound(form: str, value: Callable[[Array], Array], steepest: float, ulp: float, **more: Any) -> Any:
    """A function of one operand. `steepest`: bound of its derivative; `ulp`: its error in units in the last place."""

    def compute(x: Datum) -> Datum:
        if more.get("limit") and (np.abs(x.value) + x.errors > more["limit"]).any():
            raise IllConditioned("a function outside of its accurate range")
        floor = 2.0 ** (2 - x.kind.precision)  # the absolute error of a device near zero
        units = ulp + more.get("grows", 0.0) * np.abs(x.value)
        return settle(x.kind, value(x.value), x.errors * steepest + floor, False, units)

    return _each(form.partition("(")[0], form, WIDE, compute, count=1, weight=0.3)


_ERF = np.vectorize(math.erf, otypes=[float])

FUNCTIONS = (
    _bound("tl.exp(-tl.abs({0}))", lambda x: np.exp(-np.abs(x)), 1.0, 3, grows=2.0, limit=600),
    _bound("tl.exp2(-tl.abs({0}))", lambda x: np.exp2(-np.abs(x)), 1.0, 3, grows=2.0, limit=600),
    _bound("tl.log(tl.abs({0}) + 1)", lambda x: np.log(np.abs(x) + 1), 1.0, 4),
    _bound("tl.log2(tl.abs({0}) + 1)", lambda x: np.log2(np.abs(x) + 1), 1.5, 4),
    _bound("tl.sqrt(tl.abs({0}) + 1)", lambda x: np.sqrt(np.abs(x) + 1), 0.5, 3),
    _bound("tl.rsqrt(tl.abs({0}) + 1)", lambda x: 1 / np.sqrt(np.abs(x) + 1), 0.5, 4),
    _bound("tl.sin({0})", np.sin, 1.0, 4, limit=500),
    _bound("tl.cos({0})", np.cos, 1.0, 4, limit=500),
    _bound("tl.erf({0})", _ERF, 1.2, 4),
    _bound("tl.sigmoid({0})", lambda x: 1 / (1 + np.exp(-np.abs(x))) * np.where(x < 0, np.exp(-np.abs(x)), 1), 0.25, 6,
        grows=2.0, limit=600),
)  # fmt: skip


def _whole_number(function: Callable[[Array], Array]) -> Callable[[Datum], Datum]:
    return lambda x: Datum(x.kind, function(x.exact()))


# --- with attributes -----------------------------------------------------------------------------


def _where_types(types: Types, attrs: Attrs) -> Types:
    need(types[0].kind_name == "i1" and types[1].kind_name == types[2].kind_name)
    return (Type(types[1].kind_name, joint(types)),)


def _propose_where(scope: Scope) -> Proposal | None:
    condition = scope.any(lambda t: t.kind_name == "i1")
    first = None if condition is None else scope.any(lambda t: t.kind_name != "i1" or scope.draws.chance(0.3))
    if condition is None or first is None:
        return None
    types = [scope.type_of(condition), scope.type_of(first)]
    try:
        joint(tuple(types))
    except Exception:
        return None
    other = partner(scope, types, types[1].kind_name)
    return None if other is None else ((condition, first, other), {})


def _choose(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    condition, a, b = data
    return numbers.chosen(condition.value, a, b)


def _propose_cast(scope: Scope) -> Proposal | None:
    value = scope.any(lambda t: True)
    if value is None:
        return None
    own = scope.type_of(value).kind_name
    some = scope.kinds if scope.draws.chance(0.5) else scope.vocabulary
    kind = scope.draws.choose([k for k in some if k not in (own, "i1")] or ["i32"])
    if own in FLOATS and kind in INTEGERS and not scope.is_exact(value):
        return None
    return (value,), {"to": kind}


def _cast(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    return numbers.convert(data[0], KINDS[attrs["to"]])


_SAME_SIZE = {"i8": "u8", "i16": "u16", "i32": "u32", "i64": "u64"}
_SAME_SIZE |= {to: own for own, to in _SAME_SIZE.items()} | {"fp32": "i32", "fp64": "i64", "fp16": "i16"}


def _propose_bitcast(scope: Scope) -> Proposal | None:
    value = scope.any(lambda t: t.kind_name in _SAME_SIZE)
    if value is None or not scope.is_exact(value):
        return None
    return (value,), {"to": _SAME_SIZE[scope.type_of(value).kind_name]}


def _bitcast_types(types: Types, attrs: Attrs) -> Types:
    need(types[0].kind.bits == KINDS[attrs["to"]].bits and types[0].kind_name in _SAME_SIZE)
    return (types[0].with_kind(attrs["to"]),)


def _bitcast_text(words: Words) -> str:
    operand = words.args[0]
    if words.types[0].kind.is_float:  # zero may have either sign
        operand = f"tl.where({operand} == 0, tl.full((), 1, {words.types[0].kind.language}), {operand})"
    return f"{operand}.to({words.outs[0].kind.language}, bitcast=True)"


def _bitcast(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    (x,), kind = data, KINDS[attrs["to"]]
    value = np.where(x.exact() == 0, 1.0, x.value).astype(x.kind.host) if x.kind.is_float else x.value
    return whole(kind, np.ascontiguousarray(value).view(kind.host).reshape(x.value.shape))


_LITERAL: dict[str, tuple[Callable[..., Any], Callable[..., Datum] | None]] = {
    "+": (np.add, lambda a, b: numbers.add(a, b)),
    "-": (np.subtract, lambda a, b: numbers.add(a, b, -1.0)),
    "*": (np.multiply, lambda a, b: numbers.multiply(a, b)),
    "//": (truncated, None),
    "%": (lambda a, b: a - truncated(a, b) * b, None),
    "&": (np.bitwise_and, None),
    "|": (np.bitwise_or, None),
    "^": (np.bitwise_xor, None),
    "<<": (np.left_shift, None),
    ">>": (np.right_shift, None),
}


def _propose_literal(scope: Scope) -> Proposal | None:
    value = scope.any(lambda t: t.kind_name in NUMBERS)
    if value is None:
        return None
    draws, floating = scope.draws, scope.type_of(value).kind.is_float
    symbol = draws.choose(["+", "-", "*"] if floating else ["+", "-", "*", "//", "%"])
    number = draws.between(-8, 8) / 4 if floating and symbol != "*" else draws.between(1, 7)
    return (value,), {"symbol": symbol, "literal": number}


def _literal(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    function, floating = _LITERAL[attrs["symbol"]]
    (x,) = data
    other = numbers.as_number(x.kind.name, np.full((), attrs["literal"]))
    if x.kind.is_float:
        assert floating is not None
        return floating(x, other)
    return whole(x.kind, function(x.value, other.value))


def _literal_types(types: Types, attrs: Attrs) -> Types:
    need(types[0].kind_name in (NUMBERS if attrs["symbol"] in "+-*" else INTEGERS))
    need(types[0].kind.is_float or isinstance(attrs["literal"], int))
    return (types[0],)


MIX = """@triton.jit
def mix(a, b):
    if a.dtype.is_int_unsigned():
        return (a ^ b) + a
    return (a | b) - b

"""


def _mix(a: Datum, b: Datum) -> Datum:
    unsigned = a.kind.name[0] == "u"
    return whole(a.kind, (a.value ^ b.value) + a.value if unsigned else (a.value | b.value) - b.value)


OPERATIONS: tuple[Operation, ...] = (
    _each("+", "{0} + {1}", NUMBERS, _either(np.add, numbers.add), weight=3),
    _each("-", "{0} - {1}", NUMBERS, _either(np.subtract, lambda a, b: numbers.add(a, b, -1.0)), weight=3),
    _each("*", "{0} * {1}", NUMBERS, _either(np.multiply, numbers.multiply), weight=3),
    _each("/", "{0} / (tl.abs({1}) + 1)", FLOATS, lambda a, b: numbers.divide(a, numbers.add(_absolute(b), numbers.as_number(b.kind.name, np.ones(()))), 2.5), casts=True),
    _each("tl.div_rn", "tl.div_rn({0}, tl.abs({1}) + 1)", ("fp32",), lambda a, b: numbers.divide(a, numbers.add(_absolute(b), numbers.as_number("fp32", np.ones(()))), 0.5), same_shape=True, weight=0.3),
    Operation("//", elementwise(INTEGERS), _division("//"), lambda data, attrs, place: _integers(_quotient)(*data), operands(2, INTEGERS)),
    Operation("%", elementwise(INTEGERS), _division("%"), lambda data, attrs, place: _integers(_remainder)(*data), operands(2, INTEGERS)),
    _each("&", "{0} & {1}", ("i1", *INTEGERS), _integers(np.bitwise_and)),
    _each("|", "{0} | {1}", ("i1", *INTEGERS), _integers(np.bitwise_or)),
    _each("^", "{0} ^ {1}", ("i1", *INTEGERS), _integers(np.bitwise_xor)),
    _each("<<", "{0} << ({1} & {bits})", INTEGERS, _shift(np.left_shift)),
    _each(">>", "{0} >> ({1} & {bits})", INTEGERS, _shift(np.right_shift)),
    _each("tl.minimum", "tl.minimum({0}, {1})", NUMBERS, lambda a, b: numbers.extreme(a, b, False), casts=True),
    _each("tl.maximum", "tl.maximum({0}, {1})", NUMBERS, lambda a, b: numbers.extreme(a, b, True), casts=True),
    _each("unary -", "-{0}", NUMBERS, _minus, count=1, weight=0.5),
    _each("~", "~{0}", ("i1", *INTEGERS), _integers(np.bitwise_not), count=1, weight=0.5),
    _each("tl.abs", "tl.abs({0})", NUMBERS, _absolute, count=1, weight=0.5),
    _each("tl.fma", "tl.fma({0}, {1}, {2})", WIDE, _fused, count=3, same_shape=True),
    _each("tl.clamp", "tl.clamp({0}, tl.minimum({1}, {2}), tl.maximum({1}, {2}))", WIDE, _clamped, count=3, same_shape=True, weight=0.5),
    _each("tl.umulhi", "tl.umulhi({0}, {1})", ("u32", "u64"), _upper_half, same_shape=True, weight=0.5),
    _each("tl.floor", "tl.floor({0})", WIDE, _whole_number(np.floor), count=1, exact=True, weight=0.3),
    _each("tl.ceil", "tl.ceil({0})", WIDE, _whole_number(np.ceil), count=1, exact=True, weight=0.3),
    _each("call", "mix({0}, {1})", INTEGERS, _mix, same_shape=True, helpers=(MIX,), weight=0.5),
    *(_compare(symbol, function) for symbol, function in (
        ("<", np.less), ("<=", np.less_equal), (">", np.greater), (">=", np.greater_equal), ("==", np.equal),
        ("!=", np.not_equal))),
    *FUNCTIONS,
    Operation("tl.where", _where_types, template("tl.where({0}, {1}, {2})"), _choose, _propose_where, weight=3),
    Operation("cast", lambda types, attrs: (types[0].with_kind(attrs["to"]),), template("{0}.to({kind})"), _cast, _propose_cast, weight=5,
        tags=lambda types, attrs: (f"cast from {types[0].kind_name}", f"cast to {attrs['to']}")),
    Operation("bitcast", _bitcast_types, _bitcast_text, _bitcast, _propose_bitcast),
    Operation("literal", _literal_types, template("{0} {symbol} {literal}"), _literal, _propose_literal,
        tags=lambda types, attrs: (f"literal {attrs['symbol']}",)),
)  # fmt: skip
