"""Determines whether arguments of launches that are no arrays carry what was computed outside of launches.

A candidate may compute with NumPy or Python and pass the results as numbers, in tuples, or as constants of the kernel.
Two calls with inputs of the same shapes are compared: a number that only one of them passes depends on what the inputs
contain. It must be an element of an input or of memory that a launch wrote, a number of the task's arguments, or an
address. Integers up to the number of elements, such as lengths, may be others, if they are few.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from triton_porting_kit.conformance.judge.task import Call
from triton_porting_kit.conformance.types import KINDS, Array, Kind
from triton_porting_kit.replay import Capture

LEAST = 1024
"""An integer up to this number may be a length or an index, however small the arrays are."""
NOTHING: Mapping[str, Any] = {"scalars": [], "numbers": 0, "integers": 0, "derived": False}
_CONSTANT = re.compile(r"arith\.constant (?:dense<)?(-?\d[\w.+-]*)>? : (?:tensor<[\dx]*)?(\w+)")
_IN_MLIR = {"f16": "fp16", "f32": "fp32", "f64": "fp64"}
_BITS = {"fp16": "<e", "fp32": "<f", "fp64": "<d"}


@dataclass(frozen=True)
class Scalar:
    """A number of unknown origin that a launch received."""

    value: float | int
    kernel: str
    argument: str
    small: bool
    """Whether it may be a length."""


class Scalars:
    """The numbers of unknown origin that the launches of a call received, by value."""

    def __init__(self, call: Call) -> None:
        elements = sum(leaf.values.size for leaf in call.leaves)
        elements += sum(int(np.prod(shape)) for _, shape in call.results)
        self._most = max(LEAST, elements)
        self.found: dict[float | int, Scalar] = {}
        self.passed: set[float | int] = set()
        """All numbers, also those of known origin."""

    def look(self, name: str, capture: Capture, foreign: Callable[[Array, Kind], Array]) -> None:
        """Add those of one launch. `foreign` returns the values of unknown origin in an array."""
        manifest = capture.manifest
        numbers = [(slot.name, slot.type, slot.value) for slot in manifest.slots if not slot.is_pointer]
        if manifest.kernel.ttir is not None:
            text = capture.content(manifest.kernel.ttir).decode(errors="replace")
            numbers += [("a constant", kind, value) for value, kind in set(_CONSTANT.findall(text))]
        read: dict[str, dict[float | int, str]] = {}
        for argument, type_name, written in numbers:
            kind = KINDS.get(_IN_MLIR.get(type_name, type_name))
            value = None if kind is None else _number(written, kind)
            if kind is not None and value is not None and not _is_address(argument, capture):
                read.setdefault(kind.name, {})[value] = argument
        for kind_name, values in read.items():
            self.passed |= values.keys()
            left = set(foreign(np.asarray([*values], np.float64), KINDS[kind_name]).tolist())
            for value in values.keys() - self.found.keys():
                if float(value) in left:
                    small = isinstance(value, int) and abs(value) <= self._most
                    self.found[value] = Scalar(value, name, values[value], small)


def differences(
    first: tuple[Scalars, Call], second: tuple[Scalars, Call], *, shown: int
) -> list[dict[str, Any]]:
    """The evidence about the scalars of two calls: those that the other call does not pass.

    ``numbers`` counts those that cannot be lengths, and ``integers`` those that can. ``derived`` says whether the task
    itself passes other numbers or shapes in the other call, from which a candidate may derive some.
    """
    derived = _given(first[1]) != _given(second[1])
    evidence = []
    for own, other in ((first[0], second[0]), (second[0], first[0])):
        left = sorted(
            (scalar for value, scalar in own.found.items() if value not in other.passed),
            key=lambda item: item.small,
        )
        evidence.append(
            {
                "scalars": [
                    {"kernel": item.kernel, "argument": item.argument, "value": repr(item.value)}
                    for item in left[:shown]
                ],
                "numbers": sum(not item.small for item in left),
                "integers": sum(item.small for item in left),
                "derived": derived,
            }
        )
    return evidence


def numbers_in(tree: Any) -> list[float]:
    """The numbers in an argument tree."""
    ((kind, item),) = tree.items()
    if kind == "value":
        return [float(item)] if isinstance(item, int | float) else []
    if kind == "leaf":
        return []
    parts = item.values() if kind == "dict" else item
    return [number for part in parts for number in numbers_in(part)]


def _given(call: Call) -> tuple[Any, ...]:
    """What a task gives besides the contents of arrays: numbers, also in arrays of one element, and shapes."""
    single = [repr(leaf.values.ravel()[0]) for leaf in call.leaves if leaf.values.size == 1]
    return numbers_in(call.arguments), single, [leaf.shape for leaf in call.leaves]


def _number(written: int | str, kind: Kind) -> float | int | None:
    """A number as a manifest or MLIR writes it; None if it is not finite or none."""
    try:
        if isinstance(written, int):
            return written
        if not kind.is_float:
            return int(written, 0)
        if not written.startswith("0x"):
            value = float(written)
        elif kind.name in _BITS:
            (value,) = struct.unpack(_BITS[kind.name], int(written, 16).to_bytes(kind.bits // 8, "little"))
        else:
            (value,) = struct.unpack("<f", struct.pack("<I", int(written, 16) << 16))
    except (ValueError, OverflowError, struct.error):
        return None
    return float(value) if np.isfinite(value) else None


def _is_address(argument: str, capture: Capture) -> bool:
    """Whether an integer is an address of device memory, as the recording notes."""
    start = f"the integer '{argument}' is an address in device memory"
    return any(note.startswith(start) for note in capture.manifest.notes)
