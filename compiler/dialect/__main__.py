"""Writes the tables of docs/architecture.md: ``python -m triton_porting_kit.compiler.dialect FILE``."""

from __future__ import annotations

import sys
from pathlib import Path

from .document import updated

path = Path(sys.argv[1])
path.write_text(updated(path.read_text()))
