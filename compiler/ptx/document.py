"""The table of docs/inline-ptx.md, generated from the rows.

python -m triton_porting_kit.compiler.ptx docs/inline-ptx.md
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from .instruction import Instruction
from .table import ROWS

BEGIN = "<!-- written by `make docs` from compiler/ptx: begin -->"
END = "<!-- written by `make docs` from compiler/ptx: end -->"


def written(document: str) -> str:
    """The document with the table brought up to date. Raises ValueError if it has no place for it."""
    before, found, rest = document.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"the document lacks the line {BEGIN} or {END}")
    return "\n".join([before + BEGIN, "", *_lines(), END + after])


def _lines() -> Iterator[str]:
    for section, rows in groupby(sorted(ROWS, key=_section), _section):
        yield f"### {section}"
        yield ""
        yield "| instructions | result |"
        yield "|---|---|"
        for row in rows:
            forms = "<br>".join(f"`{_form(form)}`" for form in row.forms)
            meaning = row.meaning.replace("|", r"\|")
            yield f"| {forms} | {meaning} |"
        yield ""


def _section(row: Instruction) -> str:
    return row.section


def _form(form: str) -> str:
    """``{.a|.b}`` and ``[.a|.b]`` without the bars, which end cells of a table."""
    return form.replace("|", ",")
