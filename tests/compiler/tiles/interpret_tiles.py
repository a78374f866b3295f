"""Runs a part of the conformance suite's kernels as far as a stage of a chip's compiler, in the interpreter.

``python interpret_tiles.py CHIP language PART PARTS``: see ``interpret_suite.py``, whose output this has.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "interpreter"))

import interpret_suite
from interpreted_backend import InterpretedCompiler, describe, interpreting

from triton_porting_kit import chips
from triton_porting_kit.compiler import Pipeline, Stage
from triton_porting_kit.compiler.npu import npu_pipeline


def compiler(chip: str) -> type[InterpretedCompiler]:
    """A compiler for a chip, as far as the last stage that can be interpreted."""

    class TilesCompiler(InterpretedCompiler):
        def pipeline(self, options: Any) -> Pipeline:
            stages = npu_pipeline(chips.load(chip)).until("placed").stages
            return Pipeline((*stages, Stage("interpreted", describe)))

        def version(self) -> str:
            return f"{super().version()}-{chip}"

    return TilesCompiler


if __name__ == "__main__":
    chip, what, first, second = sys.argv[1:]
    interpret_suite.main(what, int(first), int(second), interpreting(compiler(chip)))
