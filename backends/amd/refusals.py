"""What LLVM would end the process over, refused before it gets there."""

from __future__ import annotations

import re
from typing import Any

from triton_porting_kit.errors import CompilationError, SourceLocation
from triton_porting_kit.toolchain import compat

_WITHOUT_BF16 = frozenset({"gfx90a", "gfx1100"})
_CONVERSION = re.compile(
    r"\btt\.fp_to_fp\b[^\n]* : (?:tensor<[\dx]*)?(?P<source>\w+)[^\n]*? -> (?:tensor<[\dx]*)?(?P<target>\w+)"
    r"[^\n]*?(?:loc\((?P<place>#\w+)\))?$",
    re.MULTILINE,
)
_SMALL_FLOATS = frozenset({"f8E4M3FNUZ", "f8E5M2FNUZ"})


def check_conversions(module: Any, arch: str) -> None:
    """Raise `CompilationError` where TTIR converts between bf16 and float8e4b8 or float8e5b16, and nothing can.

    Before 3.8 Triton makes instructions of it that GPUs without bf16 conversions do not have.
    """
    if compat.release() >= (3, 8) or arch not in _WITHOUT_BF16:
        return
    ttir = str(module)
    for found in _CONVERSION.finditer(ttir):
        types = {found["source"], found["target"]}
        if "bf16" in types and types & _SMALL_FLOATS:
            raise CompilationError(
                f"{arch} has no conversion from {found['source']} to {found['target']}",
                operation="tt.fp_to_fp",
                location=_place(ttir, found["place"]),
                remedy="convert to float32 first, or use Triton 3.8 or newer",
            )


def _place(text: str, name: str | None) -> SourceLocation | None:
    """What an alias of a location, such as ``#loc5``, stands for, names and call sites looked through."""
    while name:
        definition = re.search(rf"^{re.escape(name)} = loc\((.*)\)$", text, re.MULTILINE)
        if definition is None:
            return None
        if place := re.search(r'"([^"]*)":(\d+):(\d+)', definition[1]):
            return SourceLocation(place[1], int(place[2]), int(place[3]))
        inner = re.search(r"#\w+", definition[1])
        name = inner[0] if inner else None
    return None
