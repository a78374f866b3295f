"""The level `stress`: random programs as checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from triton_porting_kit.conformance.arrays import GuardedArray
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.stress.generator import STRIDE, generate
from triton_porting_kit.conformance.stress.launching import Launch, judge, start
from triton_porting_kit.conformance.stress.pages import placed
from triton_porting_kit.conformance.stress.program import Atomic, Let, Program, Put, walk
from triton_porting_kit.conformance.stress.typing import types_of
from triton_porting_kit.conformance.types import Array, Kind

if TYPE_CHECKING:
    from triton_porting_kit.conformance.context import Context

DEFAULT_COUNT = 200


@dataclass(frozen=True)
class ProgramBody:
    """The body of a check: the program of a seed."""

    seed: int

    def __call__(self, context: Context) -> None:
        launch = Launch.of(generate(self.seed))
        arrays: list[GuardedArray] = []

        def array(values: Array, kind: Kind) -> GuardedArray:
            arrays.append(context.keep(placed(context.memory, launch.place, kind, values)))
            return arrays[-1]

        outputs = start(launch, array)
        if not context.runs:
            return
        context.memory.synchronize()
        for what, comparison in judge(launch, outputs):
            context.compare(what, comparison)
        unchanged = all(a.is_unchanged() for a in arrays[: len(arrays) - len(outputs)])
        context.expect(unchanged, "the inputs are unchanged", "an input was written to")


def needs(program: Program) -> frozenset[str]:
    """The device capabilities that a program needs."""
    types = types_of(program)
    found = {f"type:{t.kind_name.lstrip('*@')}" for t in types.values()}
    for statement in walk(program.body):
        if isinstance(statement, Atomic) or (isinstance(statement, Put) and statement.kind != "store"):
            found |= {"feature:atomics", f"atomic:{types[statement.value].kind_name}"}
        elif isinstance(statement, Let) and statement.op == "tl.dot":
            found.add("feature:dot")
        elif isinstance(statement, Let) and statement.op == "tl.dot_scaled":
            found.add("feature:dot_scaled")
        elif isinstance(statement, Let) and statement.op == "tl.make_tensor_descriptor":
            found.add("feature:descriptors")
    return frozenset(found)


class ProgramCheck(Check):
    """The check of a random program.

    It generates the program where it runs, or where `needs` or `elements` is read. A plan of the whole suite has 450 of
    these checks, and most runs select few of them.
    """

    body: ProgramBody

    def __init__(self, name: str, requirement: str, body: ProgramBody, **fields: Any) -> None:
        super().__init__(name, requirement, body, **fields)
        for computed in {"needs", "elements"} - fields.keys():
            del self.__dict__[computed]

    @cached_property
    def needs(self) -> frozenset[str]:
        """The device capabilities that the program needs."""
        return self._limits[0]

    @cached_property
    def elements(self) -> int:
        """The number of elements of its largest tile."""
        return self._limits[1]

    @cached_property
    def _limits(self) -> tuple[frozenset[str], int]:
        program = generate(self.body.seed)
        return needs(program), max((t.count for t in types_of(program).values()), default=1)


@cache
def check_of(seed: int, name: str) -> Check:
    """The check for the program of a seed."""
    requirement = (
        f"The random program of seed {seed} gives what NumPy gives; `tpk fuzz --replay {seed}` shrinks it."
    )
    return ProgramCheck(name, requirement, ProgramBody(seed), compiles=True)


def program_of_run(seed: int, number: int) -> Check:
    """The `number`-th check of the seed of a run."""
    return check_of(seed * STRIDE + number, f"stress/programs/{number:05}")


def programs(count: int = 0, seed: int = 0) -> Iterator[Check]:
    """`count` checks (0: `DEFAULT_COUNT`) of the seed of a run."""
    for number in range(count or DEFAULT_COUNT):
        yield program_of_run(seed, number)


@dataclass(frozen=True)
class Selected:
    """A fixed selection of programs as checks."""

    group: str
    """What the names of the checks begin with."""
    first: int
    """The seed of number 0."""
    numbers: tuple[int, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(self.first + number for number in self.numbers)

    def __iter__(self) -> Iterator[Check]:
        return (check_of(self.first + n, f"{self.group}/{n:04}") for n in self.numbers)

    def named(self, name: str) -> Check | None:
        """The check of a name; None if it is of another group."""
        group, _, number = name.rpartition("/")
        if group != self.group or int(number) not in self.numbers:
            return None
        return check_of(self.first + int(number), name)


class _Checks:
    """The checks of a run without a seed or count."""

    def __iter__(self) -> Iterator[Check]:
        return programs()


CHECKS = _Checks()
