"""Shortens paths of installed packages in reports to the part that is the same on every machine."""

from __future__ import annotations

import functools
import os
import sys


def without_roots(text: str) -> str:
    """Remove the folders from which modules are imported from all paths in `text`.

    Reports are passed on to others, for whom ``triton/runtime/jit.py`` is clearer than a path on another machine.
    """
    for root in _roots(tuple(sys.path)):
        text = text.replace(root, "")
    return text


@functools.cache
def _roots(folders: tuple[str, ...]) -> list[str]:
    """The folders, longest first, because one may contain another."""
    found = {os.path.join(os.path.abspath(folder), "") for folder in folders if folder}
    return sorted(found - {os.sep}, key=len, reverse=True)
