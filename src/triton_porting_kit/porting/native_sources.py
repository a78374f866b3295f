"""Reading the C++ sources of a generated repository's extension without compiling them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from triton_porting_kit import untrusted
from triton_porting_kit.errors import PortingKitError


@dataclass(frozen=True)
class Place:
    """A line of a file; the file's path is relative to the top of the repository."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Function:
    """A function definition: its place, and its body without comments and string literals."""

    place: Place
    body: str


@dataclass(frozen=True)
class NativeSources:
    """The C and C++ sources of the repository in `root`."""

    root: Path

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        """All defined functions, by name without the class."""
        found: dict[str, list[Function]] = {}
        for path in self._files:
            text = _without(_native(path), texts=True)
            for name, start, body in definitions(text):
                place = Place(path.relative_to(self.root).as_posix(), text.count("\n", 0, start) + 1)
                found.setdefault(name, []).append(Function(place, body))
        return found

    def bound(self, name: str) -> Place | None:
        """The place where C++ binds something to this Python name."""
        for path in self._files:
            text = _without(_native(path), texts=False)
            if match := re.search(rf'\b(?:def\w*|bind)\s*\([^"()]*"{re.escape(name)}"', text):
                return Place(path.relative_to(self.root).as_posix(), text.count("\n", 0, match.end()) + 1)
        return None

    def behind(self, names: Iterable[str], keep_out: Collection[str] = ()) -> list[Function]:
        """The C++ functions with these names, and the functions that they call, found by name.

        Calls of members of other objects, of overloaded functions, and of functions in `keep_out` are not followed.
        """
        found: list[Function] = []
        waiting, seen = list(names), set(names)
        while waiting:
            for function in self.functions.get(waiting.pop(0), ()):
                found.append(function)
                for match in re.finditer(r"(?<![\w.>:])(?:\w+::)?(\w+)\s*\(", function.body):
                    called = match[1]
                    if match[0].startswith("std::") or called in seen or called in keep_out:
                        continue
                    if len(self.functions.get(called, ())) == 1:
                        seen.add(called)
                        waiting.append(called)
        return found

    @cached_property
    def _files(self) -> list[Path]:
        """The C and C++ files in ``native/``. If there is no such folder: all outside of build folders."""
        folder = self.root / "native"
        if folder.is_dir():
            found = [*folder.rglob("*")]
        else:
            tops = [
                path for path in self.root.iterdir() if not re.match(r"\.|build|dist$|conformance", path.name)
            ]
            found = [each for top in tops for each in (top.rglob("*") if top.is_dir() else [top])]
        return sorted(path for path in found if path.suffix in (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp"))

    def __bool__(self) -> bool:
        return bool(self._files)


_WORDS = frozenset(
    {"if", "for", "while", "switch", "catch", "return", "sizeof", "alignof", "decltype", "static_assert"}
)


_FOLLOWS = re.compile(r"\s*+(?:(?:const|noexcept|override|final)\b\s*+|->\s*+[\w:<>*& ]++\s*+)*+\{")
"""The text between the parameters of a function and its body."""


def definitions(text: str) -> Iterator[tuple[str, int, str]]:
    """The function definitions in C++ without comments and string literals: (name, start, body).

    Functions within the body of another are left out.
    """
    closed = _closed(text)
    end = 0
    for match in re.finditer(r"\b([A-Za-z_]\w*+)\s*+\(", text):
        if match[1] in _WORDS or match.start() < end:
            continue
        follows = _FOLLOWS.match(text, closed.get(match.end() - 1, len(text)))
        if follows:
            end = closed.get(follows.end() - 1, len(text))
            yield match[1], match.start(1), text[follows.end() : end - 1]


def _closed(text: str) -> dict[int, int]:
    """For each parenthesis or brace that is closed, by position: the position after the closing one."""
    found: dict[int, int] = {}
    waiting: dict[str, list[int]] = {")": [], "}": []}
    for match in re.finditer(r"[(){}]", text):
        if match[0] in "({":
            waiting[")" if match[0] == "(" else "}"].append(match.start())
        elif waiting[match[0]]:
            found[waiting[match[0]].pop()] = match.end()
    return found


_COMMENT_OR_TEXT = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.DOTALL
)


def _native(path: Path) -> str:
    return untrusted.read_bytes(path, untrusted.SOURCE, PortingKitError).decode(errors="replace")


def _without(text: str, *, texts: bool) -> str:
    """C++ with comments replaced by blanks, and with `texts` also string literals. Positions do not change."""

    def blank(match: re.Match[str]) -> str:
        if match[0][0] != "/" and not texts:
            return match[0]
        return re.sub(r"[^\n]", " ", match[0])

    return _COMMENT_OR_TEXT.sub(blank, text)
