"""Kernel source positions from MLIR locations."""

from __future__ import annotations

import ast
import functools
import linecache
import re
from typing import Any

from triton_porting_kit.errors import SourceLocation

_FILE_LINE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


def source_location(location: Any) -> SourceLocation | None:
    """The kernel line that an operation comes from; None if unknown.

    Triton nests name, call-site and fused locations. A call site prints the callee first, so the first file position
    outside Triton's own library, and outside of texts without a file, is the innermost line that the user wrote.
    """
    found = _places(str(location))
    if not found:
        return None
    return (call_sites(location) or found)[0]


def call_sites(location: Any) -> list[SourceLocation]:
    """The kernel lines that an operation comes from, each called by the next; without Triton's own library."""
    return [
        place
        for place in _places(str(location))
        if place.file != "-" and "/triton/language/" not in place.file
    ]


@functools.lru_cache(maxsize=4096)
def _places(text: str) -> tuple[SourceLocation, ...]:
    return tuple(
        SourceLocation(file, int(line), int(column)) for file, line, column in _FILE_LINE.findall(text)
    )


def parameter_name(argument: Any) -> str | None:
    """The name of a parameter in the kernel's source, from the location of a block argument; None if it has none."""
    found = re.match(r'loc\("([^"]+)"\(', str(argument.location))
    if found is None:
        return None
    if "\\" not in found[1]:
        return found[1]
    # MLIR prints non-ASCII bytes as \XX.
    data = re.sub(rb"\\([0-9A-F]{2})", lambda hex: bytes.fromhex(hex[1].decode()), found[1].encode())
    return data.decode(errors="replace")


def enclosing_function(place: SourceLocation) -> str | None:
    """The name of the innermost function whose definition contains a line; None if the source is not available."""
    spans = _functions("".join(linecache.getlines(place.file)))
    holding = [span for span in spans if span[0] <= place.line <= span[1]]
    return max(holding)[2] if holding else None


@functools.lru_cache(maxsize=16)
def _functions(source: str) -> list[tuple[int, int, str]]:
    """First line, last line and name of every function in `source`; empty if it cannot be parsed."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    return [
        (node.lineno, node.end_lineno or node.lineno, node.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    ]
