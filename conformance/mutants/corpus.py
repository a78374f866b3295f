"""The differential corpus: random programs outside of the suite, with NumPy as the oracle.

The programs of a run with seed S (`tpk fuzz --seed S`) have the seeds from S · 1,000,000 on. The suite's own programs
are those of seed 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from triton_porting_kit.conformance.language.addresses import SEEDS
from triton_porting_kit.conformance.mutants.unit import Unit, program
from triton_porting_kit.conformance.stress.checks import DEFAULT_COUNT
from triton_porting_kit.conformance.stress.generator import ADDRESSES, STRIDE

CORPUS_SEED = 7
"""The seed of the programs that distinguish equivalent mutants from others."""
TRACED = 400
"""The number of programs, at the start of the corpus, whose executed lines are recorded."""


def corpus() -> Iterator[Unit]:
    """An endless sequence of programs, alternating between operations and addresses."""
    return (program(CORPUS_SEED * STRIDE + number // 2 + number % 2 * ADDRESSES) for number in count())


def stress() -> Iterator[Unit]:
    """An endless sequence of the programs with which `tpk fuzz` continues after those of the mandatory levels."""
    for number in count():
        if number // 2 + DEFAULT_COUNT < ADDRESSES and number % 2 == 0:
            yield program(DEFAULT_COUNT + number // 2)
        elif (seed := ADDRESSES + number // 2) not in SEEDS:
            yield program(seed)
