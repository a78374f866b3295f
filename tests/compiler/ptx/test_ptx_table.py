"""The table as a whole: every row is tested, documented and distinct."""

from __future__ import annotations

import re
from pathlib import Path

from triton_porting_kit.compiler.ptx.document import written
from triton_porting_kit.compiler.ptx.table import ROWS, find

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "inline-ptx.md"


PLACES = (
    "rz", "eq", "finite", "s32", "f32", "f64", "f16", "bf16", "f16x2", "bf16x2", "e4m3x2", ".f16", 
)  # fmt: skip
"""What the tests of this folder write in the placeholders of opcodes."""


def test_every_row_is_tested() -> None:
    """By a statement in this folder."""
    text = "".join(path.read_text() for path in HERE.glob("test_*.py"))
    opcodes = {
        opcode
        for place in PLACES
        for mode in ("rz", "rni")
        for opcode in re.findall(
            r"\b[a-z][a-z0-9]*(?:\.\w+)+",
            re.sub(r"\{\w*\}", place, text.replace("{mode}", mode).replace("{name}.{source}", "s32.f32")),
        )
    }
    untested = [row.forms for row in ROWS if not any(row.pattern.fullmatch(opcode) for opcode in opcodes)]
    assert untested == []


def test_forms_are_those_of_one_row() -> None:
    for row in ROWS:
        for form in row.forms:
            plain = re.sub(r"\{[^}]*\}", "", form)
            opcode = re.sub(r"\[([^|\]]*)[^\]]*\]", r"\1", plain)
            assert find(opcode) is row, opcode


def test_the_page_has_every_row() -> None:
    text = PAGE.read_text()
    assert written(text) == text, "run `make docs`"
