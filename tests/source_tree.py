"""The sources of the kit: `src` is the import path, in which the packages with a folder at the top are links."""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
TEMPLATE = SRC / "triton_porting_kit" / "backend_template" / "template"
"""Sources of other packages."""


def files() -> Iterator[Path]:
    """Every file below `src`, links followed; without what Python compiled."""
    for folder, folders, names in os.walk(SRC, followlinks=True):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (Path(folder) / name for name in sorted(names))


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the kit: its dotted name and its file."""
    for path in files():
        if path.suffix == ".py" and TEMPLATE not in path.parents:
            yield ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__"), path


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file, which nobody changes."""
    return ast.parse(path.read_text())
