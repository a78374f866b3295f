"""The differential corpus: random programs that are not of the suite, with NumPy as the oracle.

Programs of a run with the seed S have the seeds from S · 1,000,000 on (`tpk fuzz --seed S`); the suite's own are of the
seed 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from triton_porting_kit.conformance.language.addresses import SEEDS
from triton_porting_kit.conformance.mutants.unit import Unit, program
from triton_porting_kit.conformance.stress.checks import DEFAULT_COUNT
from triton_porting_kit.conformance.stress.generator import ADDRESSES, STRIDE

CORPUS_SEED = 7
"""Of the programs that tell equivalent mutants from others."""
TRACED = 400
"""Of the corpus, the first programs, whose lines are known."""


def corpus() -> Iterator[Unit]:
    """Programs about operations and about addresses in turn, without end."""
    return (program(CORPUS_SEED * STRIDE + number // 2 + number % 2 * ADDRESSES) for number in count())


def stress() -> Iterator[Unit]:
    """What `tpk fuzz` goes on with where the mandatory levels end, without end."""
    for number in count():
        if number // 2 + DEFAULT_COUNT < ADDRESSES and number % 2 == 0:
            yield program(DEFAULT_COUNT + number // 2)
        elif (seed := ADDRESSES + number // 2) not in SEEDS:
            yield program(seed)
