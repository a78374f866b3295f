"""`Problem`: a kernel on one type and shape, with operands and an oracle, and the check created from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from triton_porting_kit.conformance import tolerances
from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import Comparison, identical, of_wrong
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.rounding import from_float64, ulp_distance
from triton_porting_kit.conformance.types import KINDS, Array, Kind

Random = np.random.Generator


class Operand(NamedTuple):
    """Values that are representable in an element type."""

    values: Array
    kind: Kind


@dataclass(frozen=True)
class Expected:
    """One expected result: exact integers, or float64 with the allowed absolute error."""

    what: str
    values: Array
    kind: Kind
    allowed: Array | None = None
    """The allowed absolute error of each element; None: results must be identical."""
    rule: str = "identical"

    def compare(self, actual: Array) -> Comparison:
        """Compare every element. NaN equals NaN; expected values beyond the range of the type may be infinity."""
        if self.allowed is None or actual.shape != self.values.shape:
            return identical(actual, self.values)
        wide = actual.astype(np.float64)
        with np.errstate(all="ignore"):
            near = np.abs(wide - self.values) <= self.allowed
        near |= ulp_distance(wide, self.values, self.kind) == 0  # NaN, infinity
        return of_wrong(~near, actual, self.values, self.rule, kind=self.kind)


@dataclass(frozen=True)
class Problem:
    """One kernel on one type and shape."""

    shape: str
    """The last part of the check's name: letters, digits and dashes."""
    kind: str
    operands: Callable[[Random], Iterable[Operand]]
    launch: Callable[..., Any]
    """Called with the operands as arrays. Launches the kernel, and returns one array or a tuple of results."""
    expected: Callable[..., Any]
    """Called with the values of the operands (floating-point ones as float64). Returns an `Expected` or a tuple."""
    elements: int
    """The number of elements of the kernel's largest tile."""
    needs: tuple[str, ...] = ()
    """Required capabilities other than the type."""
    peer: Callable[..., Any] | None = None
    """An equivalent NumPy function, timed on the operands in their own types. Problems of real size have one."""
    tolerance: str = ""
    """The entry of the table of tolerances, if it is not the family's."""
    writes: tuple[int, ...] = ()
    """Positions of the operands that the kernel may change."""

    def __call__(self, context: Context) -> None:
        """The body of the check: run the kernel and compare its results."""
        operands = list(self.operands(context.random))
        arrays = [context.array(o.values, o.kind) for o in operands]
        results = as_tuple(self.launch(*arrays))
        context.memory.synchronize()
        if not context.runs:
            return
        for position, array in enumerate(arrays):
            if position not in self.writes:
                context.expect(array.is_unchanged(), f"operand {position} is as it was")
        expected = as_tuple(self.expected(*(wide(o) for o in operands)))
        for result, wanted in zip(results, expected, strict=True):
            context.compare(wanted.what, wanted.compare(context.read(result)))


@dataclass
class Family:
    """A group of problems, and the checks created from them."""

    group: str
    """The second part of the checks' names."""
    does: str
    """What the kernel computes, as the start of a requirement: ``Softmax of each row``."""
    tolerance: str
    """The entry of the table of tolerances, whose reason is part of the requirement."""
    needs: tuple[str, ...] = ()
    checks: Checks = field(init=False)

    def __post_init__(self) -> None:
        self.checks = Checks(f"kernels/{self.group}", compiles=True)

    def add(self, problem: Problem) -> None:
        """Create a check from a problem."""
        entry = problem.tolerance or self.tolerance
        right = "exact" if entry == "exact" else "as in float64"
        self.checks.add(
            f"{problem.kind}-{problem.shape}",
            f"{self.does} on {problem.kind}, {problem.shape}, is {right}: {tolerances.TABLE[entry].reason}",
            problem,
            needs={f"type:{problem.kind}", *self.needs, *problem.needs},
            elements=problem.elements,
        )


def operand(values: Any, kind: str | Kind) -> Operand:
    """Values rounded to a type."""
    own = KINDS[kind] if isinstance(kind, str) else kind
    values = np.asarray(values)
    return Operand(from_float64(values, own) if own.is_float else values.astype(own.host), own)


def normal(
    random: Random, shape: tuple[int, ...], kind: str | Kind, scale: Any = 1.0, shift: Any = 0.0
) -> Operand:
    """Normally distributed numbers of a floating-point type. `scale` and `shift`: numbers, or one value per element."""
    return operand(random.standard_normal(shape) * scale + shift, kind)


def wide(item: Operand) -> Array:
    """The values for an oracle: floating-point ones as float64."""
    return item.values.astype(np.float64) if item.kind.is_float else item.values


def expect(
    what: str,
    values: Array,
    kind: str | Kind,
    tolerance: str,
    scale: Array | float | None = None,
    terms: int = 1,
) -> Expected:
    """An expected result from float64 `values`, with the tolerance of an entry of the table."""
    own = KINDS[kind] if isinstance(kind, str) else kind
    entry = tolerances.TABLE[tolerance]
    return Expected(what, values, own, entry.allowed(values, own, scale, terms), entry.rule(own, terms))


def exact(what: str, values: Array, kind: str | Kind) -> Expected:
    """An expected result that must be identical."""
    return Expected(what, values, KINDS[kind] if isinstance(kind, str) else kind)


def empty(shape: Sequence[int], like: Any, kind: str = "") -> Any:
    """Allocate an array in the same memory as another, of the same type or of `kind`."""
    return like.device.empty(KINDS[kind] if kind else like.kind, shape)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Convert a single value to a tuple."""
    return value if isinstance(value, tuple) else (value,)
