"""The entries of the table: operations, and the cases that result from them with types and shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from triton_porting_kit.conformance.language.shapes import Shape
from triton_porting_kit.conformance.language.work import Result, Work
from triton_porting_kit.conformance.types import KINDS, Kind

Release = tuple[int, int]

ALL = tuple(KINDS)
"""All types."""
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGER = SIGNED + UNSIGNED
BITS = ("i1", *INTEGER)
FP8 = tuple(name for name, kind in KINDS.items() if kind.is_minifloat)
WIDE = ("fp32", "fp64")
FLOAT = ("fp16", "bf16", *WIDE)
NUMBER = INTEGER + FLOAT


@dataclass(frozen=True)
class Tolerance:
    """The allowed difference from the exact result, in units in the last place of its type, and the reason for it."""

    ulp: float | Mapping[str, float]
    """One number for all types, or numbers by type name."""
    reason: str

    def of(self, kind: Kind) -> float:
        return self.ulp if isinstance(self.ulp, (int, float)) else self.ulp.get(kind.name, 0.0)


EXACT = Tolerance(0, "exact, or rounded once")
QUOTIENT = Tolerance(
    {"fp16": 2, "bf16": 2, "fp32": 2, **dict.fromkeys(INTEGER, 2.0)},
    "only div_rn guarantees a correctly rounded quotient; in fp32 others may use a full-range approximation",
)


@dataclass(frozen=True)
class Op:
    """An operation of the language, and how it is tested.

    The operation is not defined for types that are neither in `types` nor in `refused`.
    """

    name: str
    section: str
    form: str
    """The operation as a kernel writes it."""
    build: Callable[[Kind, Shape], Work]
    """Makes the kernel, its operands and its expected results. Raises ValueError if a shape is not meaningful for a
    type."""
    types: tuple[str, ...]
    shapes: tuple[Shape, ...]
    refused: tuple[str, ...] = ()
    """Types that Triton's front end refuses."""
    tolerance: Tolerance = EXACT
    since: Release = (0, 0)
    """The first release of Triton that has it."""
    until: Release = (99, 0)
    """The last release of Triton that has it."""
    note: str = ""
    """A note on the result, for docs/support.md."""
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Shapes that only some types use: the types, by the shape's name."""

    def in_release(self, release: Release) -> bool:
        return self.since <= release <= self.until

    def cases(self) -> Iterator[Case]:
        for name in self.types:
            for shape in self.shapes:
                if name in self.only.get(shape.name, self.types):
                    yield Case(self, KINDS[name], shape)

    def refusals(self) -> Iterator[Case]:
        """One case for each type that the front end refuses."""
        for name in self.refused:
            yield Case(self, KINDS[name], self.shapes[0])


@dataclass(frozen=True)
class Case:
    """An operation on a type and a shape."""

    op: Op
    kind: Kind
    shape: Shape

    @property
    def id(self) -> str:
        return f"{self.op.name}-{self.kind}-{self.shape}"

    @property
    def batch(self) -> str:
        """Cases with the same batch are compiled together."""
        return f"{self.op.name}-{self.kind}"

    def work(self) -> Work:
        """The kernel with its operands and results."""
        return self.op.build(self.kind, self.shape)

    def refused_work(self) -> Work:
        """The work for a type that the front end refuses: the kernel, with the arguments that it would have."""
        taken = KINDS[self.op.types[-1]]
        work = self.op.build(taken, self.shape)

        def own(kind: Kind) -> Kind:
            return self.kind if kind is taken else kind

        inputs = tuple((np.zeros(array.shape, own(kind).host), own(kind)) for array, kind in work.inputs)
        results = tuple(Result(own(r.kind), np.zeros(r.values.shape, own(r.kind).host)) for r in work.results)
        source = work.source.replace(taken.language, self.kind.language)
        return Work(source, inputs, results, work.grid, work.options)
