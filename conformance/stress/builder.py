"""Growing the bodies of random programs. Each statement is computed immediately, and dropped if its result is
undefined, ill-conditioned or too large to compare."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from triton_porting_kit.conformance.stress.draws import Draws
from triton_porting_kit.conformance.stress.numbers import Datum, as_number
from triton_porting_kit.conformance.stress.operations import OPERATIONS
from triton_porting_kit.conformance.stress.operations.base import EVERY, INTEGERS, LARGEST_TILE, SHAPES, need
from triton_porting_kit.conformance.stress.operations.memory import flavour, strides
from triton_porting_kit.conformance.stress.operations.reducing import ACCUMULATORS
from triton_porting_kit.conformance.stress.oracle import (
    Environment,
    Run,
    outputs_of,
    place_of,
)
from triton_porting_kit.conformance.stress.program import (
    MOST_SPAN,
    STYLES,
    WRITES,
    Atomic,
    Branch,
    Carried,
    IllConditioned,
    Let,
    Loop,
    Malformed,
    Merged,
    Program,
    Region,
    Statement,
    Store,
    Type,
    walk,
)
from triton_porting_kit.conformance.stress.regions import States, states_of
from triton_porting_kit.conformance.stress.typing import (
    ATOMIC_TYPES,
    ATOMICS,
    Types,
    check_statement,
)


@dataclass(frozen=True)
class Limits:
    """How large tiles and arrays are."""

    largest: int = LARGEST_TILE
    """The largest number of elements of a tile."""
    span: int = MOST_SPAN
    """The largest number of elements of an array."""


@dataclass
class Shared:
    """What the bodies of one program share: limits, the numbering of values and outputs, and all regions."""

    limits: Limits = Limits()
    values: int = 0
    outputs: int = 0
    regions: dict[int, Region] = field(default_factory=dict)

    def value(self) -> int:
        self.values += 1
        return self.values - 1

    def output(self) -> int:
        self.outputs += 1
        return self.outputs - 1

    def region(self, kind: str, flavour: str, seed: int, **more: Any) -> Region:
        """A new region, whose size is not known yet."""
        number = len(self.regions)
        self.regions[number] = Region(number, kind, flavour, seed, span=self.limits.span, **more)
        return self.regions[number]


@dataclass
class Builder:
    """A body that grows. It is the `Scope` from which operations choose operands."""

    draws: Draws
    program: Program
    shared: Shared
    types: Types
    environments: list[Environment]
    """One environment per program of the grid."""
    shapes: tuple[tuple[int, ...], ...] = SHAPES
    kinds: tuple[str, ...] = EVERY
    vocabulary: tuple[str, ...] = EVERY
    depth: int = 0
    states: States = field(default_factory=dict)
    body: list[Statement] = field(default_factory=list)

    weights = tuple((operation, operation.weight) for operation in OPERATIONS.values())
    """Weights of the operations that a statement may use."""

    @property
    def grid(self) -> tuple[int, ...]:
        return self.program.grid

    def type_of(self, value: int) -> Type:
        return self.types[value]

    def is_exact(self, value: int) -> bool:
        return all(e[value].error is None for e in self.environments)

    def any(self, fits: Callable[[Type], bool]) -> int | None:
        return self.recent([v for v, t in self.types.items() if not t.is_pointer and fits(t)])

    def recent(self, fitting: list[int]) -> int | None:
        """One of some values, more often a recent one."""
        if not fitting:
            return None
        # Prefer later values, so that programs grow deep rather than wide.
        recent = fitting[-4:] if self.draws.chance(0.5) else fitting
        return self.draws.choose(recent)

    # --- growing -------------------------------------------------------------------------------------

    def add(self, statement: Statement) -> bool:
        """Append a statement, unless it is None or ill-conditioned."""
        types, every = {**self.types}, dict[int, Type]()
        environments = [{**e} for e in self.environments]
        try:
            check_statement(statement, types, every)
            need(all(t.kind_name.lstrip("*@") in self.vocabulary for t in every.values()))
            need(all(t.count <= self.shared.limits.largest for t in every.values()))
            outputs = outputs_of(Program((statement,), self.grid), {**self.types, **every})
            states = self.states  # operations on values access no region
            if not isinstance(statement, Let):
                states = {**states_of(tuple(self.shared.regions.values())), **self.copied()}
            with np.errstate(all="ignore"):
                for number, environment in enumerate(environments):
                    Run(place_of(self.program, number), outputs, states, number).statement(
                        statement, environment
                    )
        except (Malformed, IllConditioned):
            return False
        self.types, self.environments, self.states = types, environments, states
        self.body.append(statement)
        return True

    def let(self, name: str, *args: int, **attrs: object) -> int | None:
        """Append an operation. Returns the number of its first result, or None if the operation is ill-conditioned."""
        count = len(OPERATIONS[name].infer(tuple(self.types[a] for a in args), attrs))
        outs = tuple(self.shared.value() for _ in range(count))
        return outs[0] if self.add(Let(outs, name, args, attrs)) else None

    def grow(self, count: int) -> None:
        """Append roughly `count` statements."""
        for _ in range(count):
            pick = self.draws.below(100)
            if self.depth < 2 and pick < 7:
                self.loop()
            elif self.depth < 2 and pick < 13:
                self.branch()
            elif pick < 16:
                self.store(self.draws.choose([*self.types])) if self.types else None
            elif pick < 19:
                self.atomic()
            elif pick < 22:
                self.dot()
            else:
                self.operation()

    def operation(self) -> None:
        """Append an operation from the table; a few attempts."""
        for _ in range(8):
            operation = self.draws.weighted(self.weights)
            proposal = operation.propose(self)
            if proposal is None:
                continue
            args, attrs = proposal
            try:
                count = len(operation.infer(tuple(self.types[a] for a in args), attrs))
            except Malformed:
                continue
            outs = tuple(self.shared.value() for _ in range(count))
            if self.add(Let(outs, operation.name, args, attrs)):
                return

    # --- bodies --------------------------------------------------------------------------------------

    def nested(self) -> Self:
        """A body nested in this one. It sees all current values of this one."""
        return replace(
            self,
            types={**self.types},
            environments=[{**e} for e in self.environments],
            depth=self.depth + 1,
            states=self.copied(),
            body=[],
        )

    def copied(self) -> States:
        """A copy of the current contents of the regions."""
        return {number: state.copy() for number, state in self.states.items()}

    def loop(self) -> None:
        """A loop whose body is generated for the first iteration, and which must then be well-defined in all
        iterations."""
        counting = self.counting()
        draws, inner, index = self.draws, self.nested(), self.shared.value()
        first = as_number("i32", np.ones((), np.int32))
        inner.define(index, Type("i32"), lambda environment: first)
        params = []
        for _ in range(draws.between(1, 3)):
            initial = self.carriable()
            if initial is not None:
                param = self.shared.value()
                inner.define(param, self.types[initial], operator.itemgetter(initial))
                params.append((param, initial))
        inner.grow(draws.between(1, 6))
        carried = []
        for param, initial in params:
            wanted = inner.types[param]
            made = [v for v, t in inner.types.items() if t == wanted and v not in self.types and v != param]
            carried.append(Carried(param, initial, inner.follows(param, made)))
        self.add(counting(index, tuple(carried), tuple(inner.body)))

    def counting(self) -> Callable[[int, tuple[Carried, ...], tuple[Statement, ...]], Loop]:
        """The parts of a loop other than its counter, its carried values and its body."""
        draws = self.draws
        style = draws.choose(STYLES)
        bound = self.any(lambda t: t.rank == 0 and t.kind_name in INTEGERS)
        if style not in ("scalar", "halving"):
            iterations, bound = draws.between(0, 4), None
        else:
            iterations, style = draws.choose((1, 3, 7)), "argument" if bound is None else style
        return lambda index, carried, body: Loop(index, style, iterations, bound, carried, body)

    def carriable(self) -> int | None:
        """A value that a loop may change."""
        return self.any(lambda t: True)

    def follows(self, param: int, made: list[int]) -> int:
        """The next value of a carried value: one that the body computes, if there are any."""
        return self.draws.choose(made) if made else self.changed(param)

    def changed(self, value: int) -> int:
        """A value of the same type as another, and different from it if possible."""
        if self.types[value].kind_name == "i1":
            found = self.let("~", value)
        else:
            found = self.let("literal", value, symbol=self.draws.choose("+-"), literal=1)
        return value if found is None else found

    def define(self, value: int, type_: Type, datum: Callable[[Environment], Datum]) -> None:
        """Define a value that a body receives."""
        self.types[value] = type_
        for environment in self.environments:
            environment[value] = datum(environment)

    def branch(self) -> None:
        condition = self.condition()
        if condition is None:
            return
        bodies = [self.nested(), self.nested()]
        for body in bodies:
            body.grow(self.draws.between(0, 4))
        then, other = bodies
        results: list[Merged] = []
        for _ in range(self.draws.between(1, 2)):
            made = [v for v in then.types if v not in self.types]
            first = self.draws.choose(made) if made else self.any(lambda t: True)
            if first is None:
                continue
            second = other.any(lambda t, v=first: t == then.types[v])  # type: ignore[misc]
            if second is not None and (first, second) not in [(r.then, r.other) for r in results]:
                results.append(Merged(self.shared.value(), first, second))
        if results or any(isinstance(s, WRITES) for b in bodies for s in walk(tuple(b.body))):
            self.add(Branch(condition, tuple(then.body), tuple(other.body), tuple(results)))

    def condition(self) -> int | None:
        """An i1 scalar: an existing one or a new one."""
        found = self.any(lambda t: t == Type("i1"))
        if found is not None and self.draws.chance(0.5):
            return found
        scalar = self.any(lambda t: t.rank == 0 and t.kind_name in INTEGERS)
        if scalar is None or self.draws.chance(0.3):
            scalar = self.let("tl.program_id", axis=self.draws.below(3))
        if scalar is None:
            return None
        kind = self.types[scalar].kind_name
        other = self.let("tl.full", kind=kind, shape=(), value=self.draws.between(0, 2))
        return (
            None
            if other is None
            else self.let(f"compare {self.draws.choose(('<', '==', '>='))}", scalar, other)
        )

    # --- results -------------------------------------------------------------------------------------

    def store(self, value: int) -> None:
        draws, type_ = self.draws, self.types[value]
        extents = tuple(draws.between((s + 1) // 2, s) if draws.chance(0.3) else s for s in type_.shape)
        form = draws.weighted((("plain", 6.0), ("spaced", 1.0), ("permuted", 1.0), ("reversed", 1.0)))
        mask = self.any(lambda t: t == type_.with_kind("i1")) if draws.chance(0.2) else None
        self.add(Store(self.shared.output(), value, mask, extents, form))

    def atomic(self) -> None:
        value = self.any(lambda t: t.kind_name in ATOMIC_TYPES and t.count <= 256)
        if value is None:
            return
        type_ = self.types[value]
        at = self.any(lambda t: t.shape == type_.shape and t.kind_name in INTEGERS)
        assert at is not None
        mask = self.any(lambda t: t == type_.with_kind("i1")) if self.draws.chance(0.3) else None
        kind, size = self.draws.choose(ATOMICS), self.draws.choose((1, 3, 16, 50))
        self.add(Atomic(self.shared.output(), value, at, kind, size, mask))

    def dot(self) -> None:
        """Two matrices and their product. Products of existing matrices are rare."""
        draws = self.draws
        kind = draws.choose([k for k in ACCUMULATORS if k in self.vocabulary])
        m, n, k = (draws.choose((16, 32)) for _ in range(3))
        k = 32 if kind == "i8" else k
        batch = (2,) if draws.chance(0.2) else ()
        found = []
        for shape in ((*batch, m, k), (*batch, k, n)):
            extents = tuple(draws.between(s // 2 + 1, s) if draws.chance(0.3) else s for s in shape)
            style = "whole" if kind in ("fp16", "bf16") else flavour(draws, kind)
            found.append(
                self.let(
                    "load", kind=kind, tile=shape, extents=extents, strides=strides(draws, extents),
                    axes=(None,) * len(shape), flavour=style, seed=draws.below(1 << 30), other=0,
                )
            )  # fmt: skip
        if None not in found:
            self.let("tl.dot", *(v for v in found if v is not None))
