"""Honest kernels as candidates: those of the conformance suite, with its oracles but without its tolerances."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.judge.task import Call, Random, Reference, Task
from triton_porting_kit.conformance.judge.values import Leaf, flatten
from triton_porting_kit.conformance.kernels.problem import Problem, as_tuple
from triton_porting_kit.conformance.types import Array

CANDIDATE = '''"""A kernel of the conformance suite, called with device arrays."""

from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.types import KINDS
from triton_porting_kit.driver import DeviceArray

PROBLEM = next(check.body for check in catalogue.checks(["kernels"]) if check.name == {name!r})
BY_NAME = {{kind.device: kind for kind in KINDS.values()}}


class Home:
    """Makes arrays beside another."""

    def __init__(self, device):
        self.device = device

    def empty(self, kind, shape):
        return Wrapped(DeviceArray.empty(shape, kind.device, self.device))


class Wrapped:
    """A device array with the attributes that the suite's kernels ask for."""

    def __init__(self, array):
        self.array, self.device, self.kind = array, Home(array.device), BY_NAME[str(array.dtype)]
        self.shape, self.dtype, self.strides = array.shape, array.dtype, array.strides
        self.data_ptr, self.stride = array.data_ptr, array.stride

    @classmethod
    def empty(cls, shape, dtype, device):
        return device.empty(BY_NAME[dtype], shape)


def kernel(*arrays):
    found = PROBLEM.launch(*map(Wrapped, arrays))
    return tuple(item.array for item in (found if isinstance(found, tuple) else (found,)))
'''


def problems() -> dict[str, Problem]:
    """Every kernel of the suite that does not write into its operands, by the name of its check."""
    return {
        check.name: check.body
        for check in catalogue.checks(["kernels"])
        if isinstance(check.body, Problem) and not check.body.writes
    }


def chosen() -> dict[str, Problem]:
    """Every fourth of those at small shapes.

    Without what asks for more of an array than device arrays have, and without normalisations of one element, whose
    results are constants.
    """
    small = sorted(name for name, p in problems().items() if p.peer is None and p.elements < 20_000)
    usable = (
        name for name in small[::4] if not re.search("grouped|tuned-sum|(softmax|norm|entropy).*-1x1$", name)
    )
    return {name: problems()[name] for name in usable}


def task_of(name: str, problem: Problem) -> Task:
    """A problem of the suite as a task of the judge's."""

    def make(random: Random, case: Mapping[str, Any]) -> Call:
        leaves: list[Leaf] = []
        items = tuple(Leaf(o.values, o.kind) for o in problem.operands(random))
        tree = flatten(items, leaves)
        wanted = as_tuple(problem.expected(*(leaf.wide for leaf in leaves)))
        return Call(leaves, tree, [(item.kind, np.shape(item.values)) for item in wanted])

    def of(call: Call) -> Reference:
        def reference(leaves: Sequence[Array]) -> Sequence[Array]:
            return [np.asarray(item.values) for item in as_tuple(problem.expected(*leaves))]

        return reference

    return Task(
        name=name,
        format="plain",
        entry="kernel",
        cases=lambda random: [{}],
        timed={},
        make=make,
        reference=of,
        writes=(),
        precision="fp16" if "tf32" in name else "",
    )


def candidate_of(name: str) -> bytes:
    return CANDIDATE.format(name=name).encode()
