"""How places of the kernel are named in loops."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from triton_porting_kit.compiler.loops.ir.source_comments import SourceComments
from triton_porting_kit.errors import SourceLocation


def operation(name: str, file: str | None = None, line: int = 1) -> Any:
    return SimpleNamespace(name=name, location=file and SourceLocation(file, line))


def test_files_of_one_name_are_told_apart() -> None:
    source_comments = SourceComments()
    assert source_comments.of(operation("tpk.load", "/x/a/kernel.py", 3)) == "tpk.load, kernel.py:3"
    assert source_comments.of(operation("tpk.load", "/x/b/kernel.py", 4)) == "tpk.load, b/kernel.py:4"
    assert source_comments.of(operation("tpk.load", "/y/b/kernel.py", 5)) == "tpk.load, y/b/kernel.py:5"
    assert source_comments.of(operation("tpk.store", "/x/a/kernel.py", 6)) == "tpk.store, kernel.py:6"
    assert source_comments.of(operation("scf.for")) == "scf.for"
    assert source_comments.lines() == [
        "// kernel.py: /x/a/kernel.py", "// b/kernel.py: /x/b/kernel.py", "// y/b/kernel.py: /y/b/kernel.py"
    ]  # fmt: skip
