"""Source comments: the kernel line of each line of the loops artefact, or of C++ generated from it.

The loops artefact has comments of the form ``// tpk.load, kernel.py:12``, and ``// kernel.py: /path/of/kernel.py`` in
its head. The code that reads a parameter of the kernel follows a comment ``// parameter NAME``.
"""

from __future__ import annotations

import re
from typing import Any

from triton_porting_kit.compiler.locations import source_location
from triton_porting_kit.errors import SourceLocation
from triton_porting_kit.toolchain import mlir

_COMMENT = re.compile(
    r"\s*// (?P<what>parameter [^:]+|(?P<operation>[\w.]+)(?:, (?P<file>.+):(?P<line>\d+))?)\s*$"
)
_FILE = re.compile(r"\s*// (?P<name>[^,:]+): (?P<path>.+?)\s*$")
_ALIAS = re.compile(r'(#loc\d*) = loc\("-":(\d+):\d+\)')
_LOCATED = re.compile(r" loc\((#loc\d*)\)$")
_PLACE = re.compile(r'loc\("-":(\d+):\d+\)')


class SourceComments:
    """The comments of a text, queried in the order of its lines."""

    def __init__(self, text: str) -> None:
        self.files: dict[str, str] = {}
        self._comments: dict[int, re.Match[str]] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if "//" not in line:
                continue
            if found := _COMMENT.match(line):
                self._comments[number] = found
            elif (found := _FILE.match(line)) and not self._comments:
                self.files[found["name"]] = found["path"]
        self._seen = 0

    @property
    def head(self) -> list[str]:
        """The lines of the head, which give the paths of the files."""
        return [f"{name}: {path}" for name, path in self.files.items()]

    def before(self, operation: Any) -> list[str]:
        """The comments between the operation of the previous call and this one."""
        return self.between(_line(operation) or 0)

    def between(self, line: int) -> list[str]:
        """The comments between the line of the previous call and this one."""
        if line <= self._seen:
            return []
        found = [self._comments[n]["what"] for n in range(self._seen + 1, line) if n in self._comments]
        self._seen = line
        return found

    def location(self, operation: Any) -> SourceLocation | None:
        """The kernel line that an operation of the loops comes from."""
        line = _line(operation)
        return source_location(operation.location) if line is None else self.location_of_line(line)

    def location_of_line(self, line: int) -> SourceLocation | None:
        """The kernel line that the nearest comment above a line of the text names."""
        comment = self._above(line)
        if comment is None or not comment["file"]:
            return None
        return SourceLocation(self.files.get(comment["file"], comment["file"]), int(comment["line"]))

    def operation_of_line(self, line: int) -> str | None:
        """The operation that the nearest comment above a line names."""
        comment = self._above(line)
        return comment["operation"] if comment else None

    def _above(self, line: int) -> re.Match[str] | None:
        numbers = [number for number in self._comments if number <= line]
        return self._comments[max(numbers)] if numbers else None


def _line(operation: Any) -> int | None:
    """The line of the parsed text."""
    found = _PLACE.fullmatch(str(operation.location))
    return int(found[1]) if found else None


def commented(module: Any, original: str) -> str:
    """The text of a module that was parsed from `original` and changed since, with the comments where they belong."""
    located = mlir.printed(module).splitlines()
    places = {found[1]: int(found[2]) for line in located if (found := _ALIAS.match(line))}
    plain = mlir.printed(module, lines=False).splitlines()
    starts = _starts([line for line in located if not line.startswith("#loc")])
    comments = SourceComments(original)
    result = [f"// {line}" for line in comments.head]
    for line, alias in zip(plain, starts, strict=True):
        result += [f"// {comment}" for comment in comments.between(places.get(alias, 0))]
        result.append(line)
    return "\n".join(result) + "\n"


def _starts(lines: list[str]) -> list[str]:
    """For each line of a printed module, the alias of the location of the operation that starts there, or nothing."""
    found = [""] * len(lines)
    opened: list[int] = []
    for number, line in enumerate(lines):
        alias = match[1] if (match := _LOCATED.search(line)) else ""
        at = number
        if line.lstrip().startswith("}"):
            at = opened.pop()
        if line.endswith("{"):
            opened.append(at)  # the location stands behind the last region
        found[at] = found[at] or alias
    return found
