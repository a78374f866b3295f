"""Source comments of the loops artefact: a comment above each operation's code names its kernel line."""

from __future__ import annotations

from pathlib import PurePath

from triton_porting_kit.compiler.loops.ir.program import Operation


class SourceComments:
    """Writes locations as ``kernel.py:12``, and records the file that each name stands for."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def of(self, operation: Operation) -> str:
        """The comment for an operation."""
        place = operation.location
        return operation.name if place is None else f"{operation.name}, {self._name(place.file)}:{place.line}"

    def lines(self) -> list[str]:
        """The head of the artefact: the path of each file name."""
        return [f"// {name}: {path}" for path, name in self._names.items()]

    def _name(self, path: str) -> str:
        """The last part of a path, or as many parts as tell it from others."""
        known = self._names.get(path)
        if known is None:
            parts = PurePath(path).parts
            names = ["/".join(parts[-count:]) for count in range(1, len(parts) + 1)]
            known = next((name for name in names if name not in self._names.values()), path)
            self._names[path] = known
        return known
