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
    """Replaces bytes of a file. `to_json` and `from_json` are inverse."""

    path: str
    """Of the file, below the package ``triton_porting_kit``, as ``compiler/loops/tiles/access.py``."""
    language: str
    """`PYTHON` or `CPP`."""
    operator: str
    """The kind of change: ``comparison``, ``constant``, ``condition``, ..."""
    start: int
    """Where the replaced bytes begin in the file."""
    end: int
    """Where they end."""
    text: str
    """The replacement text."""
    line: int
    lines: tuple[int, int]
    """The first and the last line of the statement, or of the head of the compound statement, that it is in: it is
    reached when one of them runs."""
    names: tuple[str, ...] = ()
    """Of code that runs when the module is imported: names that it gives a value to, or functions whose defaults it
    has. Who uses them is who may see the change."""

    @property
    def name(self) -> str:
        """A name that is unique among the mutations of one state of the sources."""
        return f"{self.path}:{self.line}:{self.operator}:{self.start}-{self.end}:{self.text}"

    def apply(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def diff(self, source: bytes) -> str:
        """What changes, in unified form without context beyond two lines."""
        before = source.decode().splitlines(keepends=True)
        after = self.apply(source).decode().splitlines(keepends=True)
        return "".join(difflib.unified_diff(before, after, f"a/{self.path}", f"b/{self.path}", n=2))

    def rank(self, seed: int) -> str:
        """Its place in the sample of a seed: a sample is the mutations of the smallest ranks."""
        return hashlib.sha256(f"{seed}:{self.name}".encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Mutation:
        return cls(**{**data, "lines": tuple(data["lines"]), "names": tuple(data["names"])})
