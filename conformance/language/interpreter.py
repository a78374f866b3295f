"""Run cases in Triton's own interpreter: ``python -m triton_porting_kit.conformance.language.interpreter SECTION...``.

Triton interprets kernels in a process that starts with ``TRITON_INTERPRET=1``. The command prints one JSON object. It
maps each case to a description of what is wrong with its result, or to an empty string.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language import cases
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.language.table import Case
from triton_porting_kit.conformance.language.work import Work
from triton_porting_kit.conformance.types import Array, Kind, from_bits, to_bits
from triton_porting_kit.toolchain import compat


class HostMemory:
    """Elements in NumPy's memory, with as much of torch.Tensor's interface as the interpreter needs."""

    def __init__(self, values: Array, kind: Kind) -> None:
        self.kind, self.dtype = kind, kind.device
        self.elements = np.array(to_bits(values, kind), order="C", copy=True)

    def data_ptr(self) -> int:
        return int(self.elements.ctypes.data)

    def read(self) -> Array:
        return from_bits(self.elements, self.kind)

    def untyped_storage(self) -> HostMemory:
        return self

    def cpu(self) -> HostMemory:
        return self

    def new_empty(self, *args: Any, **more: Any) -> HostMemory:
        return self

    def set_(self, *args: Any) -> None:
        pass

    copy_ = set_

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self.elements.shape

    stride = size


def interpret(work: Work) -> str:
    """What is wrong with the results of a case; empty if nothing is."""
    memories = [HostMemory(array, kind) for array, kind in work.inputs]
    for result in work.results:
        initial = (
            np.zeros(np.shape(result.values), result.kind.host) if result.initial is None else result.initial
        )
        memories.append(HostMemory(initial, result.kind))
    make_kernel(work.source)[(work.grid,)](*memories, **work.options)
    found = memories[len(work.inputs) :]
    for k, (result, memory) in enumerate(zip(work.results, found, strict=True)):
        wrong = result.mismatch(memory.read())
        if wrong:
            return f"result {k} ({result.kind}): {wrong}"
    return ""


def shortened(case: Case) -> Case:
    """The case with few turns: the interpreter runs one program after the other, so that none can disturb another."""
    shape = case.shape
    if "turns" not in shape.params:
        return case
    return replace(case, shape=replace(shape, params={**shape.params, "turns": 4}))


def outcomes(chosen: Iterable[Case]) -> dict[str, str]:
    """For each case, what is wrong or which exception was raised."""
    found = {}
    for case in chosen:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found[case.id] = interpret(shortened(case).work())
        except Exception as error:
            found[case.id] = f"{type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    sections = sys.argv[1:]
    json.dump(
        outcomes(c for c in cases(compat.release()) if not sections or c.op.section in sections),
        sys.stdout,
    )
