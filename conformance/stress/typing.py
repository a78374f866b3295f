"""Type checking of programs."""

from __future__ import annotations

from triton_porting_kit.conformance.stress.operations import OPERATIONS
from triton_porting_kit.conformance.stress.operations.base import INTEGERS, joint, need
from triton_porting_kit.conformance.stress.program import (
    BETWEEN,
    STYLES,
    Atomic,
    Branch,
    Fetch,
    Let,
    Loop,
    Program,
    Put,
    Statement,
    Store,
    Type,
)

ATOMIC_TYPES = ("i32", "i64", "u32", "u64")
ATOMICS = ("add", "min", "max", "and", "or", "xor")
Types = dict[int, Type]


def types_of(program: Program) -> Types:
    """The types of the values of all bodies. Raises `Malformed` for an invalid program."""
    every: Types = {}
    _body(program.body, {}, every)
    return every


def check_statement(statement: Statement, scope: Types, every: Types) -> None:
    """Check one statement, and add the types of its results to its scope and to `every`. Raises `Malformed`."""
    match statement:
        case Let():
            types = OPERATIONS[statement.op].infer(_read(scope, *statement.args), statement.attrs)
            need(len(types) == len(statement.outs))
            for out, type_ in zip(statement.outs, types, strict=True):
                _define(out, type_, scope, every)
        case Loop():
            _loop(statement, scope, every)
        case Branch():
            need(_read(scope, statement.condition) == (Type("i1"),))
            then, other = {**scope}, {**scope}
            _body(statement.then, then, every)
            _body(statement.other, other, every)
            for merged in statement.results:
                (type_,) = _read(then, merged.then)
                need(_read(other, merged.other) == (type_,))
                _define(merged.out, type_, scope, every)
        case Store():
            (type_,) = _read(scope, statement.value)
            need(len(statement.extents) == type_.rank)
            need(all(0 < e <= s for e, s in zip(statement.extents, type_.shape, strict=True)))
            _masked(statement.mask, type_, scope)
        case Atomic():
            value, at = _read(scope, statement.value, statement.at)
            need(value.kind_name in ATOMIC_TYPES and at.kind_name in INTEGERS and value.shape == at.shape)
            need(statement.kind in ATOMICS and statement.size > 0)
            _masked(statement.mask, value, scope)
        case Fetch():
            (pointer,) = _read(scope, statement.pointer)
            need(pointer.is_pointer)
            need(not pointer.is_block or (statement.mask, statement.other) == (None, 0))
            _fits(pointer, (statement.mask,), scope)
            if statement.rest is not None:
                (rest,) = _read(scope, statement.rest)
                need(statement.mask is not None and rest.kind_name == pointer.pointee)
                need(joint((pointer, rest)) == pointer.shape)
            _define(statement.out, pointer.with_kind(pointer.pointee), scope, every)
        case Put():
            pointer, value = _read(scope, statement.pointer, statement.value)
            need(pointer.is_pointer and pointer.pointee == value.kind_name)
            need(not pointer.is_block or (statement.mask, statement.kind) == (None, "store"))
            need(not pointer.is_block or pointer.shape == value.shape)
            need(statement.kind == "store" or (statement.kind in ATOMICS and value.kind_name in ATOMIC_TYPES))
            _fits(pointer, (statement.value, statement.mask), scope)


def _loop(loop: Loop, scope: Types, every: Types) -> None:
    need(loop.style in (*STYLES, BETWEEN) and loop.iterations >= 0)
    counter = Type("i32")
    if loop.style == BETWEEN:
        counts = _read(scope, *(v for v in (loop.start, loop.bound, loop.step) if v is not None))
        need(loop.start is not None and loop.bound is not None and loop.stride != 0)
        need(len({*counts}) == 1 and counts[0] in (Type("i32"), Type("i64")))
        counter = counts[0]
    elif loop.bound is not None:
        (bound,) = _read(scope, loop.bound)
        need(bound.rank == 0 and bound.kind_name in INTEGERS)
    else:
        need(loop.style not in ("scalar", "halving"))
    inner = {**scope}
    _define(loop.index, counter, inner, every)
    for carried in loop.carried:
        (type_,) = _read(scope, carried.initial)
        _define(carried.param, type_, inner, every)
    _body(loop.body, inner, every)
    for carried in loop.carried:
        need(_read(inner, carried.next) == (every[carried.param],))
        scope[carried.param] = every[carried.param]


def _body(body: tuple[Statement, ...], scope: Types, every: Types) -> None:
    for statement in body:
        check_statement(statement, scope, every)


def _read(scope: Types, *values: int) -> tuple[Type, ...]:
    need(all(v in scope for v in values), "a value that is not in scope")
    return tuple(scope[v] for v in values)


def _define(value: int, type_: Type, scope: Types, every: Types) -> None:
    need(value not in every, "a value that is defined twice")
    scope[value] = every[value] = type_


def _fits(pointer: Type, values: tuple[int | None, ...], scope: Types) -> None:
    """Require that the last value is a mask, and that all values broadcast to the pointers' shape."""
    given = _read(scope, *(v for v in values if v is not None))
    need(values[-1] is None or given[-1].kind_name == "i1")
    need(joint((pointer, *given)) == pointer.shape)


def _masked(mask: int | None, type_: Type, scope: Types) -> None:
    if mask is not None:
        need(_read(scope, mask) == (type_.with_kind("i1"),))
