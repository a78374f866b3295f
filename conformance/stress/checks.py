"""The level `stress`: random programs as checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.stress.generator import generate
from triton_porting_kit.conformance.stress.launching import Launch, judge, start
from triton_porting_kit.conformance.stress.program import Atomic, Let, Program, walk
from triton_porting_kit.conformance.stress.typing import types_of

if TYPE_CHECKING:
    from triton_porting_kit.conformance.context import Context

DEFAULT_COUNT = 200
STRIDE = 1_000_000
"""Seeds of programs that belong to one seed of a run: of seed 3, from 3,000,000 on."""


@dataclass(frozen=True)
class ProgramBody:
    """The body of a check: the program of a seed."""

    seed: int

    def __call__(self, context: Context) -> None:
        launch = Launch.of(generate(self.seed))
        inputs = []

        outputs = start(launch, lambda values, kind: inputs.append(context.array(values, kind)) or inputs[-1])  # type: ignore[func-returns-value]
        if not context.runs:
            return
        context.memory.synchronize()
        for what, comparison in judge(launch, outputs):
            context.compare(what, comparison)
        unchanged = all(a.is_unchanged() for a in inputs[: len(inputs) - len(outputs)])
        context.expect(unchanged, "the inputs are unchanged", "an input was written to")


def needs(program: Program) -> frozenset[str]:
    """The capabilities of a chip that a program takes."""
    types = types_of(program)
    found = {f"type:{t.kind_name}" for t in types.values()}
    for statement in walk(program.body):
        if isinstance(statement, Atomic):
            found |= {"feature:atomics", f"atomic:{types[statement.value].kind_name}"}
        elif isinstance(statement, Let) and statement.op == "tl.dot":
            found.add("feature:dot")
    return frozenset(found)


@cache
def check_of(seed: int, number: int) -> Check:
    """The check of the program of a seed, the `number`-th of a run."""
    program = generate(seed)
    largest = max((t.count for t in types_of(program).values()), default=1)
    return Check(
        f"stress/programs/{number:05}",
        f"The random program of seed {seed} gives what NumPy gives; `tpk fuzz --replay {seed}` shrinks it.",
        ProgramBody(seed),
        needs=needs(program),
        elements=largest,
        compiles=True,
    )


def programs(count: int = 0, seed: int = 0) -> Iterator[Check]:
    """`count` checks (0: `DEFAULT_COUNT`) of the seed of a run."""
    for number in range(count or DEFAULT_COUNT):
        yield check_of(seed * STRIDE + number, number)


class _Checks:
    """Those of a run that says nothing else, made when they are looked at."""

    def __iter__(self) -> Iterator[Check]:
        return programs()


CHECKS = _Checks()
