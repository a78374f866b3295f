"""``python -m triton_porting_kit.conformance.language.support`` writes docs/support.md from the table of operations."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from triton_porting_kit.conformance.language import OPS, Op
from triton_porting_kit.conformance.language.table import ALL
from triton_porting_kit.conformance.types import KINDS
from triton_porting_kit.toolchain import compat

HEAD = """# Supported operations and types

`make docs` writes this page from the table of operations in `conformance/language/`. The tests run every case of the
table on the CPU backend.

| cell | meaning |
| --- | --- |
| a number | the number of shapes tested with this type: ranks 0 to 5, dimensions of 1, odd masks |
| `no` | Triton's front end refuses the combination; this is tested too |
| empty | the operation is not defined for the type |

Every result is compared with float64, higher precision or exact integers. The column "within" gives a tolerance in
units in the last place (ulp). Results without a tolerance are exact, or rounded once.

"""


def document(ops: Iterable[Op] = OPS) -> str:
    """The whole document."""
    text = [HEAD]
    for section, entries in groupby(ops, key=lambda op: op.section):
        text.append(_section(section, list(entries)))
    return "".join(text)


def _section(name: str, ops: list[Op]) -> str:
    columns = [kind for kind in ALL if any(kind in op.types or kind in op.refused for op in ops)]
    head = ["operation", *columns, "within", "notes"]
    rows = [head, ["---"] * len(head)]
    notes: list[str] = []
    for op in ops:
        cells = [_cell(op, kind) for kind in columns]
        within = _within(op)
        marks = []
        for footnote in (_releases(op), op.note, within and f"{within}: {op.tolerance.reason}."):
            if footnote:
                if footnote not in notes:
                    notes.append(footnote)
                number = notes.index(footnote) + 1
                marks.append(f"[{number}](#{_anchor(name, number)})")
        form = op.form.replace("|", "\\|").replace("\n", "; ")
        rows.append([f"{op.name} `{form}`", *cells, within, " ".join(marks)])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    listed = [f'<a id="{_anchor(name, k)}"></a>{k}. {note}' for k, note in enumerate(notes, 1)]
    return f"## {name}\n\n" + "\n".join(lines) + "\n\n" + "".join(f"{line}\n\n" for line in listed)


def _anchor(section: str, number: int) -> str:
    return f"{section.lower().replace(' ', '-')}-{number}"


def _cell(op: Op, kind: str) -> str:
    if kind in op.refused:
        return "no"
    return str(sum(case.kind is KINDS[kind] for case in op.cases()) or "")


def _within(op: Op) -> str:
    bounds = {op.tolerance.of(KINDS[kind]) for kind in op.types}
    if bounds == {0}:
        return ""
    return "/".join(f"{bound:.4g}" for bound in sorted(bounds)) + " ulp"


def _releases(op: Op) -> str:
    since = f"Since Triton {op.since[0]}.{op.since[1]}." if op.since > compat.TRIED[0] else ""
    until = f"Until Triton {op.until[0]}.{op.until[1]}." if op.until < (99, 0) else ""
    return f"{since} {until}".strip()


def main(path: str = "docs/support.md") -> None:
    Path(path).write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
