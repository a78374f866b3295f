"""The expected results of a program, computed on the host: `expected` runs it for every program of the grid."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from triton_porting_kit.conformance.stress.numbers import Block, Datum, Pointers, as_number, chosen, convert
from triton_porting_kit.conformance.stress.operations import OPERATIONS
from triton_porting_kit.conformance.stress.operations.base import Place
from triton_porting_kit.conformance.stress.operations.memory import modulo
from triton_porting_kit.conformance.stress.program import (
    BETWEEN,
    Atomic,
    Branch,
    Fetch,
    IllConditioned,
    Let,
    Loop,
    Program,
    Put,
    Statement,
    Store,
    Type,
    walk,
)
from triton_porting_kit.conformance.stress.regions import State, States, combined, states_of
from triton_porting_kit.conformance.stress.typing import Types, types_of
from triton_porting_kit.conformance.types import KINDS, Array, Kind

Environment = dict[int, Datum]
MOST_STEPS = 3000
"""The largest number of statements that one program of the grid may execute."""


@dataclass
class Output:
    """An array that programs store into."""

    kind: Kind
    initial: Array
    values: Array
    errors: Array

    @classmethod
    def of(cls, kind: Kind, size: int) -> Output:
        initial = np.full(size, untouched(kind), kind.host)
        wide = np.float64 if kind.is_float else kind.host
        return cls(kind, initial, initial.astype(wide), np.zeros(size))


def untouched(kind: Kind) -> int | float | bool:
    """The contents of outputs before a launch."""
    return True if kind.bits == 1 else 91.0 if kind.is_float else kind.highest // 3


@dataclass
class Run:
    """The execution of one program of the grid."""

    place: Place
    outputs: dict[int, Output]
    states: States
    linear: int = 0
    """Its linear number in the grid."""
    steps: int = field(default=0)

    def body(self, body: tuple[Statement, ...], values: Environment) -> None:
        for statement in body:
            self.statement(statement, values)

    def statement(self, statement: Statement, values: Environment) -> None:
        """Execute one statement. Raises `IllConditioned`."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise IllConditioned("a program that takes too long")
        match statement:
            case Let():
                results = OPERATIONS[statement.op].compute(
                    [values[v] for v in statement.args], statement.attrs, self.place
                )
                for out, datum in zip(
                    statement.outs, results if isinstance(results, tuple) else (results,), strict=True
                ):
                    values[out] = datum
            case Loop():
                self._loop(statement, values)
            case Branch():
                taken = bool(values[statement.condition].value)
                inner = {**values}
                self.body(statement.then if taken else statement.other, inner)
                for merged in statement.results:
                    values[merged.out] = inner[merged.then if taken else merged.other]
            case Store():
                self._store(statement, values)
            case Atomic():
                self._atomic(statement, values)
            case Fetch():
                self._fetch(statement, values)
            case Put():
                self._put(statement, values)

    def _loop(self, loop: Loop, values: Environment) -> None:
        carried = {c.param: values[c.initial] for c in loop.carried}
        for c in loop.carried:
            value, source = carried[c.param], _source(loop.body, c.next, carried[c.param].kind)
            if source != c.param and source in carried and _equal(carried[source], value):
                # Triton's front end (at least up to 3.9, for every backend) takes a carried value for constant if its
                # next value is another carried value with the same initial value.
                raise IllConditioned(
                    "a carried value whose next value is a carried value that starts equal to it"
                )
        counter = "i32" if loop.start is None else values[loop.start].kind.name
        for index in counts(loop, values):
            inner = {**values, **carried, loop.index: as_number(counter, np.asarray(index))}
            self.body(loop.body, inner)
            carried = {c.param: inner[c.next] for c in loop.carried}
        values |= carried

    def _store(self, store: Store, values: Environment) -> None:
        datum = values[store.value]
        output, slot = self.outputs[store.number], slot_size(store, datum.type)
        offsets, inside = places(store, datum.value.shape)
        mask = inside if store.mask is None else inside & values[store.mask].value
        at = self.linear * slot + offsets[mask]
        output.values[at] = datum.value[mask]
        output.errors[at] = datum.errors[mask]

    def _atomic(self, atomic: Atomic, values: Environment) -> None:
        datum, output = values[atomic.value], self.outputs[atomic.number]
        at = modulo(values[atomic.at], atomic.size)
        mask = np.ones(at.shape, bool) if atomic.mask is None else values[atomic.mask].value
        for where, value in zip(at[mask].ravel(), datum.value[mask].ravel(), strict=True):
            output.values[where] = combined(datum.kind, atomic.kind, output.values[where], value)

    def _pointers(self, statement: Fetch | Put, values: Environment) -> Iterator[tuple[State, Array, Array]]:
        """The regions that pointers point into, the element offsets, and the active lanes."""
        pointers = values[statement.pointer]
        assert isinstance(pointers, Pointers)
        mask, at = active(statement, values), np.asarray(pointers.value)
        for number in np.unique(pointers.region).tolist():
            self.states[number].described |= isinstance(pointers, Block)
            yield self.states[number], at, mask & (pointers.region == number)

    def _fetch(self, fetch: Fetch, values: Environment) -> None:
        found: Datum | None = None
        for state, at, here in self._pointers(fetch, values):
            loaded = state.load(at, here, fetch.other or 0, self.linear)
            found = loaded if found is None else chosen(here, loaded, found)
        assert found is not None
        if fetch.rest is not None:
            found = chosen(active(fetch, values), found, values[fetch.rest])
        values[fetch.out] = found

    def _put(self, put: Put, values: Environment) -> None:
        pointers = values[put.pointer]
        if isinstance(pointers, Block) and not pointers.whole:
            # NVIDIA's TMA stores 16 bytes at a time, also beyond the end (github.com/triton-lang/triton/issues/11583).
            raise IllConditioned("a store by a descriptor of part of 16 bytes")
        for state, at, here in self._pointers(put, values):
            if put.kind == "store":
                state.store(at, here, values[put.value], self.linear)
            else:
                state.combine(at, here, values[put.value], put.kind)


def active(statement: Fetch | Put, values: Environment) -> Array:
    """The lanes that a mask enables, in the shape of the pointers."""
    pointers = values[statement.pointer]
    if isinstance(pointers, Block):
        return pointers.inside
    mask = True if statement.mask is None else values[statement.mask].value
    return np.broadcast_to(np.asarray(mask), pointers.value.shape)


def _source(body: tuple[Statement, ...], value: int, kind: Kind) -> int:
    """The value of which `value`, of a type `kind`, is a copy: by casts to that type, by loops that carry it unchanged
    or never run, and by branches that give it either way. Triton's front end sees through all of them.
    """
    copied: dict[int, int] = {}
    for statement in body:
        match statement:
            case Let(op="cast") if statement.attrs["to"] == kind.name:
                copied[statement.outs[0]] = statement.args[0]
            case Loop():
                never = statement.bound is None and statement.iterations == 0
                for c in statement.carried:
                    if never or _source(statement.body, c.next, kind) == c.param:
                        copied[c.param] = c.initial
            case Branch():
                for merged in statement.results:
                    either = _source(statement.then, merged.then, kind)
                    if either == _source(statement.other, merged.other, kind):
                        copied[merged.out] = either
    while value in copied:
        value = copied[value]
    return value


def _equal(a: Datum, b: Datum) -> bool:
    same = a.kind == b.kind and np.array_equal(a.value, b.value)
    if isinstance(a, Pointers) and isinstance(b, Pointers):
        return same and np.array_equal(a.region, b.region)
    return same


def counts(loop: Loop, values: Environment) -> list[int]:
    """The values of a loop's counter in order. Raises `IllConditioned` if the counter would overflow its type."""
    if loop.style == BETWEEN:
        return _between(loop, values)
    if loop.bound is None:
        return [3 + 2 * k if loop.style == "stepped" else k for k in range(loop.iterations)]
    bound = int(convert(values[loop.bound], KINDS["i32"]).value) & loop.iterations
    if loop.style == "scalar":
        return list(range(bound))
    return [bound >> k for k in range(bound.bit_length())]


def _between(loop: Loop, values: Environment) -> list[int]:
    assert loop.start is not None
    assert loop.bound is not None
    start, end = (int(values[v].value) for v in (loop.start, loop.bound))
    step = loop.stride if loop.step is None else int(values[loop.step].value)
    if loop.step is not None and step <= 0:
        raise IllConditioned("a run-time step that is not above zero")
    found = range(start, end, step)
    if len(found) > loop.iterations:
        raise IllConditioned("a loop of too many iterations")
    # In a loop that counts down, Triton counts up from the end to the start and subtracts the count from their sum.
    beyond = min(start, end) + len(found) * abs(step)
    if found and beyond > values[loop.start].kind.highest:
        raise IllConditioned("a counter that wraps around")
    return list(found)


def slot_size(store: Store, type_: Type) -> int:
    """The number of elements of an output that belong to one program of the grid."""
    count = math.prod(type_.shape if store.form == "permuted" else store.extents)
    return 2 * count if store.form == "spaced" else count


def places(store: Store, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The offset of each element within a program's part of the output, and which elements are stored."""
    extents = shape if store.form == "permuted" else store.extents
    offsets, inside, stride = np.zeros(shape, np.int64), np.ones(shape, bool), 1
    for d in reversed(range(len(shape))):
        index = np.arange(shape[d]).reshape([-1 if i == d else 1 for i in range(len(shape))])
        offsets = offsets + index * stride
        inside = inside & (index < store.extents[d])
        stride *= extents[d]
    if store.form == "spaced":
        offsets = offsets * 2
    elif store.form == "permuted":
        offsets = (offsets * 5 + 3) % math.prod(shape)
    elif store.form == "reversed":
        offsets = stride - 1 - offsets
    return offsets, inside


def outputs_of(program: Program, types: Types) -> dict[int, Output]:
    """The outputs of a program before the launch, by number."""
    found = {}
    for statement in walk(program.body):
        if isinstance(statement, Store):
            type_ = types[statement.value]
            size = program.programs * slot_size(statement, type_)
            found[statement.number] = Output.of(type_.kind, size)
        elif isinstance(statement, Atomic):
            found[statement.number] = Output.of(types[statement.value].kind, statement.size)
    return found


def place_of(program: Program, number: int) -> Place:
    x, y, z = (*program.grid, 1, 1)[:3]
    return Place(program.position(number), (x, y, z))


def run_all(program: Program) -> tuple[dict[int, Output], States]:
    """Outputs and regions after all programs of the grid have run. Raises `Malformed` or `IllConditioned`."""
    outputs, states = outputs_of(program, types_of(program)), states_of(program.regions)
    with np.errstate(all="ignore"):
        for number in range(program.programs):
            Run(place_of(program, number), outputs, states, number).body(program.body, {})
    return outputs, states


def expected(program: Program) -> dict[str, Output]:
    """The contents of every output and region after the launch, by name. Raises `Malformed` or `IllConditioned`."""
    outputs, states = run_all(program)
    found = {f"O{number}": outputs[number] for number in sorted(outputs)}
    return found | {
        f"A{number}": Output(states[number].kind, *states[number].final()) for number in sorted(states)
    }


def fitted(program: Program) -> Program:
    """The program with every region cut to the elements that are accessed. Raises `Malformed` or `IllConditioned`."""
    if not program.regions:
        return program
    _, states = run_all(program)
    return replace(program, regions=tuple(states[r.number].fitted() for r in program.regions))
