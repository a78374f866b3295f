"""``python -m triton_porting_kit.conformance.mandatory [FOLDER]`` writes the lists from the catalogue."""

from __future__ import annotations

import sys
from pathlib import Path

from triton_porting_kit.conformance.mandatory.writing import write

if __name__ == "__main__":
    write(*map(Path, sys.argv[1:]))
