"""`Mutation`: one small mechanical change of one source file."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

PYTHON, CPP = "python", "c++"


@dataclass(frozen=True)
class Mutation:
    """A replacement of a range of bytes in a file. `to_json` and `from_json` are inverse."""

    path: str
    """The path of the file relative to the package, such as ``compiler/loops/tiles/access.py``."""
    language: str
    """`PYTHON` or `CPP`."""
    operator: str
    """The kind of change: ``comparison``, ``constant``, ``condition``, ..."""
    start: int
    """The offset of the first replaced byte."""
    end: int
    """The offset after the last replaced byte."""
    text: str
    """The replacement text."""
    line: int
    lines: tuple[int, int]
    """The first and last line of the enclosing statement, or of the head of a compound statement. A unit reaches the
    mutation if it executes one of these lines."""
    names: tuple[str, ...] = ()
    """For code that runs at import: the names that it assigns, or the functions whose defaults it defines. Lines that
    use these names may observe the mutation."""

    @property
    def name(self) -> str:
        """A name that is unique among the mutations of one state of the sources."""
        return f"{self.path}:{self.line}:{self.operator}:{self.start}-{self.end}:{self.text}"

    def apply(self, source: bytes) -> bytes:
        """The contents of the file with the mutation applied."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def diff(self, source: bytes) -> str:
        """A unified diff with two lines of context."""
        before = source.decode().splitlines(keepends=True)
        after = self.apply(source).decode().splitlines(keepends=True)
        return "".join(difflib.unified_diff(before, after, f"a/{self.path}", f"b/{self.path}", n=2))

    def rank(self, seed: int) -> str:
        """The sort key for the sample of a seed: a sample consists of the mutations with the smallest ranks."""
        return hashlib.sha256(f"{seed}:{self.name}".encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Mutation:
        return cls(**{**data, "lines": tuple(data["lines"]), "names": tuple(data["names"])})
