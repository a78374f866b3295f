"""Transformations of a program's tree: replacing values, and dead code elimination."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from triton_porting_kit.conformance.stress.program import (
    Atomic,
    Branch,
    Carried,
    Fetch,
    Let,
    Loop,
    Merged,
    Program,
    Put,
    Statement,
    Store,
    uses,
    walk,
)

Body = tuple[Statement, ...]


def with_values(body: Body, other: Mapping[int, int]) -> Body:
    """Replace values by others wherever a body reads them. `other` maps old values to new ones."""

    def of(value: int) -> int:
        seen = set()
        while value in other and value not in seen:
            seen.add(value)
            value = other[value]
        return value

    def maybe(value: int | None) -> int | None:
        return None if value is None else of(value)

    def statement(s: Statement) -> Statement:
        match s:
            case Let():
                return replace(s, args=tuple(of(v) for v in s.args))
            case Loop():
                carried = tuple(Carried(c.param, of(c.initial), of(c.next)) for c in s.carried)
                inside = tuple(statement(inner) for inner in s.body)
                counted = replace(s, start=maybe(s.start), bound=maybe(s.bound), step=maybe(s.step))
                return replace(counted, carried=carried, body=inside)
            case Branch():
                results = tuple(Merged(r.out, of(r.then), of(r.other)) for r in s.results)
                then, rest = (tuple(statement(inner) for inner in part) for part in (s.then, s.other))
                return replace(s, condition=of(s.condition), then=then, other=rest, results=results)
            case Store():
                return replace(s, value=of(s.value), mask=maybe(s.mask))
            case Atomic():
                return replace(s, value=of(s.value), at=of(s.at), mask=maybe(s.mask))
            case Fetch():
                return replace(s, pointer=of(s.pointer), mask=maybe(s.mask), rest=maybe(s.rest))
            case Put():
                return replace(s, pointer=of(s.pointer), value=of(s.value), mask=maybe(s.mask))

    return tuple(statement(s) for s in body)


def tidy(program: Program) -> Program:
    """Remove dead statements, and regions that nothing addresses."""
    body = _alive(program.body, set())
    used = {s.attrs["region"] for s in walk(body) if isinstance(s, Let) and s.op == "address"}
    return replace(program, body=body, regions=tuple(r for r in program.regions if r.number in used))


def _alive(body: Body, wanted: set[int]) -> Body:
    """The statements that store or that `wanted` values depend on. Adds the values that these read to `wanted`."""
    kept: list[Statement] = []
    for statement in reversed(body):
        match statement:
            case Let():
                if not wanted.intersection(statement.outs):
                    continue
            case Fetch():
                if statement.out not in wanted:
                    continue
            case Loop():
                slim = _loop(statement, wanted)
                if slim is None:
                    continue
                statement = slim
            case Branch():
                results = tuple(r for r in statement.results if r.out in wanted)
                then_wanted, other_wanted = {r.then for r in results}, {r.other for r in results}
                then, other = _alive(statement.then, then_wanted), _alive(statement.other, other_wanted)
                if not (results or then or other):
                    continue
                wanted |= then_wanted | other_wanted
                statement = Branch(statement.condition, then, other, results)
        wanted.update(uses(statement))
        kept.append(statement)
    return tuple(reversed(kept))


def _loop(loop: Loop, wanted: set[int]) -> Loop | None:
    """Remove unused carried values and dead statements from a loop. Returns None if nothing remains."""
    needed = {c.param for c in loop.carried if c.param in wanted}
    while True:
        carried = tuple(c for c in loop.carried if c.param in needed)
        inside = {c.next for c in carried}
        body = _alive(loop.body, inside)
        more = {c.param for c in loop.carried if c.param in inside} - needed
        if not more:
            break
        needed |= more
    if not (carried or body):
        return None
    wanted |= inside
    return replace(loop, carried=carried, body=body)


Place = tuple[int, ...]
"""The path to a statement: its index in the outermost body, then for each nested body the part (0, or 1 for ``else``)
and the index in it."""


def places(body: Body, before: Place = ()) -> Iterable[tuple[Place, Statement]]:
    """Every statement and its path."""
    for index, statement in enumerate(body):
        yield (*before, index), statement
        match statement:
            case Loop():
                yield from places(statement.body, (*before, index, 0))
            case Branch():
                yield from places(statement.then, (*before, index, 0))
                yield from places(statement.other, (*before, index, 1))


def changed(body: Body, place: Place, change: Callable[[Statement], Body]) -> Body:
    """Replace one statement of a body by the statements that `change` returns."""
    index, rest = place[0], place[1:]
    statement = body[index]
    if not rest:
        return (*body[:index], *change(statement), *body[index + 1 :])
    part, inner = rest[0], rest[1:]
    match statement:
        case Loop():
            new: Statement = replace(statement, body=changed(statement.body, inner, change))
        case Branch() if part == 0:
            new = replace(statement, then=changed(statement.then, inner, change))
        case Branch():
            new = replace(statement, other=changed(statement.other, inner, change))
        case _:
            raise AssertionError("a path into a statement that has no body")
    return (*body[:index], new, *body[index + 1 :])
