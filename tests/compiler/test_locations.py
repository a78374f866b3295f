"""Source positions and the functions they lie in."""

from __future__ import annotations

import linecache

import pytest

from triton_porting_kit.compiler.locations import enclosing_function
from triton_porting_kit.errors import SourceLocation

SOURCE = """import triton

@triton.jit
def outer(x):
    y = x

    def inner():
        return y
    return inner

class Kernels:
    def method(self):
        pass
value = 1
"""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (1, None),
        (4, "outer"),
        (5, "outer"),
        (7, "inner"),
        (8, "inner"),
        (9, "outer"),
        (13, "method"),
        (14, None),
    ],
)
def test_innermost_function(line: int, name: str | None) -> None:
    file = "<kernels of test_locations>"
    linecache.cache[file] = (len(SOURCE), None, SOURCE.splitlines(True), file)
    assert enclosing_function(SourceLocation(file, line)) == name


@pytest.mark.parametrize("source", [None, "def broken(:\n  pass\n"])
def test_source_that_is_not_there_or_does_not_parse(source: str | None) -> None:
    file = f"<{source!r}>"
    if source is not None:
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    assert enclosing_function(SourceLocation(file, 1)) is None
