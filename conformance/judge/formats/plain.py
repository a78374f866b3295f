"""Tasks as plain functions: `inputs`, `reference`, `CASES`. docs/judge.md lists all names that a task may define."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from triton_porting_kit.conformance.judge.errors import TaskError
from triton_porting_kit.conformance.judge.task import Call, Random, Reference, Task, Work
from triton_porting_kit.conformance.judge.values import flatten, kind_of, unflatten
from triton_porting_kit.conformance.types import Array, Kind


def is_task(module: ModuleType) -> bool:
    return callable(getattr(module, "inputs", None)) and callable(getattr(module, "reference", None))


def load(module: ModuleType, name: str) -> Task:
    """Create the task of a module. Raises `TaskError`."""
    plain = _Plain(module, name)
    if not plain.cases:
        raise TaskError(f"{name}: CASES is empty")
    return Task(
        name=name,
        format="plain",
        entry=str(getattr(module, "NAME", "kernel")),
        cases=plain.all_cases,
        timed=getattr(module, "TIMED", plain.cases[-1]),
        make=plain.make,
        reference=plain.of,
        given=bool(getattr(module, "GIVEN", False)),
        writes=plain.writes,
        allowed=tuple(getattr(module, "ALLOWED", ())),
        precision=str(getattr(module, "PRECISION", "")),
        work=plain.work,
    )


class _Plain:
    """Cases, calls, results and costs of a task, computed by its module."""

    def __init__(self, module: ModuleType, name: str) -> None:
        self.module, self.name = module, name
        self.cases = list(getattr(module, "CASES", [{}]))
        self.drawn = getattr(module, "cases", None)
        self.writes = tuple(getattr(module, "WRITES", ()))
        self.shapes: dict[Any, list[tuple[Kind, tuple[int, ...]]]] = {}

    def all_cases(self, random: Random) -> Sequence[Mapping[str, Any]]:
        return [*self.cases, *(self.drawn(random) if self.drawn else ())]

    def make(self, random: Random, case: Mapping[str, Any]) -> Call:
        arguments = self.module.inputs(random, **case)
        arguments = arguments if isinstance(arguments, tuple) else (arguments,)
        leaves: list[Any] = []
        tree = flatten(arguments, leaves)
        for position in self.writes:
            if not 0 <= position < len(leaves):
                raise TaskError(
                    f"{self.name}: WRITES names array {position}, but there are only {len(leaves)} arrays"
                )
        key = (repr(sorted(case.items())), tuple((leaf.kind.name, leaf.shape) for leaf in leaves))
        if key not in self.shapes:
            self.shapes[key] = self.results(Call(leaves, tree, []))
        return Call(leaves, tree, self.shapes[key])

    def results(self, call: Call) -> list[tuple[Kind, tuple[int, ...]]]:
        values = self.of(call)([leaf.wide for leaf in call.leaves])
        returned = len(values) - len(self.writes)
        named = getattr(self.module, "RESULTS", None)
        names = [named] * returned if isinstance(named, str) else named
        if names is not None and len(names) != returned:
            raise TaskError(
                f"{self.name}: RESULTS has {len(names)} types, but the reference returns {returned} results"
            )
        floats = [leaf.kind for leaf in call.leaves if leaf.kind.is_float]
        found = []
        for number, value in enumerate(values):
            if number >= returned:
                kind = call.leaves[self.writes[number - returned]].kind
            elif names is not None:
                kind = kind_of(names[number])
            elif value.dtype.kind == "f" and floats:
                kind = floats[0]
            else:
                kind = kind_of(value.dtype)
            found.append((kind, value.shape))
        return found

    def of(self, call: Call) -> Reference:
        def reference(leaves: Sequence[Array]) -> Sequence[Array]:
            with np.errstate(all="ignore"):
                found = self.module.reference(*unflatten(call.arguments, list(leaves)))
            return [np.asarray(value) for value in (found if isinstance(found, tuple) else (found,))]

        return reference

    def work(self, call: Call) -> Work:
        function = getattr(self.module, "work", None)
        return Work(**function(*(leaf.values for leaf in call.leaves))) if function else Work()
