"""Chips like n1 with units that do less: what a compiler may not take for granted. They do not exist in silicon."""

from __future__ import annotations

from pathlib import Path

from triton_porting_kit.chips import CHIPS

_GATHERS = "gather = true\ngather_cycles = 1 # of each element of a gather or scatter\n"
_LOCAL_ALIGNMENT = "alignment = 16 # of the first element in a local memory"

CHANGES: dict[str, dict[str, str]] = {
    "rows": {"dimensions = 5": "dimensions = 1", _GATHERS: ""},
    "planes": {
        "dimensions = 5": "dimensions = 2",
        "element_bytes = [1, 2, 4, 8]": "element_bytes = [4, 8]",
        _LOCAL_ALIGNMENT: "alignment = 128",
    },
    "stages": {
        '"global -> left", "global -> right", ': "",
        '"vector -> left", "vector -> right",': "",
        "element_bytes = [1, 2, 4, 8]": "element_bytes = [1, 2, 4]",
        "bytes = 65536": "bytes = 8192",
        "alignment = 16\nstart_cycles = 8": "alignment = 64\nstart_cycles = 8",
        "queue = 16": "queue = 1",
        "transposes = true": "transposes = false",
    },
}
"""By name, the text of n1's description that is replaced, and by what.

- rows: transfers of one dimension, and no gathers;
- planes: two dimensions, no elements of 1 or 2 bytes, and an alignment above that of the memories;
- stages: small operand memories that only the shared memory leads to, aligned pieces, and queues of one command.
"""


def described(name: str, folder: Path) -> str:
    """The path of a chip's description, which is written into a folder."""
    text = CHIPS["n1"].read_text(encoding="utf-8").replace('name = "n1"', f'name = "{name}"')
    for old, new in CHANGES[name].items():
        assert old in text, old
        text = text.replace(old, new)
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)
