"""Kernels on chips drawn at random: what a chip can hold, it computes."""

from __future__ import annotations

from pathlib import Path

import pytest
from random_chips import drawn
from test_other_chips import PARTS
from test_tiles_suite import ran

ALWAYS, SEEDS = 2, 48
FIRST = 131
"""Of the first, A lies in the vector unit's memory; of the second, the core reads the sums where they are."""


@pytest.mark.parametrize(
    "seed",
    [FIRST + k if k < ALWAYS else pytest.param(FIRST + k, marks=pytest.mark.slow) for k in range(SEEDS)],
)
def test_a_share_of_the_language(seed: int, tmp_path: Path) -> None:
    """Products of matrices, reductions and programs about products. Those of large tiles need more than some chips have."""
    path = tmp_path / "drawn.toml"
    path.write_text(drawn(seed, "drawn"))
    count, differ = ran("chip_suite.py", str(path), 121, PARTS)
    assert {name: wrong for name, wrong in differ.items() if "make the tiles smaller" not in wrong} == {}
    assert count > 20
