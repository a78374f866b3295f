"""Events in a running program that compilers may get wrong: values that leave their type or wrap around, offsets of
more than 31 bits, comparisons whose result depends on signedness, selected pointers, negative counters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from triton_porting_kit.conformance.stress.numbers import Pointers
from triton_porting_kit.conformance.stress.oracle import (
    Environment,
    Run,
    active,
    counts,
    outputs_of,
    place_of,
)
from triton_porting_kit.conformance.stress.program import (
    BETWEEN,
    Branch,
    Fetch,
    Let,
    Loop,
    Program,
    Put,
    Statement,
)
from triton_porting_kit.conformance.stress.regions import states_of
from triton_porting_kit.conformance.stress.typing import types_of
from triton_porting_kit.conformance.types import KINDS, Array

_HALF = 1 << 31
_SUMS = ("+", "-", "unary -")
_WIDE = ("i32", "u32", "i64")


@dataclass
class Happenings:
    """The events of a program: by the value whose computation caused them, and of the whole program."""

    marks: dict[int, set[str]] = field(default_factory=dict)
    wrapped: set[int] = field(default_factory=set)
    """Remainders that restart from 0 within a tile."""
    found: set[str] = field(default_factory=set)


def happenings(program: Program) -> Happenings:
    """The events of all programs of the grid."""
    found = Happenings()
    outputs, states = outputs_of(program, types_of(program)), states_of(program.regions)
    with np.errstate(all="ignore"):
        for number in range(program.programs):
            run = _Watched(place_of(program, number), outputs, states, number, happenings=found)
            run.body(program.body, {})
    return found


@dataclass
class _Watched(Run):
    """A program of the grid that runs and is observed."""

    happenings: Happenings = field(default_factory=Happenings)
    beyond: dict[int, Array] = field(default_factory=dict)
    """The lanes of integers and pointers that derive from numbers that have left their type."""

    def statement(self, statement: Statement, values: Environment) -> None:
        super().statement(statement, values)
        found = self.happenings.found
        match statement:
            case Let():
                marks = {
                    *_computed(statement, values),
                    *_divided(statement, values),
                    *_compared(statement, values),
                    *_reached(statement, values),
                }
                self._follow(statement, values)
                if marks:
                    self.happenings.marks.setdefault(statement.outs[0], set()).update(marks)
                if _symbol(statement) == "%" and _begins_again(statement, values):
                    self.happenings.wrapped.add(statement.outs[0])
            case Branch() if any(isinstance(values[r.out], Pointers) for r in statement.results):
                taken = bool(values[statement.condition].value)
                found.add(f"an if that chooses the {'first' if taken else 'second'} pointer")
            case Loop(style="between"):
                found.update(_counted(statement, values))
            case Fetch() if statement.rest is not None and not active(statement, values).all():
                found.add(f"{_rest(values[statement.rest].value, values[statement.out].value)} elsewhere")
        if isinstance(statement, Fetch | Put):
            left = self.beyond.get(statement.pointer, np.asarray(False))
            if (left & active(statement, values)).any():
                found.add("a touched element whose offset left its type on the way")
        if isinstance(statement, Fetch):
            pointers = values[statement.pointer]
            if isinstance(pointers, Pointers) and np.unique(pointers.region).size > 1:
                found.add("a load from two arrays")

    def _follow(self, let: Let, values: Environment) -> None:
        """Propagate the lanes that have left their type through element-wise operations."""
        out = values[let.outs[0]]
        found = _left(let, values)
        for value in let.args:
            if value in self.beyond and values[value].value.ndim in (0, out.value.ndim):
                found = found | self.beyond[value]
        if not out.kind.is_float and found.any() and found.shape in ((), out.value.shape):
            self.beyond[let.outs[0]] = found
        else:
            self.beyond.pop(let.outs[0], None)  # from an earlier iteration


def _symbol(let: Let) -> str:
    return str(let.attrs["symbol"]) if let.op == "literal" else let.op.removeprefix("plain ")


def _computed(let: Let, values: Environment) -> Iterator[str]:
    """Products and sums that leave their type."""
    if _left(let, values).any():
        kind = values[let.outs[0]].kind
        yield f"a {'product' if _symbol(let) == '*' else 'sum'} that leaves {kind.bits} bits"


def _left(let: Let, values: Environment) -> Array:
    """The lanes of a product or a sum that leave the type."""
    symbol = _symbol(let)
    kind = values[let.outs[0]].kind
    if kind.name not in _WIDE or symbol not in ("*", *_SUMS):
        return np.asarray(False)
    given = [values[v].value.astype(np.float64) for v in let.args]
    given += [np.asarray(float(let.attrs["literal"]))] if let.op == "literal" else []
    match symbol:
        case "*":
            exact = given[0] * given[1]
        case "+":
            exact = given[0] + given[1]
        case "-":
            exact = given[0] - given[1]
        case _:
            exact = -given[0]
    return np.asarray(
        (exact < kind.lowest) | (exact > kind.highest)
    )  # approximate: a float64 has 53 of 64 bits


def _divided(let: Let, values: Environment) -> Iterator[str]:
    """Quotients and remainders that would differ in a signed type."""
    symbol = _symbol(let)
    if symbol not in ("%", "//"):
        return
    kind, value = values[let.args[0]].kind, values[let.args[0]].value
    if kind.name in ("u32", "u64") and (value > kind.highest // 2).any():
        yield f"an unsigned {'remainder' if symbol == '%' else 'quotient'} above the signed range"


def _begins_again(let: Let, values: Environment) -> bool:
    """Whether a tile of remainders first follows its operand and then restarts from 0."""
    rest = values[let.outs[0]].value
    return bool(rest.size > 1 and np.unique(np.asarray(values[let.args[0]].value - rest)).size > 1)


def _compared(let: Let, values: Environment) -> Iterator[str]:
    """Comparisons whose result depends on signedness."""
    if not (let.op == "limit" or let.op.startswith("compare")):
        return
    kind = values[let.args[0]].kind
    if kind.is_float or kind.bits < 32:
        return
    given = [values[v].value.astype(kind.host) for v in let.args]
    given += [np.asarray(let.attrs["literal"]).astype(kind.host)] if let.op == "limit" else []
    flipped = [a.view(f"{'u' if kind.is_signed else 'i'}{kind.bits // 8}") for a in map(np.asarray, given)]
    symbol = let.attrs["symbol"] if let.op == "limit" else let.op.split()[1]
    if symbol in ("==", "!="):
        return
    if ((given[0] < given[1]) != (flipped[0] < flipped[1])).any():
        yield (
            "a comparison of negative numbers"
            if kind.is_signed
            else "an unsigned comparison above the signed range"
        )


def _reached(let: Let, values: Environment) -> Iterator[str]:
    """Offsets of more than 31 bits."""
    if let.op != "address":
        return
    index = values[let.args[0]]
    size = KINDS[let.attrs["kind"]].bits // 8
    if not index.value.size:
        return
    furthest = max(int(index.value.max()), -int(index.value.min()))
    if index.kind.name in ("u32", "i64") and furthest >= _HALF:
        yield f"{'a u32' if index.kind.name == 'u32' else 'an i64'} of 2**31 and more"
    elif index.kind.name == "i32" and furthest * size >= _HALF:
        yield "an i32 whose bytes are 2**31 and more"


def _counted(loop: Loop, values: Environment) -> Iterator[str]:
    assert loop.style == BETWEEN
    assert loop.start is not None
    assert loop.bound is not None
    counters = counts(loop, values)
    if not counters:
        yield "a loop without iterations"
    if min(counters, default=0) < 0:
        yield "a counter below zero"
    if abs(int(values[loop.bound].value) - int(values[loop.start].value)) >= _HALF:
        yield "a for loop over a distance of 2**31"


def _rest(rest: Array, loaded: Array) -> str:
    """The value that a load gives masked-off lanes."""
    if rest.size == 1:
        return "a scalar"
    return "a tile" if rest.shape == loaded.shape else "a row or column"
