"""Reductions of a program, which shrinking tries: the most promising first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from triton_porting_kit.conformance.stress.oracle import fitted
from triton_porting_kit.conformance.stress.program import (
    BETWEEN,
    WRITES,
    Atomic,
    Branch,
    Fetch,
    IllConditioned,
    Let,
    Loop,
    Malformed,
    Program,
    Put,
    Statement,
    Store,
    Type,
    walk,
)
from triton_porting_kit.conformance.stress.rewriting import Body, changed, places, tidy, with_values
from triton_porting_kit.conformance.stress.source import parameters, source_of
from triton_porting_kit.conformance.stress.typing import Types, types_of

Cost = tuple[int, ...]


def cost(program: Program) -> Cost:
    """The cost that shrinking minimizes: statements, grid, elements, unusual contents, iterations, source length."""
    types = types_of(program)
    weight = sum(1 if isinstance(s, Let) and s.op == "tl.full" else 3 for s in walk(program.body))
    elements = sum(t.count for t in types.values())
    arrays = sum(p.size for p in parameters(program)) + sum(r.size for r in program.regions)
    strange = sum(p.flavour not in ("ones", "zeros", "") for p in parameters(program))
    strange += sum(r.flavour not in ("ones", "zeros") for r in program.regions) + (program.place != "zones")
    turns = sum(s.iterations for s in walk(program.body) if isinstance(s, Loop))
    return weight, program.programs, elements + arrays, strange, turns, len(source_of(program))


def smaller(program: Program) -> Iterator[Program]:
    """Candidates for a smaller program. Some are not valid programs."""
    types = types_of(program)
    yield from _single_results(program)
    yield from _without_chunks(program, types)
    yield from _flattened(program, types)
    yield from _substituted(program, types)
    yield from _grids(program)
    yield from _plainer_statements(program)
    yield from _smaller_shapes(program)
    yield from _plainer_types(program)


def candidates(program: Program) -> Iterator[Program]:
    """The candidates of `smaller` that are valid programs and cost less."""
    limit, seen = cost(program), set()
    for other in smaller(program):
        try:
            slim = fitted(tidy(other))
            price = cost(slim)
        except (IllConditioned, Malformed, ValueError, KeyError, IndexError):
            continue
        mark = (source_of(slim), slim.grid, slim.warps)
        if price < limit and any(isinstance(s, WRITES) for s in walk(slim.body)) and mark not in seen:
            seen.add(mark)
            yield slim


# --- fewer statements ----------------------------------------------------------------------------


def _single_results(program: Program) -> Iterator[Program]:
    """Keep a single store, or drop one."""
    stores = [place for place, s in places(program.body) if isinstance(s, WRITES)]
    if len(stores) < 2:
        return
    for kept in stores:
        body = program.body
        for place in reversed(stores):
            if place != kept:
                body = changed(body, place, lambda s: ())
        yield replace(program, body=body)
    for dropped in stores:
        yield replace(program, body=changed(program.body, dropped, lambda s: ()))


def constant(value: int, type_: Type, number: int = 1) -> Let:
    literal: Any = number / 1 if type_.kind.is_float else number
    return Let((value,), "tl.full", (), {"kind": type_.kind_name, "shape": type_.shape, "value": literal})


def _defined(statement: Statement) -> tuple[int, ...]:
    match statement:
        case Let():
            return statement.outs
        case Fetch():
            return (statement.out,)
        case Loop():
            return tuple(c.param for c in statement.carried)
        case Branch():
            return tuple(r.out for r in statement.results)
    return ()


def _constants(statement: Statement, types: Types, number: int = 1) -> Body:
    """Constants in place of the results of a statement, except for pointers."""
    return tuple(constant(v, types[v], number) for v in _defined(statement) if not types[v].is_pointer)


def _without_chunks(program: Program, types: Types) -> Iterator[Program]:
    """Replace runs of statements of the outermost body by constants."""
    body, size = program.body, len(program.body) // 2
    while size >= 1:
        for start in range(len(body) - size, -1, -size):
            chunk = body[start : start + size]
            constants = tuple(c for s in chunk if not _is_constant(s) for c in _constants(s, types))
            kept = tuple(s for s in chunk if _is_constant(s))
            yield replace(program, body=(*body[:start], *constants, *kept, *body[start + size :]))
        size //= 2


def _is_constant(statement: Statement) -> bool:
    return isinstance(statement, Let) and statement.op == "tl.full"


def _flattened(program: Program, types: Types) -> Iterator[Program]:
    """Replace a branch by one of its bodies, and a loop by nothing or by a single iteration."""
    for place, statement in places(program.body):
        if isinstance(statement, Branch):
            for part, inside in enumerate((statement.then, statement.other)):
                names = {r.out: (r.then, r.other)[part] for r in statement.results}
                body = changed(program.body, place, lambda s, inside=inside: inside)  # type: ignore[misc]
                yield replace(program, body=with_values(body, names))
        elif isinstance(statement, Loop):
            names = {c.param: c.initial for c in statement.carried}
            without = changed(program.body, place, lambda s: ())
            yield replace(program, body=with_values(without, names))
            index = constant(statement.index, types[statement.index])
            once = with_values(statement.body, names)
            after = {c.param: names.get(c.next, c.next) for c in statement.carried}
            body = changed(program.body, place, lambda s, i=index, once=once: (i, *once))  # type: ignore[misc]
            yield replace(program, body=with_values(body, after))


def _substituted(program: Program, types: Types) -> Iterator[Program]:
    """Replace a statement by one of its operands, by a constant, or its result by an older value."""
    for place, statement in reversed([*places(program.body)]):
        if isinstance(statement, Let) and not _is_constant(statement):
            for arg in dict.fromkeys(statement.args):
                if len(statement.outs) == 1 and types[arg] == types[statement.outs[0]]:
                    body = changed(program.body, place, lambda s: ())
                    yield replace(program, body=with_values(body, {statement.outs[0]: arg}))
        yield from _plain_pointers(program, types, place, statement)
        if not _is_constant(statement) and not isinstance(statement, WRITES):
            for number in (1, 0):
                constants = _constants(statement, types, number)
                yield replace(program, body=changed(program.body, place, lambda s, c=constants: c))  # type: ignore[misc]
        if isinstance(statement, Let):
            yield from _other_operands(program, types, statement)


def _plain_pointers(
    program: Program, types: Types, place: tuple[int, ...], statement: Statement
) -> Iterator[Program]:
    """Replace a statement that computes pointers from pointers by the addresses of the first elements of an array."""
    pointers = [v for v in _defined(statement) if types[v].is_pointer]
    if not pointers or (isinstance(statement, Let) and statement.op == "address"):
        return
    new = max(types) + 1
    for region in program.regions:
        made: list[Statement] = []
        for value in pointers:
            own = types[value]
            if own.pointee != region.kind:
                break
            attrs = {"region": region.number, "kind": region.kind, "second": False}
            if own.rank == 1:
                made.append(Let((new,), "tl.arange", (), {"start": 0, "size": own.count}))
            else:
                made.append(constant(new, Type("i32", own.shape), 0))
            made.append(Let((value,), "address", (new,), attrs))
            new += 1
        else:
            rest = _constants(statement, types)
            yield replace(program, body=changed(program.body, place, lambda s, m=(*made, *rest): m))  # type: ignore[misc]


def _other_operands(program: Program, types: Types, let: Let) -> Iterator[Program]:
    """Replace all uses of a result by an older value of the same type."""
    if len(let.outs) == 1:
        older = [v for v in types if v < let.outs[0] and types[v] == types[let.outs[0]] and v not in let.args]
        for value in older[-3:]:
            yield replace(program, body=with_values(program.body, {let.outs[0]: value}))


# --- simpler statements --------------------------------------------------------------------------------


def _grids(program: Program) -> Iterator[Program]:
    for grid in ((1,), (2,), program.grid[:1], program.grid[:2], tuple(min(n, 2) for n in program.grid)):
        if grid != program.grid:
            yield replace(program, grid=grid)
            yield replace(program, grid=grid, body=tuple(_without_axes(program.body)))


def _without_axes(body: Body) -> Iterator[Statement]:
    for statement in body:
        if isinstance(statement, Let) and statement.op == "load":
            yield _with_attrs(statement, axes=(None,) * len(statement.attrs["tile"]))
        else:
            yield statement


def _with_attrs(let: Let, **attrs: Any) -> Let:
    return replace(let, attrs={**let.attrs, **attrs})


_PLAINER_REGIONS: tuple[dict[str, Any], ...] = (
    {"flavour": "zeros", "seed": 0}, {"flavour": "ones", "seed": 0}, {"flavour": "index", "seed": 0},
    {"origin": "literal"},
)  # fmt: skip


def _plainer_statements(program: Program) -> Iterator[Program]:
    for place, statement in places(program.body):
        for other in _plainer(statement):
            yield replace(program, body=changed(program.body, place, lambda s, o=other: (o,)))  # type: ignore[misc]
    if program.warps != 4:
        yield replace(program, warps=4)
    if program.place != "zones":
        yield replace(program, place="zones")
    for at, region in enumerate(program.regions):
        for change in _PLAINER_REGIONS:
            plain = replace(region, **change)
            yield replace(program, regions=(*program.regions[:at], plain, *program.regions[at + 1 :]))


def _plainer(statement: Statement) -> Iterator[Statement]:
    match statement:
        case Let(op="load"):
            attrs = statement.attrs
            size = attrs["tile"]
            plain = {"extents": size, "strides": contiguous(size), "axes": (None,) * len(size)}
            yield replace(_with_attrs(statement, **plain), args=())
            yield replace(statement, args=())
            for key, value in plain.items():
                yield _with_attrs(statement, **{key: value})
            yield _with_attrs(statement, strides=contiguous(attrs["extents"]))
            yield from _contents(statement)
        case Let(op="gathered load"):
            yield replace(statement, args=statement.args[:1])
            for size in (1, 2, 8):
                if size < statement.attrs["size"]:
                    yield _with_attrs(statement, size=size)
            yield from _contents(statement)
        case Let(op="address") if statement.attrs["second"]:
            yield _with_attrs(statement, second=False)
        case Let(op="literal"):
            yield _with_attrs(statement, literal=1)
        case Let() if statement.attrs.get("keep_dims") or statement.attrs.get("reverse"):
            yield replace(statement, attrs={**statement.attrs, "reverse": False})
        case Loop():
            for iterations in (1, 2, statement.iterations - 1):
                counted = statement.bound is None or statement.style == BETWEEN
                if 0 < iterations < statement.iterations and (counted or iterations in (1, 3)):
                    yield replace(statement, iterations=iterations)
            if statement.step is not None:
                yield replace(statement, step=None)
            if statement.stride != 1:
                yield replace(statement, stride=1)
            if statement.style != "range":
                simple = replace(statement, style="range", start=None, bound=None, step=None, stride=1)
                for iterations in {min(statement.iterations, 3), 2, 1}:
                    yield replace(simple, iterations=iterations)
        case Store():
            yield replace(statement, mask=None)
            yield replace(statement, form="plain")
        case Atomic():
            yield replace(statement, mask=None)
            yield replace(statement, size=1)
        case Fetch() | Put():
            if isinstance(statement, Fetch):
                yield replace(statement, mask=None, rest=None)
                yield replace(statement, rest=None)
                yield replace(statement, other=0)
            else:
                yield replace(statement, mask=None)


def _contents(let: Let) -> Iterator[Let]:
    for flavour in ("zeros", "ones", "small"):
        if let.attrs["flavour"] != flavour:
            yield _with_attrs(let, flavour=flavour, seed=0)


def contiguous(extents: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a contiguous row-major array."""
    return tuple(math.prod(extents[d + 1 :]) for d in range(len(extents)))


def _smaller_shapes(program: Program) -> Iterator[Program]:
    """Shrink all dimensions of one size at once, and the extents of stores."""
    sizes = {n for t in types_of(program).values() for n in t.shape if n > 1}
    for size in sorted(sizes, reverse=True):
        for other in sorted({1, 2, 4, size // 4, size // 2}):
            if 0 < other < size:
                yield resized(program, {size: other})
                if size * size in sizes:  # the size of a flattened square
                    yield resized(program, {size: other, size * size: other * other})
    for size in sorted(sizes):
        for larger in sizes:  # the size of a flattened tile
            if larger > size and larger // 2 not in sizes:
                yield resized(program, {size: size // 2, larger: larger // 2})
    for place, statement in places(program.body):
        if isinstance(statement, Store):
            for d, extent in enumerate(statement.extents):
                extents = (*statement.extents[:d], 1, *statement.extents[d + 1 :])
                other_store = replace(statement, extents=extents)
                if extent > 1:
                    yield replace(program, body=changed(program.body, place, lambda s, o=other_store: (o,)))  # type: ignore[misc]


def resized(program: Program, sizes: Mapping[int, int]) -> Program:
    """Replace sizes of dimensions wherever they occur. Raises `Malformed`."""
    types = types_of(program)

    def shape(old: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sizes.get(n, n) for n in old)

    def let(s: Let) -> Let:
        attrs = dict(s.attrs)
        for key in ("shape", "tile"):
            if key in attrs:
                attrs[key] = shape(attrs[key])
        if s.op == "load":
            attrs["extents"] = tuple(
                max(e * new // old, 1)
                for e, old, new in zip(attrs["extents"], s.attrs["tile"], attrs["tile"], strict=True)
            )
            attrs["strides"] = contiguous(attrs["extents"])
        if s.op == "tl.arange":
            attrs["size"] = sizes.get(attrs["size"], attrs["size"])
        if "bins" in attrs:
            attrs["bins"] = sizes.get(attrs["bins"], attrs["bins"])
        return replace(s, attrs=attrs)

    def body(statements: Body) -> Body:
        return tuple(statement(s) for s in statements)

    def statement(s: Statement) -> Statement:
        match s:
            case Let():
                return let(s)
            case Loop():
                return replace(s, body=body(s.body))
            case Branch():
                return replace(s, then=body(s.then), other=body(s.other))
            case Store():
                old = types[s.value].shape
                extents = tuple(
                    max(e * new // n, 1) for e, n, new in zip(s.extents, old, shape(old), strict=True)
                )
                return replace(s, extents=extents)
        return s

    return replace(program, body=body(program.body))


def _plainer_types(program: Program) -> Iterator[Program]:
    """Replace an element type by i32 or fp32 everywhere."""
    kinds = {t.kind_name for t in types_of(program).values()}
    for kind in sorted(kinds - {"i1", "i32", "fp32"}):
        other = "i32" if kind[0] in "iu" else "fp32"

        def renamed(s: Statement, kind: str = kind, other: str = other) -> Body:
            if not isinstance(s, Let):
                return (s,)
            attrs = {k: other if v == kind else v for k, v in s.attrs.items()}
            return (replace(s, attrs=attrs),)

        body = program.body
        for place, _ in [*places(program.body)]:
            body = changed(body, place, renamed) if not _has_body(body, place) else body
        regions = tuple(replace(r, kind=other) if r.kind == kind else r for r in program.regions)
        yield replace(program, body=body, regions=regions)


def _has_body(body: Body, place: tuple[int, ...]) -> bool:
    return any(p == place and isinstance(s, Loop | Branch) for p, s in places(body))
