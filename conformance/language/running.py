"""Running cases on a device: memory between guard zones, batches of cases in one kernel, comparison."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.source import make_batch, make_kernel
from triton_porting_kit.conformance.language.table import Case
from triton_porting_kit.conformance.language.types import Array, Kind, from_bits, to_bits
from triton_porting_kit.conformance.language.work import Work
from triton_porting_kit.driver import DeviceArray

GUARD = 128
"""Bytes in front of and behind every array, which no kernel may touch."""
FILL = 0xA5


class WrongResult(AssertionError):
    """A kernel ran, and memory is not what it should be."""


def active_device() -> Any:
    """The active driver's device."""
    from triton.runtime import driver

    return driver.active.device


class Memory:
    """Elements of a type on the device, between guard zones; an argument of a kernel."""

    def __init__(self, device: Any, kind: Kind, values: Array, *, known: bool = True) -> None:
        """`values` of the type, or (not `known`) only their shape."""
        self.kind, self.shape = kind, np.shape(values)
        if known:
            content = np.ascontiguousarray(to_bits(values, kind)).reshape(-1).view(np.uint8)
        else:
            size = np.size(values) * kind.storage.itemsize
            content = np.full(size, FILL if kind.bits > 1 else 1, np.uint8)
        self._before = content
        fence = np.full(GUARD, FILL, np.uint8)
        self._array = DeviceArray.from_numpy(np.concatenate([fence, content, fence]), device)
        self.dtype = kind.device

    def data_ptr(self) -> int:
        return int(self._array.data_ptr()) + GUARD

    def is_unchanged(self) -> bool:
        """Whether every byte is as it was at first."""
        return np.array_equal(self._array.numpy()[GUARD:-GUARD], self._before)

    def read(self) -> Array:
        """The elements. Raises `WrongResult` where a guard zone changed."""
        raw = self._array.numpy()
        fences = np.concatenate([raw[:GUARD], raw[-GUARD:]])
        if (fences != FILL).any():
            at = int(np.flatnonzero(fences != FILL)[0])
            place = f"{GUARD - at} bytes before" if at < GUARD else f"{at - GUARD} bytes behind the end of"
            raise WrongResult(f"something was written {place} an array of {self.kind} {self.shape}")
        elements = raw[GUARD:-GUARD].copy().view(self.kind.storage)
        if self.kind.bits == 1 and (raw[GUARD:-GUARD] > 1).any():
            raise WrongResult("a stored i1 is neither 0 nor 1")
        return from_bits(elements, self.kind).reshape(self.shape)


def arguments(work: Work, device: Any) -> list[Memory]:
    """Memory for a kernel's parameters: its inputs, then its results."""
    memories = [Memory(device, kind, array) for array, kind in work.inputs]
    for result in work.results:
        known = result.initial is not None
        values = result.values if result.initial is None else result.initial
        memories.append(Memory(device, result.kind, values, known=known))
    return memories


def check(work: Work, memories: list[Memory]) -> None:
    """Raises `WrongResult` for the first array that is not as it should be."""
    count = len(work.inputs)
    for k, memory in enumerate(memories[:count]):
        memory.read()
        if not memory.is_unchanged():
            raise WrongResult(f"operand {k} was written to")
    for k, (result, memory) in enumerate(zip(work.results, memories[count:], strict=True)):
        wrong = result.mismatch(memory.read())
        if wrong:
            raise WrongResult(f"result {k} ({result.kind}): {wrong}")


def launch(work: Work, device: Any) -> None:
    """Run a case alone and compare."""
    memories = arguments(work, device)
    make_kernel(work.source)[(work.grid,)](*memories, **work.options)
    check(work, memories)


def run(cases: Iterable[Case], device: Any = None) -> dict[str, Exception | None]:
    """The outcome of each case, by id: None, or what it raised.

    Cases that can are compiled as one kernel. Should that not work, each is compiled by itself.
    """
    device = device or active_device()
    outcomes: dict[str, Exception | None] = {}
    together: dict[str, Work] = {}
    alone: dict[str, Work] = {}
    for case in cases:
        try:
            work = case.work()
        except Exception as error:
            outcomes[case.id] = error
            continue
        (together if work.grid == 1 and not work.options else alone)[case.id] = work
    if len(together) > 1:
        try:
            memories = _launch_together(list(together.values()), device)
        except Exception:
            alone |= together
        else:
            for (name, work), own in zip(together.items(), memories, strict=True):
                outcomes[name] = _outcome(check, work, own)
    else:
        alone |= together
    for name, work in alone.items():
        outcomes[name] = _outcome(launch, work, device)
    return outcomes


def _outcome(function: Any, *args: Any) -> Exception | None:
    try:
        function(*args)
    except Exception as error:
        return error
    return None


def _launch_together(works: list[Work], device: Any) -> list[list[Memory]]:
    memories = [arguments(work, device) for work in works]
    kernels = {f"case_{k}": make_kernel(work.source) for k, work in enumerate(works)}
    names = [[f"A{k}_{i}" for i in range(len(own))] for k, own in enumerate(memories)]
    parameters = ", ".join(name for own in names for name in own)
    calls = "".join(f"    case_{k}({', '.join(own)})\n" for k, own in enumerate(names))
    make_batch(kernels, f"def batch({parameters}):\n{calls}")[(1,)](*(m for own in memories for m in own))
    return memories
