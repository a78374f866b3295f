"""The differential corpus: random programs outside of the suite, with NumPy as the oracle.

The programs of a run with seed S (`tpk fuzz --seed S`) have the seeds from S · 1,000,000 on. The suite's own programs
are those of seed 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from triton_porting_kit.conformance.language import addresses, products
from triton_porting_kit.conformance.mutants.unit import Unit, program
from triton_porting_kit.conformance.stress.campaign import seeds_of
from triton_porting_kit.conformance.stress.checks import DEFAULT_COUNT

CORPUS_SEED = 7
"""The seed of the programs that distinguish equivalent mutants from others."""
TRACED = 400
"""The number of programs, at the start of the corpus, whose executed lines are recorded."""


def corpus() -> Iterator[Unit]:
    """An endless sequence of programs, in turn of each family."""
    return map(program, seeds_of(CORPUS_SEED, None))


def stress() -> Iterator[Unit]:
    """An endless sequence of the programs with which `tpk fuzz` continues after those of the mandatory levels."""
    mandatory = {*range(DEFAULT_COUNT), *addresses.CHECKS.seeds, *products.CHECKS.seeds}
    return (program(seed) for seed in seeds_of(0, None) if seed not in mandatory)
