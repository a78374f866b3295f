"""Writes the table of docs/inline-ptx.md: ``python -m triton_porting_kit.compiler.ptx FILE``."""

from __future__ import annotations

import sys
from pathlib import Path

from .document import written

path = Path(sys.argv[1])
path.write_text(written(path.read_text()))
