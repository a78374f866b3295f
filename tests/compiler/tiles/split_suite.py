"""Runs a part of the conformance suite's kernels on the virtual NPU as a chip, with all tiles split that can be, small
ones too.

``python split_suite.py CHIP language PART PARTS``: see ``interpret_suite.py``, whose output this has.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parents[1] / "interpreter"))

import interpret_suite
from chip_backend import running_on

from triton_porting_kit.compiler.tiles.passes import TILE_PASSES, TilePass

LIMIT = 64
"""Bytes of a piece."""
COUNT = [0]
"""How many kernels were split."""


def split_first() -> None:
    """Let the compiler split tiles before it tries anything else."""
    passes = cast("dict[str, TilePass]", TILE_PASSES)
    start, split = passes["programs"], passes["split"]

    def started(module: Any, chip: Any) -> None:
        start(module, chip)
        COUNT[0] += split(module, chip, LIMIT)

    passes["programs"] = started


if __name__ == "__main__":
    chip, what, first, second = sys.argv[1:]
    split_first()
    # A change of a stage, even to the same text, has kernels of its own in Triton's cache.
    interpret_suite.main(what, int(first), int(second), running_on(chip, change=str))
    assert COUNT[0] > 0, "nothing was split"
