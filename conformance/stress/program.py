"""The tree of a random program: statements in single static assignment, loops and branches with results."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from triton_porting_kit.conformance.types import KINDS, Kind


class Malformed(Exception):
    """A tree is no program: types do not fit, or a value is used where it is not there."""


class IllConditioned(Exception):
    """A program whose result is not defined well enough to compare it."""


@functools.cache
def _pointer_kind(name: str) -> Kind:
    """Pointers on the host: offsets in elements."""
    return Kind(name, "pointer", np.dtype("int64"), 64)


@dataclass(frozen=True)
class Type:
    """Of a value: an element type by name, and a shape; () is a scalar. Pointers to fp32 are ``*fp32``."""

    kind_name: str
    shape: tuple[int, ...] = ()

    @property
    def kind(self) -> Kind:
        return _pointer_kind(self.kind_name) if self.is_pointer else KINDS[self.kind_name]

    @property
    def is_pointer(self) -> bool:
        return self.kind_name[0] == "*"

    @property
    def pointee(self) -> str:
        """The type of the elements that a pointer points to."""
        return self.kind_name[1:]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    def with_kind(self, name: str) -> Type:
        return Type(name, self.shape)

    def with_shape(self, *shape: int) -> Type:
        return Type(self.kind_name, shape)


Attrs = Mapping[str, Any]


@dataclass(frozen=True)
class Let:
    """``outs = op(args)``: values are numbered."""

    outs: tuple[int, ...]
    op: str
    args: tuple[int, ...] = ()
    attrs: Attrs = field(default_factory=dict)


@dataclass(frozen=True)
class Carried:
    """A value that a loop changes: `param` is `initial` at first, then `next` of the turn before, also afterwards."""

    param: int
    initial: int
    next: int


STYLES = ("range", "stepped", "argument", "static", "scalar", "while", "halving")
"""How a loop counts: to a literal, in steps of two from three on, to an argument, unrolled, to a scalar of the
program, ``while`` to a literal, ``while`` a scalar of the program that is halved is not zero."""
BETWEEN = "between"
"""One more, which `conformance.stress.pointing` makes: from a scalar to another, in steps of a third or a literal."""


@dataclass(frozen=True)
class Loop:
    """A loop of a few turns. `index` is its counter, which the body may use: an i32, or of the type of `start`."""

    index: int
    style: str
    iterations: int
    """Turns; of those that a scalar counts, the largest number (a power of two, less one, but for ``between``)."""
    bound: int | None
    """The integer scalar of ``scalar`` and ``halving``; the end of ``between``."""
    carried: tuple[Carried, ...]
    body: tuple[Statement, ...]
    start: int | None = None
    """The first number of ``between``, of the same type as the end."""
    step: int | None = None
    """The steps of ``between``, of the same type, above zero; None: `stride`."""
    stride: int = 1
    """A literal, also below zero: only of literals does Triton see that they are."""


@dataclass(frozen=True)
class Merged:
    """A result of a branch."""

    out: int
    then: int
    other: int


@dataclass(frozen=True)
class Branch:
    """``if``: an i1 scalar decides at run time."""

    condition: int
    then: tuple[Statement, ...]
    other: tuple[Statement, ...]
    results: tuple[Merged, ...]


@dataclass(frozen=True)
class Store:
    """Every program of the grid stores a tile into its own part of an output of its own.

    `form`: ``plain``, ``spaced`` (every other element), ``permuted`` (scattered by an odd multiple) or ``reversed``.
    """

    number: int
    """Of the output."""
    value: int
    mask: int | None = None
    extents: tuple[int, ...] = ()
    """How much of the tile is stored."""
    form: str = "plain"


@dataclass(frozen=True)
class Atomic:
    """Programs of the grid combine elements of a tile into shared ones: `kind` is add, min, max, and, or, xor."""

    number: int
    value: int
    at: int
    """An integer tile of the same shape: where to, modulo `size`."""
    kind: str
    size: int
    mask: int | None = None


@dataclass(frozen=True)
class Fetch:
    """A load from whatever elements of a region a tile of pointers points to."""

    out: int
    pointer: int
    mask: int | None = None
    other: int | None = 0
    """What lanes get that the mask leaves out; None: nothing, and ``tl.where`` puts 0 there."""
    rest: int | None = None
    """A value that they get instead: a tile that broadcasts to that of the pointers."""


@dataclass(frozen=True)
class Put:
    """A store to, or an atomic operation on, whatever elements of a region a tile of pointers points to."""

    pointer: int
    value: int
    mask: int | None = None
    kind: str = "store"
    """Or that of an atomic operation: add, min, max, and, or, xor."""


Statement = Let | Loop | Branch | Store | Atomic | Fetch | Put
WRITES = (Store, Atomic, Put)
"""Statements that have an effect."""


@dataclass(frozen=True)
class Region:
    """An array that programs address freely. The kernel knows it by where element 0 would be, which it may not have.

    No two programs of the grid touch one element of it, unless all of them only load it or combine it atomically.
    """

    number: int
    kind: str
    flavour: str
    seed: int
    use: str = "load"
    """``load``: it is only loaded; ``store``: it is loaded and stored; or the kind of atomic operations on it."""
    origin: str = "literal"
    """How the kernel knows where element 0 is: by a ``literal``, or by an ``argument``."""
    low: int = 0
    """The first element that it has."""
    size: int = 1


PLACES = ("zones", "end", "start")
"""Where the arrays of a program lie: between guard zones, or at the end or the start of pages, beside one that may not
be touched."""


@dataclass(frozen=True)
class Program:
    """A whole program, and the grid that it runs on."""

    body: tuple[Statement, ...]
    grid: tuple[int, ...] = (1,)
    warps: int = 4
    seed: int = 0
    """It was made from."""
    regions: tuple[Region, ...] = ()
    """By number."""
    place: str = "zones"
    """One of `PLACES`."""

    @property
    def programs(self) -> int:
        return math.prod(self.grid)

    def position(self, program: int) -> tuple[int, int, int]:
        """``tl.program_id`` of the axes, of the program with a number."""
        x, y, _ = (*self.grid, 1, 1)[:3]
        return program % x, program // x % y, program // (x * y)


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements, those of bodies after the one that they are in."""
    for statement in body:
        yield statement
        match statement:
            case Loop():
                yield from walk(statement.body)
            case Branch():
                yield from walk(statement.then)
                yield from walk(statement.other)


def uses(statement: Statement) -> tuple[int, ...]:
    """The values that a statement itself reads, those of its body not."""
    match statement:
        case Let():
            return statement.args
        case Loop():
            counted = (v for v in (statement.start, statement.bound, statement.step) if v is not None)
            return (*counted, *(c.initial for c in statement.carried), *(c.next for c in statement.carried))
        case Branch():
            return (statement.condition, *(v for r in statement.results for v in (r.then, r.other)))
        case Store():
            return (statement.value, *(() if statement.mask is None else (statement.mask,)))
        case Atomic():
            return (statement.value, statement.at, *(() if statement.mask is None else (statement.mask,)))
        case Fetch():
            return (statement.pointer, *(v for v in (statement.mask, statement.rest) if v is not None))
        case Put():
            return (
                statement.pointer,
                statement.value,
                *(() if statement.mask is None else (statement.mask,)),
            )


def given_twice(program: Program) -> tuple[int, ...]:
    """The regions that the kernel is given as two arguments."""
    found = {s.attrs["region"] for s in walk(program.body) if isinstance(s, Let) and s.attrs.get("second")}
    return tuple(sorted(found))


def size_of(program: Program) -> int:
    """The number of statements."""
    return sum(1 for _ in walk(program.body))
