"""A plain function with a signature: `inputs`, `reference`, `CASES`; docs/judge.md has the names of a task's file."""

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
    """The task of a module. Raises `TaskError`."""
    cases = list(getattr(module, "CASES", [{}]))
    drawn = getattr(module, "cases", None)
    writes = tuple(getattr(module, "WRITES", ()))
    shapes: dict[Any, list[tuple[Kind, tuple[int, ...]]]] = {}

    def all_cases(random: Random) -> Sequence[Mapping[str, Any]]:
        return [*cases, *(drawn(random) if drawn else ())]

    def make(random: Random, case: Mapping[str, Any]) -> Call:
        arguments = module.inputs(random, **case)
        arguments = arguments if isinstance(arguments, tuple) else (arguments,)
        leaves: list[Any] = []
        tree = flatten(arguments, leaves)
        for position in writes:
            if not 0 <= position < len(leaves):
                raise TaskError(f"{name}: WRITES names array {position}, and there are {len(leaves)}")
        key = (repr(sorted(case.items())), tuple((leaf.kind.name, leaf.shape) for leaf in leaves))
        if key not in shapes:
            shapes[key] = results(Call(leaves, tree, []))
        return Call(leaves, tree, shapes[key])

    def results(call: Call) -> list[tuple[Kind, tuple[int, ...]]]:
        values = of(call)([leaf.wide for leaf in call.leaves])
        returned = len(values) - len(writes)
        named = getattr(module, "RESULTS", None)
        names = [named] * returned if isinstance(named, str) else named
        if names is not None and len(names) != returned:
            raise TaskError(f"{name}: RESULTS has {len(names)} types, and {returned} results are returned")
        floats = [leaf.kind for leaf in call.leaves if leaf.kind.is_float]
        found = []
        for number, value in enumerate(values):
            if number >= returned:
                kind = call.leaves[writes[number - returned]].kind
            elif names is not None:
                kind = kind_of(names[number])
            elif value.dtype.kind == "f" and floats:
                kind = floats[0]
            else:
                kind = kind_of(value.dtype)
            found.append((kind, value.shape))
        return found

    def of(call: Call) -> Reference:
        def reference(leaves: Sequence[Array]) -> Sequence[Array]:
            with np.errstate(all="ignore"):
                found = module.reference(*unflatten(call.arguments, list(leaves)))
            return [np.asarray(value) for value in (found if isinstance(found, tuple) else (found,))]

        return reference

    def work(call: Call) -> Work:
        function = getattr(module, "work", None)
        return Work(**function(*(leaf.values for leaf in call.leaves))) if function else Work()

    if not cases:
        raise TaskError(f"{name}: CASES is empty")
    return Task(
        name=name,
        format="plain",
        entry=str(getattr(module, "NAME", "kernel")),
        cases=all_cases,
        timed=getattr(module, "TIMED", cases[-1]),
        make=make,
        reference=of,
        given=bool(getattr(module, "GIVEN", False)),
        writes=writes,
        allowed=tuple(getattr(module, "ALLOWED", ())),
        precision=str(getattr(module, "PRECISION", "")),
        work=work,
    )
