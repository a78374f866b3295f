"""The expected results of a call and their tolerances, derived from float64 and the element types alone.

Tasks come without tolerances, so the judge measures them. The reference runs in float64 on the inputs, and again on
inputs with random relative perturbations. How far a result moves, relative to the perturbation, is its *scale*: the
factor with which roundings of operands and products affect it. Perturbing only a part of the inputs shows how many of
them enter a result, which bounds the roundings of its sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from triton_porting_kit.conformance.comparison import identical, of_wrong
from triton_porting_kit.conformance.judge.errors import TaskError
from triton_porting_kit.conformance.judge.task import Call, Random, Task
from triton_porting_kit.conformance.rounding import last_place, on_grid, ulp_distance
from triton_porting_kit.conformance.types import KINDS, Array, Kind

SAMPLES = 5
MOVE = 2.0**-18
"""The largest relative perturbation of inputs."""
ROUNDINGS = 32.0
"""Allowed roundings of the working type for every task: chains of operations, fast exponentials, quotients."""
PER_TERM = 2.0
"""Allowed roundings for each term of a sum, in any order of summation."""
CANCELLED = 8.0
"""Allowed roundings of the working type, relative to the root mean square of the scales of all elements. They cover
cancellation, as in 1 + erf(x), where intermediate values are larger than the result. Half of the roundings of the
operands' type are added."""
MOST_TERMS = 4096
"""The largest number of terms that counts: longer sums are assumed to be computed in blocks."""
OWN_ROUNDINGS = 4.0
"""Allowed roundings of the operands' type, if it is narrower than the working type, because intermediate results may
be stored in it."""
ULP = 1.0
"""Allowed error in units in the last place of the result's own type."""
LIKE = 0.5
"""The correlation above which errors are attributed to operands rounded to a narrower type."""
AS_LARGE = 0.25
"""Errors are compared with those of a narrower type only if they are at least this share of them."""
FEWEST = 64
"""The smallest number of elements for which a correlation is computed."""


@dataclass(frozen=True)
class Expected:
    """One expected result."""

    kind: Kind
    values: Array
    allowed: Array | None
    """The absolute error allowed for each element; None: results must be identical."""
    rule: str
    part: float = 0.0
    """The allowed error as a share of the scale."""
    scale: float = 0.0
    """The largest measured scale."""
    lowered: dict[str, Array] = field(default_factory=dict)
    """By narrower type, how far the result moves if the operands are rounded to it."""

    def compare(self, actual: Array) -> dict[str, Any]:
        """Compare all elements, and return an item of evidence."""
        if self.allowed is None or actual.shape != self.values.shape:
            return _plain(identical(actual, self.values).evidence("result"))
        with np.errstate(all="ignore"):
            wide = actual.astype(np.float64)
            near = np.atleast_1d(np.abs(wide - self.values) <= self.allowed).reshape(actual.shape)
        if not near.all():  # NaN, infinity
            near[~near] = ulp_distance(wide[~near], self.values[~near], self.kind) == 0
        found = _plain(of_wrong(~near, actual, self.values, self.rule).evidence("result"))
        with np.errstate(all="ignore"):
            off = np.abs(wide - self.values) / self.allowed
        finite = off[np.isfinite(off)]
        found["worst"] = float(finite.max(initial=0.0))
        found["lowered"] = dict(self._like(wide))
        return found

    def _like(self, actual: Array) -> Iterator[tuple[str, float]]:
        """The correlation of the errors with those of each narrower type, if they are of similar size."""
        if self.allowed is None:
            return
        with np.errstate(all="ignore"):
            error = np.where(np.isfinite(self.values), actual - self.values, 0.0).ravel()
        own = np.sqrt(np.mean(np.square(last_place(self.values, self.kind)))) / np.sqrt(12)
        for name, moved in self.lowered.items():
            shift = np.where(np.isfinite(moved), moved, 0.0).ravel()
            sizes = np.sqrt(np.mean(error**2)), np.sqrt(np.mean(shift**2))
            if error.size < FEWEST or not np.isfinite(sizes).all() or sizes[1] < 4 * own:
                continue
            if sizes[0] < AS_LARGE * sizes[1]:
                continue
            yield name, float(np.mean(error * shift) / (sizes[0] * sizes[1]))


def _plain(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "kind"}


def expected(task: Task, call: Call, random: Random) -> list[Expected]:
    """The expected results of a call. Raises `TaskError` if the reference fails or returns wrong shapes."""
    reference = task.reference(call)
    leaves = [leaf.wide for leaf in call.leaves]
    exact = _run(reference, leaves, call)
    if not any(value.dtype.kind == "f" for value in exact):
        return [
            Expected(kind, value, None, "identical")
            for value, (kind, _) in zip(exact, call.results, strict=True)
        ]
    scales = _scales(reference, leaves, exact, random, call)
    terms = _terms(reference, leaves, exact, random, call)
    with np.errstate(all="ignore"):
        lowered = {
            name: [
                moved - value if value.dtype.kind == "f" else value
                for moved, value in zip(_run(reference, low, call), exact, strict=True)
            ]
            for name, low in _narrower(call, task.precision)
        }
    narrow = _narrowest(call, task.precision)
    found = []
    for number, (value, (kind, _)) in enumerate(zip(exact, call.results, strict=True)):
        if not kind.is_float:
            found.append(Expected(kind, value, None, "identical"))
            continue
        bits = 53 if kind.name == "fp64" and narrow.name == "fp64" else 24
        count = ROUNDINGS + PER_TERM * min(terms[number], MOST_TERMS)
        with np.errstate(all="ignore"):
            magnitude = np.where(np.isfinite(value), np.minimum(np.abs(value), kind.largest), 0.0)
            scale = magnitude + np.where(np.isfinite(scales[number]), scales[number], 0.0)
            own = OWN_ROUNDINGS * 2.0**-narrow.precision if narrow.precision < bits else 0.0
            part = own + count * 2.0**-bits
            usual = float(np.sqrt(np.mean(np.square(scale)))) if scale.size else 0.0
            allowed = (
                ULP * last_place(magnitude, kind) + part * scale + (CANCELLED * 2.0**-bits + own / 2) * usual
            )
            largest = float(np.max(scale, initial=0.0))
        rule = f"{ULP:g} ulp of {kind} and {part:.2g} of the scale ({terms[number]:.0f} terms)"
        moved = {name: results[number] for name, results in lowered.items()}
        found.append(Expected(kind, value, allowed, rule, part, largest, moved))
    return found


def expected_like(task: Task, call: Call, before: Sequence[Expected]) -> list[Expected]:
    """The expected results from one run of the reference, with the tolerances of an earlier call of equal shapes."""
    exact = _run(task.reference(call), [leaf.wide for leaf in call.leaves], call)
    found = []
    for value, old in zip(exact, before, strict=True):
        allowed = None
        if old.allowed is not None:
            with np.errstate(all="ignore"):
                magnitude = np.where(np.isfinite(value), np.minimum(np.abs(value), old.kind.largest), 0.0)
            allowed = ULP * last_place(magnitude, old.kind) + old.part * (magnitude + old.scale)
        found.append(Expected(old.kind, value, allowed, old.rule, old.part, old.scale))
    return found


def check_depends(task: Task, random: Random) -> None:
    """Raise `TaskError` if results do not depend on the inputs, because a constant would then be right."""
    case = task.timed
    first, second = (task.make(random, case) for _ in range(2))
    if first.own_check:
        return
    pairs = zip(
        *(_run(task.reference(c), [leaf.wide for leaf in c.leaves], c) for c in (first, second)), strict=True
    )
    if all(a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs):
        raise TaskError(
            f"the results of task {task.name} do not depend on its inputs: a constant would be right. Change its "
            "inputs so that results depend on them"
        )


def _run(reference: Any, leaves: Sequence[Array], call: Call) -> list[Array]:
    try:
        with np.errstate(all="ignore"):
            found = [np.asarray(value) for value in reference([np.array(leaf) for leaf in leaves])]
    except Exception as error:
        raise TaskError(f"the reference failed in float64: {type(error).__name__}: {error}") from error
    shapes = [tuple(value.shape) for value in found]
    if call.results and shapes != [tuple(shape) for _, shape in call.results]:
        raise TaskError(f"the reference gives results of shapes {shapes}, but {call.results} were expected")
    return [value.astype(np.float64) if value.dtype.kind == "f" else value for value in found]


def _moved(leaves: Sequence[Array], random: Random, size: float, part: float = 1.0) -> list[Array]:
    """Perturb a part of the elements of floating-point arrays."""
    found = []
    for leaf in leaves:
        if leaf.dtype.kind != "f":
            found.append(leaf)
            continue
        change = np.asarray(random.uniform(-size, size, leaf.shape))
        if part < 1:
            change = np.where(random.random(leaf.shape) < part, change, 0.0)
        found.append(leaf * (1 + change))
    return found


def _scales(
    reference: Any, leaves: Sequence[Array], exact: Sequence[Array], random: Random, call: Call
) -> list[Array]:
    """How far each element of the results moves, relative to the perturbation of the inputs."""
    squares = [np.zeros(value.shape) for value in exact]
    for _ in range(SAMPLES):
        for total, value, moved in zip(
            squares, exact, _run(reference, _moved(leaves, random, MOVE), call), strict=True
        ):
            if value.dtype.kind == "f":
                with np.errstate(all="ignore"):
                    total += np.square((moved - value) / MOVE)
    return [np.sqrt(3 * total / SAMPLES) for total in squares]


def _terms(
    reference: Any, leaves: Sequence[Array], exact: Sequence[Array], random: Random, call: Call
) -> list[float]:
    """An estimate of the number of input elements that enter an element of each result."""
    found = [1.0] * len(exact)
    open_ = {number for number, value in enumerate(exact) if value.dtype.kind == "f" and value.size}
    part = 2.0 ** -np.ceil(np.log2(MOST_TERMS))
    while open_ and part < 1:
        results = _run(reference, _moved(leaves, random, 0.25, part), call)
        for number in list(open_):
            fraction = float(np.mean(results[number] != exact[number]))
            if fraction > 0.3:
                found[number] = min(MOST_TERMS, max(1.0, np.log1p(-min(fraction, 0.99)) / np.log1p(-part)))
                open_.discard(number)
        part *= 4
    return found


def _narrowest(call: Call, precision: str) -> Kind:
    """The least precise floating-point type among operands and results."""
    if precision:
        return KINDS[precision] if precision in KINDS else KINDS["fp16"]
    kinds = [leaf.kind for leaf in call.leaves] + [kind for kind, _ in call.results]
    floats = [kind for kind in kinds if kind.is_float]
    return min(floats, key=lambda kind: kind.precision, default=KINDS["fp32"])


def _narrower(call: Call, precision: str) -> Iterator[tuple[str, list[Array]]]:
    """The inputs rounded to the narrower types in which a cheating candidate would compute."""
    narrow = _narrowest(call, precision)
    if narrow.precision <= 4:
        return
    for name in ("fp16", "bf16") if narrow.precision > 11 else ("fp8e4nv", "fp8e5"):
        kind = KINDS[name]
        yield (
            name,
            [
                on_grid(leaf.wide, kind)
                if leaf.kind.is_float and leaf.kind.precision > kind.precision
                else leaf.wide
                for leaf in call.leaves
            ],
        )
