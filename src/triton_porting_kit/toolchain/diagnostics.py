"""The error messages of MLIR and LLVM, which are printed to the process's standard error, and not passed to Python."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass

from triton_porting_kit.errors import SourceLocation

_ERROR = re.compile(
    r'^(?:loc\("(?P<quoted>[^"]*)":(?P<l1>\d+):(?P<c1>\d+)\)|(?P<plain>[^:\s][^:\n]*):(?P<l2>\d+):(?P<c2>\d+))'
    r": error: *(?P<message>.*)$",
    re.MULTILINE,
)
_BARE = re.compile(r"^(?:loc\(.*\): )?(?:LLVM )?(?:error|ERROR): *(?P<message>.*)$", re.MULTILINE)
_PLACES = (("quoted", "plain"), ("l1", "l2"), ("c1", "c2"))
_OPERATION = re.compile(r"'([A-Za-z_]\w*(?:\.\w+)+)'")
_alone = threading.Lock()


@dataclass(frozen=True)
class Diagnosis:
    """The first error of a text: its message, its location, and the operation and the line that it quotes."""

    message: str
    place: SourceLocation | None = None
    operation: str | None = None
    line: str = ""


def first_error(text: str) -> Diagnosis | None:
    """The first error that a text of MLIR's or LLVM's messages reports."""
    found = _ERROR.search(text)
    place = None
    if found is not None:
        file, line, column = (found[a] or found[b] for a, b in _PLACES)
        place = SourceLocation(file, int(line), int(column))
    else:
        found = _BARE.search(text)
    if found is None:
        return None
    quoted = text[found.end() :].lstrip("\n").partition("\n")[0].strip()
    return Diagnosis(found["message"], place, _operation(found["message"]), quoted)


def _operation(message: str) -> str | None:
    found = _OPERATION.search(message)
    return found[1] if found else None


def stderr_of(function: Callable[[], object]) -> str:
    """The text that native code prints to standard error while `function` runs, whatever it raises.

    Use it to repeat a call that has failed, to learn why. Standard error is the whole process's, so the output of other
    threads is included.
    """
    with _alone, tempfile.TemporaryFile() as file:
        sys.stderr.flush()
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            with contextlib.suppress(Exception):
                function()
        finally:
            os.dup2(before, 2)
            os.close(before)
        file.seek(0)
        return file.read().decode(errors="replace")
