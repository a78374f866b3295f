"""`Operation`: how a statement is typed, printed, computed on the host and proposed at random."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from triton_porting_kit.conformance.stress.draws import Draws
from triton_porting_kit.conformance.stress.numbers import Datum
from triton_porting_kit.conformance.stress.program import Attrs, Malformed, Type

SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("fp16", "bf16", "fp32", "fp64")
NUMBERS = INTEGERS + FLOATS
EVERY = ("i1", *NUMBERS)
LARGEST_TILE = 2048
"""The largest number of elements of a tile, in most programs."""
SHAPES = (
    (1,), (2,), (8,), (16,), (32,), (64,), (128,), (256,), (1024,),
    (1, 8), (4, 1), (4, 8), (8, 4), (2, 32), (16, 16), (16, 32), (32, 1), (8, 64),
    (2, 4, 8), (4, 2, 2), (1, 8, 4), (8, 1, 16), (2, 16, 2), (4, 4, 4),
)  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """A parameter of the kernel that a statement reads: an array or a number."""

    name: str
    kind: str
    size: int = 0
    flavour: str = ""
    seed: int = 0
    value: int | float | None = None
    """The value, if it is a number."""


@dataclass(frozen=True)
class Words:
    """The inputs for printing an operation as source."""

    args: Sequence[str]
    types: Sequence[Type]
    attrs: Attrs
    outs: Sequence[Type]
    parameter: str = ""


@dataclass(frozen=True)
class Place:
    """The position of a program in the grid."""

    position: tuple[int, int, int]
    grid: tuple[int, int, int]


class Scope(Protocol):
    """The values, shapes and types from which proposals choose."""

    draws: Draws
    shapes: tuple[tuple[int, ...], ...]
    """The shapes of most tiles of the program."""
    kinds: tuple[str, ...]
    """The element types of most values of the program."""
    vocabulary: tuple[str, ...]
    """All element types that the program may use."""

    @property
    def grid(self) -> tuple[int, ...]: ...

    def any(self, fits: Callable[[Type], bool]) -> int | None:
        """A random value for whose type `fits` holds, or None."""

    def type_of(self, value: int) -> Type: ...

    def is_exact(self, value: int) -> bool:
        """Whether a value is exact in every program of the grid."""


Proposal = tuple[tuple[int, ...], dict[str, Any]]
Types = tuple[Type, ...]


@dataclass(frozen=True)
class Operation:
    """An entry of the table of operations."""

    name: str
    infer: Callable[[Types, Attrs], Types]
    """Infers the types of the results. Raises `Malformed`."""
    text: Callable[[Words], str]
    compute: Callable[[Sequence[Datum], Attrs, Place], Datum | tuple[Datum, ...]]
    """Computes the results on the host. Raises `IllConditioned`."""
    propose: Callable[[Scope], Proposal | None]
    weight: float = 1.0
    casts: bool = False
    """Whether the source needs a cast: for some operands, Triton's result has another type."""
    parameter: Callable[[str, Attrs], Parameter] | None = None
    helpers: tuple[str, ...] = ()
    """The sources of `@triton.jit` functions that it calls."""
    tags: Callable[[Types, Attrs], Sequence[str]] = field(default=lambda types, attrs: ())
    """Additional constructs under which a use is counted."""


# --- typing --------------------------------------------------------------------------------------


def need(condition: bool, message: str = "types that do not fit") -> None:
    if not condition:
        raise Malformed(message)


def joint(types: Types) -> tuple[int, ...]:
    """The shape that operands broadcast to: all have the same rank or are scalars. Raises `Malformed`."""
    shapes = [t.shape for t in types if t.rank]
    need(len({len(shape) for shape in shapes}) <= 1)
    try:
        shape = tuple(np.broadcast_shapes(*shapes)) if shapes else ()
    except ValueError:
        raise Malformed("shapes that do not broadcast") from None
    return shape


def same_kind(types: Types, kinds: Sequence[str] = EVERY) -> str:
    need(len({t.kind_name for t in types}) == 1 and types[0].kind_name in kinds)
    return types[0].kind_name


def elementwise(kinds: Sequence[str], result: str = "") -> Callable[[Types, Attrs], Types]:
    """Type inference for operands of one of `kinds` that broadcast. `result`: the result's type if not theirs."""

    def infer(types: Types, attrs: Attrs) -> Types:
        kind = same_kind(types, kinds)
        return (Type(result or kind, joint(types)),)

    return infer


def template(form: str) -> Callable[[Words], str]:
    """Printing by a format string: ``{0}`` is an operand, a name an attribute, ``{kind}`` the type of the result."""

    def text(words: Words) -> str:
        return form.format(
            *words.args, **{"kind": words.outs[0].kind.language, "bits": _bits(words)} | dict(words.attrs)
        )

    return text


def _bits(words: Words) -> int:
    return (words.types[0].kind.bits if words.types else 1) - 1


# --- proposing -----------------------------------------------------------------------------------


def operands(count: int, kinds: Sequence[str], same_shape: bool = False, exact: bool = False) -> Any:
    """A proposal of `count` operands of one of `kinds` that broadcast, or have the same shape."""

    def propose(scope: Scope) -> Proposal | None:
        first = scope.any(lambda t: t.kind_name in kinds)
        if first is None:
            return None
        chosen = [first]
        while len(chosen) < count:
            types, kind = [scope.type_of(v) for v in chosen], scope.type_of(first).kind_name
            other = partner(scope, types, kind, same_shape)
            if other == first:  # prefer two different operands
                other = partner(scope, types, kind, same_shape)
            if other is None or (other == first and scope.draws.chance(0.7)):
                return None
            chosen.append(other)
        if exact and not all(map(scope.is_exact, chosen)):
            return None
        return tuple(chosen), {}

    return propose


def partner(
    scope: Scope,
    types: Sequence[Type],
    kind: str,
    same_shape: bool = False,
    also: Callable[[Type], bool] = lambda t: True,
) -> int | None:
    """A value of a kind that broadcasts with `types` and for which `also` holds, or None."""

    def fits(t: Type) -> bool:
        if t.kind_name != kind or (same_shape and t.shape != types[0].shape) or not also(t):
            return False
        try:
            return math.prod(joint((*types, t))) <= LARGEST_TILE
        except Malformed:
            return False

    return scope.any(fits)


def some_kind(scope: Scope) -> str:
    """Draw an element type, mostly one of the program's own."""
    return scope.draws.choose(scope.kinds if scope.draws.chance(0.75) else scope.vocabulary)


def some_shape(scope: Scope) -> tuple[int, ...]:
    """Draw a shape, mostly one of the program's own."""
    return scope.draws.choose(scope.shapes if scope.draws.chance(0.75) else SHAPES)
