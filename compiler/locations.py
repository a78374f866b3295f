"""Kernel source positions out of MLIR locations."""

from __future__ import annotations

import re
from typing import Any

from triton_porting_kit.errors import SourceLocation

_FILE_LINE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


def source_location(location: Any) -> SourceLocation | None:
    """The place in the user's kernel that an operation comes from, or None when it is unknown.

    Triton nests name, call-site and fused locations. In a call site the callee is printed first, so the first
    file position outside Triton's own library is the innermost line that the user wrote.
    """
    found = [
        SourceLocation(file, int(line), int(column))
        for file, line, column in _FILE_LINE.findall(str(location))
    ]
    if not found:
        return None
    own = [place for place in found if "/triton/language/" not in place.file]
    return (own or found)[0]
