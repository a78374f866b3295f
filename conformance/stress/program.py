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
    """A tree is not a valid program: types do not match, or a value is used outside its scope."""


class IllConditioned(Exception):
    """The result of a program is undefined, or too inexact to compare."""


@functools.cache
def _pointer_kind(name: str) -> Kind:
    """The kind of pointers on the host: 64-bit offsets in elements."""
    return Kind(name, "pointer", np.dtype("int64"), 64)


@dataclass(frozen=True)
class Type:
    """The type of a value: the name of an element type, and a shape. () is a scalar; ``*fp32`` is a pointer to fp32,
    and ``@fp32`` a block of a tensor descriptor of fp32."""

    kind_name: str
    shape: tuple[int, ...] = ()

    @property
    def kind(self) -> Kind:
        return _pointer_kind(self.kind_name) if self.is_pointer else KINDS[self.kind_name]

    @property
    def is_pointer(self) -> bool:
        return self.kind_name[0] in "*@"

    @property
    def is_block(self) -> bool:
        """Whether this is a block of a tensor descriptor, which loads and stores only use without a mask."""
        return self.kind_name[0] == "@"

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
    """``outs = op(args)``; values are identified by numbers."""

    outs: tuple[int, ...]
    op: str
    args: tuple[int, ...] = ()
    attrs: Attrs = field(default_factory=dict)


@dataclass(frozen=True)
class Carried:
    """A loop-carried value. `param` is first `initial`, then `next` of the previous iteration, also after the loop."""

    param: int
    initial: int
    next: int


STYLES = ("range", "stepped", "argument", "static", "scalar", "while", "halving")
"""How a loop counts. In this order: up to a literal; from 3 in steps of 2; up to an argument; unrolled; up to a
scalar of the program; ``while`` below a literal; ``while`` a scalar of the program, halved each time, is above zero."""
BETWEEN = "between"
"""The style of `conformance.stress.pointing`: from scalar to scalar; the step is a scalar or a literal."""


@dataclass(frozen=True)
class Loop:
    """A loop of a few iterations. `index` is its counter, which the body may use: an i32, or of the type of `start`."""

    index: int
    style: str
    iterations: int
    """The number of iterations. If a scalar is the bound, the maximum: a power of 2 minus 1, except in ``between``."""
    bound: int | None
    """The integer scalar of ``scalar`` and ``halving``, or the end of ``between``."""
    carried: tuple[Carried, ...]
    body: tuple[Statement, ...]
    start: int | None = None
    """The start of ``between``, of the same type as the end."""
    step: int | None = None
    """The step of ``between``, of the same type and above zero; None: `stride`."""
    stride: int = 1
    """A literal step, which may be negative: Triton recognizes negative steps only if they are literals."""


@dataclass(frozen=True)
class Merged:
    """A result of a branch: the value of `then` or of `other`."""

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
    """Every program of the grid stores a tile into its own part of an output, which no other statement stores into.

    `form`: ``plain``, ``spaced`` (every other element), ``permuted`` (scattered by an odd multiple) or ``reversed``.
    """

    number: int
    """The number of the output."""
    value: int
    mask: int | None = None
    extents: tuple[int, ...] = ()
    """The part of the tile that is stored: a size per dimension."""
    form: str = "plain"


@dataclass(frozen=True)
class Atomic:
    """Programs of the grid atomically update shared elements with those of a tile.

    `kind` is add, min, max, and, or, xor.
    """

    number: int
    value: int
    at: int
    """The indices: an integer tile of the same shape, taken modulo `size`."""
    kind: str
    size: int
    mask: int | None = None


@dataclass(frozen=True)
class Fetch:
    """A load through a tile of pointers."""

    out: int
    pointer: int
    mask: int | None = None
    other: int | None = 0
    """The value of inactive lanes. None: the load has no `other`, and ``tl.where`` sets these lanes to 0."""
    rest: int | None = None
    """Used instead of `other`, if set: a tile that broadcasts to the shape of the pointers."""


@dataclass(frozen=True)
class Put:
    """A store or an atomic operation through a tile of pointers."""

    pointer: int
    value: int
    mask: int | None = None
    kind: str = "store"
    """``store``, or an atomic operation: add, min, max, and, or, xor."""


Statement = Let | Loop | Branch | Store | Atomic | Fetch | Put
WRITES = (Store, Atomic, Put)
"""Statements that write to memory."""


MOST_SPAN = 4096
"""The maximum distance, in elements, between the first and the last element accessed in a region, in most programs."""


@dataclass(frozen=True)
class Region:
    """An array that programs address freely, relative to the position of element 0, which need not exist.

    No two programs of the grid access the same element, unless all of them only load it, or only update it atomically.
    """

    number: int
    kind: str
    flavour: str
    seed: int
    use: str = "load"
    """``load``: only loaded; ``store``: loaded and stored; otherwise the kind of atomic operations on it."""
    origin: str = "literal"
    """How the kernel computes the position of element 0: with a ``literal``, or with an ``argument``."""
    low: int = 0
    """The index of its first element."""
    size: int = 1
    span: int = MOST_SPAN
    """The maximum distance, in elements, between the first and the last element accessed."""
    rewritten: bool = False
    """Whether elements are stored more than once."""
    described: bool = False
    """Whether a tensor descriptor begins at element 0."""


PLACES = ("zones", "end", "start")
"""Where the arrays of a program are allocated: between guard zones, or at the end or the start of pages, next to an
inaccessible page."""


@dataclass(frozen=True)
class Program:
    """A complete program, and the grid that it runs on."""

    body: tuple[Statement, ...]
    grid: tuple[int, ...] = (1,)
    warps: int = 4
    seed: int = 0
    """The seed that it was generated from."""
    regions: tuple[Region, ...] = ()
    """The regions, ordered by number."""
    place: str = "zones"
    """One of `PLACES`."""

    @property
    def programs(self) -> int:
        return math.prod(self.grid)

    def position(self, program: int) -> tuple[int, int, int]:
        """``tl.program_id`` along each axis, for a linear program number."""
        x, y, _ = (*self.grid, 1, 1)[:3]
        return program % x, program // x % y, program // (x * y)


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Iterate over all statements; a statement comes before those of its bodies."""
    for statement in body:
        yield statement
        match statement:
            case Loop():
                yield from walk(statement.body)
            case Branch():
                yield from walk(statement.then)
                yield from walk(statement.other)


def uses(statement: Statement) -> tuple[int, ...]:
    """The values that a statement reads, without those read only by statements of its bodies."""
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
    """The numbers of the regions that are passed to the kernel as two arguments."""
    found = {s.attrs["region"] for s in walk(program.body) if isinstance(s, Let) and s.attrs.get("second")}
    return tuple(sorted(found))


def size_of(program: Program) -> int:
    """The number of statements of a program, including those of bodies."""
    return sum(1 for _ in walk(program.body))
