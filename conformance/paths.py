"""Paths in what a report shows: those of installed packages are cut down to what is the same everywhere."""

from __future__ import annotations

import functools
import os
import sys


def without_roots(text: str) -> str:
    """`text` with the folders that modules are imported from taken off the paths in it.

    A report is shown to others, to whom ``triton/runtime/jit.py`` says more than where its reader's neighbour keeps it.
    """
    for root in _roots(tuple(sys.path)):
        text = text.replace(root, "")
    return text


@functools.cache
def _roots(folders: tuple[str, ...]) -> list[str]:
    """Longest first: one may lie inside of another."""
    found = {os.path.join(os.path.abspath(folder), "") for folder in folders if folder}
    return sorted(found - {os.sep}, key=len, reverse=True)
