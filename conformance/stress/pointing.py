"""Moves of the address family about pointers: selected by branches or per lane, rearranged, exchanged by loops.

Other moves: loads with a tile as `other`; one array passed as two arguments, loaded through one and stored at shifted
positions through the other; loops whose start, end and step are known at run time only.
"""

from __future__ import annotations

import math
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from triton_porting_kit.conformance.stress.counting import counting
from triton_porting_kit.conformance.stress.indices import COMPARISONS
from triton_porting_kit.conformance.stress.moves import (
    Undone,
    address,
    by,
    cast,
    compared,
    fetch,
    let,
    literal,
    loads,
    move,
    near,
    side,
    sure,
    whole,
)
from triton_porting_kit.conformance.stress.numbers import as_number
from triton_porting_kit.conformance.stress.operations.base import INTEGERS
from triton_porting_kit.conformance.stress.program import (
    Branch,
    Carried,
    Fetch,
    Loop,
    Merged,
    Put,
    Region,
    Type,
)
from triton_porting_kit.conformance.types import KINDS

if TYPE_CHECKING:
    from triton_porting_kit.conformance.stress.addresses import Addresses, Move


def _index(builder: Addresses) -> int:
    return side(builder) if builder.draws.chance(0.3) else whole(builder)


def _mask(builder: Addresses, index: int, chance: float = 0.5) -> int | None:
    """With a probability, a mask: a comparison of the index, or an existing boolean."""
    draws = builder.draws
    if not draws.chance(chance):
        return None
    if draws.chance(0.5):
        return compared(builder, index, draws.choose(COMPARISONS), near(builder, index))
    return builder.mask_of(builder.types[index].shape)


def _partner(builder: Addresses, region: Region) -> Region:
    """Another array of the same type, or the same one."""
    draws = builder.draws
    if draws.chance(0.35):
        return region
    return builder.shared.region(region.kind, region.flavour, draws.below(1 << 30), use=region.use)


# --- choices -------------------------------------------------------------------------------------


@move
def by_branch(builder: Addresses) -> None:
    """Pointers that an ``if`` selects: into two arrays, or to two positions in one."""
    draws, index = builder.draws, _index(builder)
    first = loads(builder)
    regions = [first, _partner(builder, first)]
    scalars = draws.chance(0.5)
    condition = sure(builder.condition())
    bodies = [builder.nested(), builder.nested()]
    ends = []
    for inner, region in zip(bodies, regions, strict=True):
        place = draws.choose((0, 0, 1, -3, 16, 100))
        if scalars:
            at = let(inner, "tl.full", kind=builder.types[index].kind_name, shape=(), value=place)
        else:
            at = literal(inner, index, "+", place) if place else index
            at = literal(inner, at, "*", 2) if draws.chance(0.3) else at
        ends.append(address(inner, at, region))
    merged = Merged(builder.shared.value(), *ends)
    if not builder.add(Branch(condition, tuple(bodies[0].body), tuple(bodies[1].body), (merged,))):
        raise Undone
    pointer = let(builder, "advance", merged.out, index) if scalars else merged.out
    fetch(builder, pointer, _mask(builder, index))
    if first.use == "store" and draws.chance(0.7):
        _store(builder, pointer, index)


def _store(builder: Addresses, pointer: int, index: int) -> None:
    """Store a value of the element type through pointers."""
    kind = builder.types[pointer].pointee
    value = builder.any(lambda t: t == Type(kind, builder.types[pointer].shape))
    value = cast(builder, index, kind) if value is None and kind != "i1" else value
    if value is None or not builder.attempt_put(Put(pointer, value, _mask(builder, index))):
        raise Undone


@move
def by_lanes(builder: Addresses) -> None:
    """Pointers that ``tl.where`` selects, per lane or all at once: into two arrays, or to two positions in one."""
    draws, index = builder.draws, _index(builder)
    first = loads(builder)
    second = _partner(builder, first)
    other = (
        by(builder, index, draws.choose("+-*"), draws.choose((1, 2, 3, 16))) if draws.chance(0.7) else index
    )
    pointers = [address(builder, index, first), address(builder, other, second)]
    if draws.chance(0.25):
        condition = sure(builder.condition())
    else:
        condition = compared(builder, index, draws.choose(COMPARISONS), near(builder, index))
    pointer = let(builder, "tl.where", condition, *pointers)
    fetch(builder, pointer, _mask(builder, index))


# --- rearranged ----------------------------------------------------------------------------------


def _way(builder: Addresses, shape: tuple[int, ...]) -> tuple[str, dict[str, Any]]:
    """Draw an operation that rearranges the elements of a tile of a shape, and its attributes."""
    draws, count = builder.draws, math.prod(shape)
    ways = ["tl.reshape"]
    ways += ["tl.trans", "tl.permute", "tl.permute"] if len(shape) == 2 else []
    ways += ["tl.expand_dims", "[:, None]"] if len(shape) == 1 else []
    ways += ["tl.broadcast_to", "tl.broadcast_to"] if 1 in shape else []
    ways += ["tl.permute"] if len(shape) == 3 else []
    match draws.choose(ways):
        case "tl.reshape":
            sizes = [1 << k for k in range(count.bit_length()) if count % (1 << k) == 0]
            rows = draws.choose(sizes)
            some = [(count,), (rows, count // rows), (rows, count // rows)]
            some += [(2, rows // 2, count // rows)] if rows > 1 else []
            return "tl.reshape", {"shape": draws.choose([s for s in some if s != shape] or some)}
        case "tl.permute":
            order = draws.permutation(len(shape))
            return "tl.permute", {"order": order if list(order) != sorted(order) else order[::-1]}
        case "tl.broadcast_to":
            to = tuple(draws.choose((2, 4, 8)) if n == 1 else n for n in shape)
            return "tl.broadcast_to", {"shape": to}
        case "tl.trans":
            return "tl.trans", {}
        case way:
            return way, {"axis": draws.below(2)}


@move
def rearranged(builder: Addresses) -> None:
    """Pointers that are reshaped, permuted, broadcast, joined or split before use."""
    draws, index = builder.draws, _index(builder)
    if draws.chance(0.3) and len(builder.tile) == 1:
        index = by(builder, index, "%", max(builder.tile[0] - draws.between(0, 3), 2))
    region = loads(builder)
    pointer = address(builder, index, region)
    for _ in range(draws.choose((1, 1, 2, 3))):
        shape = builder.types[pointer].shape
        if draws.chance(0.2) and len(shape) < 3:
            far = literal(builder, index, "+", draws.choose((1, 16, math.prod(shape))))
            other = address(builder, far, _partner(builder, region))
            for name, *args in (("tl.join", pointer, other), ("tl.join", index, far)):
                found = let(builder, name, *args)
                pointer, index = (found, index) if args[0] == pointer else (pointer, found)
        elif draws.chance(0.3) and shape and shape[-1] == 2 and len(shape) > 1:
            which = draws.below(2)
            pointer, index = (let(builder, "tl.split", v) + which for v in (pointer, index))
        else:
            name, attrs = _way(builder, shape)
            pointer, index = (let(builder, name, v, **attrs) for v in (pointer, index))
    mask = None
    if draws.chance(0.6):
        mask = compared(builder, index, draws.choose(COMPARISONS), near(builder, index))
    if region.use == "store" and draws.chance(0.5):
        value = cast(builder, index, region.kind)
        if not builder.attempt_put(Put(pointer, value, mask)):
            raise Undone
        return
    loaded = fetch(builder, pointer, mask)
    shape = builder.types[loaded].shape
    if shape != builder.tile and math.prod(shape) == math.prod(builder.tile) and draws.chance(0.5):
        let(builder, "tl.reshape", loaded, shape=builder.tile)


# --- elsewhere -----------------------------------------------------------------------------------


@move
def elsewhere(builder: Addresses) -> None:
    """A load whose `other` is a tile: an existing value, computed, loaded, a broadcast row or column, or a scalar."""
    draws, index = builder.draws, _index(builder) if builder.draws.chance(0.3) else whole(builder)
    shape = builder.types[index].shape
    region = loads(builder)
    kind = region.kind
    pointer = address(builder, index, region)
    mask = compared(builder, index, draws.choose(COMPARISONS), near(builder, index))
    if draws.chance(0.3):
        mask = builder.attempt("&", mask, sure(builder.mask_of(shape))) or mask

    def fits(t: Type) -> bool:
        return t.kind_name == kind and t.rank in (0, len(shape)) and all(map(_goes, t.shape, shape))

    rest = None
    match draws.weighted(
        (("found", 2.0), ("loaded", 3.0), ("computed", 2.0), ("line", 4.0), ("scalar", 1.0))
    ):
        case "found":
            rest = builder.any(fits)
        case "loaded":
            own = builder.shared.region(kind, region.flavour, draws.below(1 << 30))
            at = side(builder) if len(shape) == 2 and draws.chance(0.5) else index
            rest = fetch(builder, address(builder, at, own), None)
        case "line":
            rest = cast(builder, side(builder), kind)
        case "scalar":
            rest = let(builder, "tl.full", kind=kind, shape=(), value=draws.choose((0, 1)))
            rest = let(builder, "tl.broadcast_to", rest, shape=shape) if shape and draws.chance(0.5) else rest
    if rest is None:
        rest = cast(builder, literal(builder, index, "*", draws.choose((1, 3))), kind)
    if not builder.add(Fetch(builder.shared.value(), pointer, mask, 0, rest)):
        raise Undone


def _goes(own: int, to: int) -> bool:
    """Whether a dimension broadcasts to another."""
    return own in (1, to)


# --- one array as two arguments ------------------------------------------------------------------


@move
def shifted(builder: Addresses) -> None:
    """One array passed as two arguments: a tile is loaded through one and stored, shifted, through the other."""
    draws = builder.draws
    kind = draws.choose([k for k in ("i32", "i32", "fp32", "i64") if k in builder.vocabulary])
    region = builder.shared.region(kind, "small", draws.below(1 << 30), use="store")
    count = draws.choose((8, 16, 32, 64))
    index = let(builder, "tl.arange", start=0, size=count)
    turns = draws.choose((0, 0, 2, 3))
    if builder.program.programs > 1:
        number = let(builder, "tl.program_id", axis=0)
        if len(builder.grid) > 1:
            across = literal(builder, let(builder, "tl.program_id", axis=1), "*", builder.grid[0])
            number = let(builder, "+", number, across)
        index = let(builder, "+", index, literal(builder, number, "*", count * (turns + 2)))
    by_how_many = draws.choose((1, 1, -1, 2, -2, 3, count // 2, -count // 2))
    which = draws.chance(0.5)

    def moved(inner: Addresses, at: int) -> None:
        """Load a tile, and store a function of it at shifted positions."""
        pointer = let(inner, "address", at, region=region.number, kind=kind, second=which)
        loaded = fetch(inner, pointer, _mask(inner, at, 0.3))
        value = literal(inner, loaded, "+", 1)
        there = by(inner, at, "+", by_how_many)
        place = let(inner, "address", there, region=region.number, kind=kind, second=not which)
        if not inner.add(Put(place, value, _mask(inner, at, 0.4))):
            raise Undone
        if draws.chance(0.4):
            fetch(inner, pointer)

    if not turns:
        moved(builder, index)
        return
    inner, counter = builder.nested(), builder.shared.value()
    inner.define(counter, Type("i32"), lambda environment: as_number("i32", np.zeros((), np.int32)))
    moved(inner, let(inner, "+", index, literal(inner, counter, "*", count)))
    style = draws.choose(("range", "argument", "while"))
    if not builder.add(Loop(counter, style, turns, None, (), tuple(inner.body))):
        raise Undone


# --- loops ---------------------------------------------------------------------------------------


@move
def exchanged(builder: Addresses) -> None:
    """A loop that exchanges two pointers and often advances one of them."""
    draws, index = builder.draws, _index(builder)
    first = builder.region(
        draws.choose([k for k in ("i32", "fp32", "i64") if k in builder.vocabulary]), ("load",)
    )
    far = literal(builder, index, "+", draws.choose((1, 3, 16, 64)))
    starts = [address(builder, index, first), address(builder, far, _partner(builder, first))]
    held = let(builder, "tl.full", kind=first.kind, shape=builder.types[index].shape, value=0)
    inner, counter = builder.nested(), builder.shared.value()
    inner.define(counter, Type("i32"), lambda environment: as_number("i32", np.zeros((), np.int32)))
    params = []
    for value in (*starts, held):
        params.append(builder.shared.value())
        inner.define(params[-1], builder.types[value], itemgetter(value))
    loaded = fetch(inner, params[0], _mask(inner, index, 0.4))
    total = let(inner, "+", literal(inner, params[2], "*", 3), loaded)
    after = params[1]
    if draws.chance(0.6):
        after = let(inner, "step", after, step=draws.choose((1, 2, -1)))
    changes = zip(params, (*starts, held), (after, params[0], total), strict=True)
    carried = tuple(Carried(*change) for change in changes)
    style = draws.choose(("range", "argument", "while"))
    if not builder.add(Loop(counter, style, draws.between(2, 4), None, carried, tuple(inner.body))):
        raise Undone


@move
def counted(builder: Addresses) -> None:
    """A loop between run-time bounds that loads at its counter, or through a pointer that advances with the counter."""
    draws, index = builder.draws, _index(builder)
    kind = draws.choose([k for k in ("i32", "i64") if k in builder.vocabulary])
    index = cast(builder, index, kind)
    counts = counting(builder, kind)
    held = builder.any(
        lambda t: t.shape == builder.types[index].shape and t.kind_name not in ("i1", "i8", "u8")
    )
    held = index if held is None else held
    region = builder.region(builder.types[held].kind_name, ("load", "load", "store"))
    origin = address(builder, index, region) if draws.chance(0.3) else None
    inner, counter = builder.nested(), builder.shared.value()
    inner.define(counter, Type(kind), itemgetter(counts.start))
    total = builder.shared.value()
    inner.define(total, builder.types[held], itemgetter(held))
    carried = []
    if origin is not None:  # a pointer that advances with the counter
        pointer = builder.shared.value()
        inner.define(pointer, builder.types[origin], itemgetter(origin))
        if counts.step is None:
            after = let(inner, "step", pointer, step=counts.stride)
        else:
            after = let(inner, "advance", pointer, counts.step)
        carried.append(Carried(pointer, origin, after))
        at = let(inner, "+", index, counter)
    else:
        scaled = counter
        if counts.far:
            scaled = literal(inner, counter, ">>", KINDS[kind].bits - 4)
        elif draws.chance(0.4):
            scaled = by(inner, counter, "*", draws.choose((1, 2, 3, -1)))
        at = let(inner, draws.choose("++-"), index, scaled)
        pointer = address(inner, at, region)
    mask = _mask(inner, at, 0.7)
    loaded = fetch(inner, pointer, mask)
    both = let(inner, draws.choose(("+", "-", "tl.maximum")), total, loaded)
    if region.use == "store" and draws.chance(0.5):
        inner.attempt_put(Put(pointer, both, mask))
    carried.append(Carried(total, held, both))
    if builder.types[held].kind_name in INTEGERS and draws.chance(0.3):
        builder.kept = (*builder.kept, total)
    if not builder.add(counts.loop(counter, tuple(carried), tuple(inner.body))):
        raise Undone


POINTING: tuple[tuple[Move, float], ...] = (
    (by_branch, 3.0),
    (by_lanes, 2.0),
    (rearranged, 4.5),
    (elsewhere, 3.0),
    (shifted, 2.0),
    (exchanged, 1.5),
    (counted, 5.0),
)
