"""`Operation`: how a statement is typed, written, computed on the host, and thought of at random."""

from __future__ import annotations

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
"""Elements."""
SHAPES = (
    (1,), (2,), (8,), (16,), (32,), (64,), (128,), (256,), (1024,),
    (1, 8), (4, 1), (4, 8), (8, 4), (2, 32), (16, 16), (16, 32), (32, 1), (8, 64),
    (2, 4, 8), (4, 2, 2), (1, 8, 4), (8, 1, 16), (2, 16, 2), (4, 4, 4),
)  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """A parameter that a statement reads: an array with a content, or a number."""

    name: str
    kind: str
    size: int = 0
    flavour: str = ""
    seed: int = 0
    value: int | float | None = None
    """Of a number."""


@dataclass(frozen=True)
class Words:
    """What the text of an operation is made from."""

    args: Sequence[str]
    types: Sequence[Type]
    attrs: Attrs
    outs: Sequence[Type]
    parameter: str = ""


@dataclass(frozen=True)
class Place:
    """Which program of the grid computes."""

    position: tuple[int, int, int]
    grid: tuple[int, int, int]


class Scope(Protocol):
    """What a proposal chooses from."""

    draws: Draws
    shapes: tuple[tuple[int, ...], ...]
    """Of tiles that the program is mostly made of."""
    kinds: tuple[str, ...]
    """Types that the program is mostly made of."""
    vocabulary: tuple[str, ...]
    """All types that it may have."""

    @property
    def grid(self) -> tuple[int, ...]: ...

    def any(self, fits: Callable[[Type], bool]) -> int | None:
        """A value whose type fits, if there is one."""

    def type_of(self, value: int) -> Type: ...

    def is_exact(self, value: int) -> bool:
        """Whether it is known exactly in every program."""


Proposal = tuple[tuple[int, ...], dict[str, Any]]
Types = tuple[Type, ...]


@dataclass(frozen=True)
class Operation:
    """An entry of the table of operations."""

    name: str
    infer: Callable[[Types, Attrs], Types]
    """The types of the results. Raises `Malformed`."""
    text: Callable[[Words], str]
    compute: Callable[[Sequence[Datum], Attrs, Place], Datum | tuple[Datum, ...]]
    """Raises `IllConditioned`."""
    propose: Callable[[Scope], Proposal | None]
    weight: float = 1.0
    casts: bool = False
    """Whether Triton's result is of another type in places, and is cast back."""
    parameter: Callable[[str, Attrs], Parameter] | None = None
    helpers: tuple[str, ...] = ()
    """Functions of the kernel that it calls."""
    tags: Callable[[Types, Attrs], Sequence[str]] = field(default=lambda types, attrs: ())
    """More constructs that a use of it is counted under."""


# --- typing --------------------------------------------------------------------------------------


def need(condition: bool, message: str = "types that do not fit") -> None:
    if not condition:
        raise Malformed(message)


def joint(types: Types) -> tuple[int, ...]:
    """The shape that shapes broadcast to: of one rank, or scalars beside them."""
    shapes = [t.shape for t in types if t.rank]
    need(len({len(shape) for shape in shapes}) <= 1)
    try:
        shape = tuple(np.broadcast_shapes(*shapes)) if shapes else ()
    except ValueError:
        raise Malformed("shapes that do not broadcast") from None
    need(int(np.prod(shape)) <= LARGEST_TILE)
    return shape


def same_kind(types: Types, kinds: Sequence[str] = EVERY) -> str:
    need(len({t.kind_name for t in types}) == 1 and types[0].kind_name in kinds)
    return types[0].kind_name


def elementwise(kinds: Sequence[str], result: str = "") -> Callable[[Types, Attrs], Types]:
    """Operands of one of `kinds` that broadcast; the result is of their type or of another."""

    def infer(types: Types, attrs: Attrs) -> Types:
        kind = same_kind(types, kinds)
        return (Type(result or kind, joint(types)),)

    return infer


def template(form: str) -> Callable[[Words], str]:
    """``{0}`` are the operands; names are attributes, ``{kind}`` is the type of the result."""

    def text(words: Words) -> str:
        return form.format(
            *words.args, **{"kind": words.outs[0].kind.language, "bits": _bits(words)} | dict(words.attrs)
        )

    return text


def _bits(words: Words) -> int:
    return (words.types[0].kind.bits if words.types else 1) - 1


# --- proposing -----------------------------------------------------------------------------------


def operands(count: int, kinds: Sequence[str], same_shape: bool = False, exact: bool = False) -> Any:
    """Proposes `count` operands of one of `kinds` that go together."""

    def propose(scope: Scope) -> Proposal | None:
        first = scope.any(lambda t: t.kind_name in kinds)
        if first is None:
            return None
        chosen = [first]
        while len(chosen) < count:
            types, kind = [scope.type_of(v) for v in chosen], scope.type_of(first).kind_name
            other = partner(scope, types, kind, same_shape)
            if other == first:  # preferably two different ones
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
    """A value of a kind that broadcasts with `types`, and of which `also` holds."""

    def fits(t: Type) -> bool:
        if t.kind_name != kind or (same_shape and t.shape != types[0].shape) or not also(t):
            return False
        try:
            joint((*types, t))
        except Malformed:
            return False
        return True

    return scope.any(fits)


def some_kind(scope: Scope) -> str:
    """Mostly one of the program's types."""
    return scope.draws.choose(scope.kinds if scope.draws.chance(0.75) else scope.vocabulary)


def some_shape(scope: Scope) -> tuple[int, ...]:
    """Mostly one of the program's shapes."""
    return scope.draws.choose(scope.shapes if scope.draws.chance(0.75) else SHAPES)
