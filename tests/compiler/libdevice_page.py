"""The table of docs/libdevice.md, made from the table that the compiler works from.

``python tests/compiler/libdevice_page.py`` writes it into the page.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from triton_porting_kit.compiler.libdevice import Function, functions

PAGE = Path(__file__).resolve().parents[2] / "docs" / "libdevice.md"
START, END = "<!-- table: made by tests/compiler/libdevice_page.py -->\n", "<!-- end of the table -->\n"


def table() -> str:
    """The functions by theme, as Markdown."""
    lines = []
    for theme, rows in groupby(functions().values(), key=lambda row: row.theme):
        lines += [
            f"### {theme[0].upper()}{theme[1:]}",
            "",
            "| function | operands → result | error | |",
            "|---|---|---|---|",
        ]
        lines += [_line(row) for row in rows]
        lines.append("")
    return "\n".join(lines)


def _line(row: Function) -> str:
    signatures = "; ".join(
        f"{', '.join(overload.operands)} → {'int1' if row.predicate else overload.result}"
        for overload in row.overloads
    )
    single, double = row.ulp
    error = (
        "exact, or rounded once"
        if not single
        else f"{single:g} ulp"
        if single == double
        else f"{single:g}, {double:g} ulp"
    )
    return f"| `{row.name}` | {signatures} | {error} | {row.note} |"


def page(text: str) -> str:
    """`text` with its table replaced by the present one."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
