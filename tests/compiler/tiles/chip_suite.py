"""Runs a part of the conformance suite's kernels on the virtual NPU as a chip: see ``interpret_suite.py``.

``python chip_suite.py CHIP language PART PARTS``
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "interpreter"))

import interpret_suite
from chip_backend import running_on

if __name__ == "__main__":
    chip, what, first, second = sys.argv[1:]
    interpret_suite.main(what, int(first), int(second), running_on(chip))
