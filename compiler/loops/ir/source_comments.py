"""What the loops artefact says of the kernel's lines: a comment above what each operation became."""

from __future__ import annotations

from pathlib import PurePath

from triton_porting_kit.compiler.loops.ir.program import Operation


class SourceComments:
    """Writes places as ``kernel.py:12``, and knows which file each name is."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def of(self, operation: Operation) -> str:
        """The comment for an operation."""
        place = operation.location
        return operation.name if place is None else f"{operation.name}, {self._name(place.file)}:{place.line}"

    def lines(self) -> list[str]:
        """For the head of the artefact: where each file is."""
        return [f"// {name}: {path}" for path, name in self._names.items()]

    def _name(self, path: str) -> str:
        """The last part of a path, or as many as tell it from others."""
        known = self._names.get(path)
        if known is None:
            parts = PurePath(path).parts
            names = ["/".join(parts[-count:]) for count in range(1, len(parts) + 1)]
            known = next((name for name in names if name not in self._names.values()), path)
            self._names[path] = known
        return known
