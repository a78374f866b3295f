"""The tables of docs/libdevice.md, made from the tables that the compiler works from.

``python tests/compiler/libdevice_page.py`` writes them into the page.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from triton_porting_kit.compiler.libdevice import Function, Overload, functions
from triton_porting_kit.compiler.loops.arithmetic.library import signatures

PAGE = Path(__file__).resolve().parents[2] / "docs" / "libdevice.md"
START, END = "<!-- table: made by tests/compiler/libdevice_page.py -->\n", "<!-- end of the table -->\n"
ROUTINES = "<!-- routines: made by tests/compiler/libdevice_page.py -->\n", "<!-- end of the routines -->\n"
C_TYPES = {"fp32": "float", "fp64": "double"} | {
    f"{u}int{n}": f"{u}int{n}_t" for u in ("", "u") for n in (32, 64)
}


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


def c_signature(overload: Overload) -> str:
    """``float(float, int32_t)``: the result, and the operands, of one lane of a routine."""
    return f"{C_TYPES[overload.result]}({', '.join(C_TYPES[operand] for operand in overload.operands)})"


def routines() -> str:
    """The routines that kernels may call by their signatures, as Markdown."""
    by_signature: dict[str, list[str]] = {}
    for symbol, overload in signatures().items():
        result, _, operands = c_signature(overload).rstrip(")").partition("(")
        parameters = [f"{result} *", *(f"const {operand} *" for operand in operands.split(", "))]
        by_signature.setdefault(", ".join(parameters), []).append(symbol)
    lines = ["| after the count | routines, `tpk_math_` before each |", "|---|---|"]
    for parameters, symbols in sorted(by_signature.items()):
        names = ", ".join(f"`{symbol.removeprefix('tpk_math_')}`" for symbol in sorted(symbols))
        lines.append(f"| `{parameters}` | {names} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """`text` with its tables replaced by the present ones."""
    for start, end, made in ((START, END, table()), (*ROUTINES, routines())):
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        text = f"{before}{start}\n{made}\n{end}{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
