"""Rewrites the text of compiler artefacts, one operation at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from triton_porting_kit.conformance.faults.fault import Rewrite

_LINE = re.compile(
    r'^(?P<indent> *)(?P<results>%[^"=]+ = )?"(?P<name>[\w.]+)"\((?P<operands>[^()]*)\)(?P<tail> .*|)$'
)
_SEGMENTS = re.compile(r"operandSegmentSizes = array<i32: ([^>]*)>")
_TYPES = re.compile(r" : \((?P<operands>.*?)\) -> (?P<results>.*?)(?P<location> loc\(.*|)$")


@dataclass
class Operation:
    """An operation in MLIR's generic form, on one line; of an operation with regions, the first line."""

    indent: str
    results: str
    """The results, including `` = ``; or empty."""
    name: str
    operands: list[str]
    tail: str
    """Everything after the operands: properties or attributes, types, the location."""
    number: int
    """The line number, which makes new names unique."""

    def __str__(self) -> str:
        return f'{self.indent}{self.results}"{self.name}"({", ".join(self.operands)}){self.tail}'

    @property
    def result(self) -> str:
        return self.results.removesuffix(" = ").partition(":")[0]

    @property
    def operand_types(self) -> list[str]:
        match = _TYPES.search(self.tail)
        return _split(match["operands"]) if match else []

    @property
    def result_type(self) -> str:
        match = _TYPES.search(self.tail)
        return match["results"] if match else ""

    @property
    def segments(self) -> list[int]:
        """The number of operands of each group."""
        match = _SEGMENTS.search(self.tail)
        return [int(part) for part in match[1].split(",")] if match else []

    def place(self, segment: int) -> slice:
        """The positions of the operands of a group."""
        start = sum(self.segments[:segment])
        return slice(start, start + self.segments[segment])

    def drop(self, segment: int) -> None:
        """Remove the operands of a group."""
        at, types, segments = self.place(segment), self.operand_types, self.segments
        del self.operands[at], types[at]
        segments[segment] = 0
        self.set_types(types)
        self.tail = _SEGMENTS.sub(
            f"operandSegmentSizes = array<i32: {', '.join(map(str, segments))}>", self.tail
        )

    def set_types(self, types: list[str]) -> None:
        """Set the types of operands."""
        match = _TYPES.search(self.tail)
        assert match
        self.tail = (
            f"{self.tail[: match.start('operands')]}{', '.join(types)}{self.tail[match.end('operands') :]}"
        )

    def renamed(self, name: str) -> str:
        """The line with another operation name."""
        return f'{self.indent}{self.results}"{name}"({", ".join(self.operands)}){self.tail}'

    def fresh(self, what: str) -> str:
        """A unique name for a new value."""
        return f"%fault_{what}_{self.number}"


Change = Callable[[Operation], "str | None"]
"""Returns the text that replaces an operation; None: the operation as modified."""


def each(names: str, change: Change, *, where: str = "", unless: str = "") -> Rewrite:
    """Change every operation whose name matches the pattern `names`; `where`, `unless`: patterns for its tail."""

    def rewrite(text: str) -> str:
        lines = text.split("\n")
        for number, line in enumerate(lines):
            match = _LINE.match(line)
            if match is None or not re.fullmatch(names, match["name"]):
                continue
            if (where and not re.search(where, match["tail"])) or (
                unless and re.search(unless, match["tail"])
            ):
                continue
            operation = Operation(
                match["indent"], match["results"] or "", match["name"], _split(match["operands"]), match["tail"], number
            )  # fmt: skip
            changed = change(operation)
            lines[number] = str(operation) if changed is None else changed
        return "\n".join(lines)

    return rewrite


def renamed(old: str, new: str, **conditions: str) -> Rewrite:
    """Replace each operation `old` by another."""
    return each(re.escape(old), lambda operation: operation.renamed(new), **conditions)


def swapped(names: str, first: int = 0, second: int = 1, **conditions: str) -> Rewrite:
    """Exchange two operands."""

    def change(operation: Operation) -> None:
        operands = operation.operands
        operands[first], operands[second] = operands[second], operands[first]

    return each(names, change, **conditions)


def attributes(names: str, old: str, new: str, **conditions: str) -> Rewrite:
    """Replace text after the operands: properties, attributes, types."""

    def change(operation: Operation) -> None:
        operation.tail = re.sub(old, new, operation.tail)

    return each(names, change, **conditions)


def replaced(old: str, new: str | Callable[[re.Match[str]], str]) -> Rewrite:
    """Replace a regular expression (``^`` and ``$`` match at lines)."""
    return lambda text: re.sub(old, new, text, flags=re.MULTILINE)


def written(names: str, template: str, **conditions: str) -> Rewrite:
    """Replace an operation by the lines of a template.

    The template may use ``{r}`` (the result), ``{0}``, ``{1}``, ... (operands), ``{T}`` and ``{T0}``, ``{T1}``, ...
    (the types of the result and of operands), ``{n}`` (a number that makes names unique).
    """

    def change(operation: Operation) -> str:
        types = {f"T{k}": name for k, name in enumerate(operation.operand_types)}
        text = template.format(
            *operation.operands, r=operation.result, T=operation.result_type, n=operation.number, **types
        )
        return "\n".join(operation.indent + line.strip() for line in text.strip().split("\n"))

    return each(names, change, **conditions)


def dropped(names: str, *segments: int, **conditions: str) -> Rewrite:
    """Remove the operands of some groups."""

    def change(operation: Operation) -> None:
        for segment in segments:
            operation.drop(segment)

    return each(names, change, **conditions)


def derived(
    names: str, segment: int, template: str, *, index: int | None = None, **conditions: str
) -> Rewrite:
    """Replace each operand of a group, or the one at `index`, by a value computed from it.

    The template computes ``{y}`` from ``{x}``, whose type is ``{T}``; ``{n}`` makes names unique.
    """

    def change(operation: Operation) -> str:
        lines = []
        at = operation.place(segment)
        types = operation.operand_types
        for k in range(at.start, at.stop):
            if index is None or k - at.start == index:
                new = operation.fresh(f"derived{k}")
                number = f"{operation.number}_{k}"
                lines.append(template.format(x=operation.operands[k], y=new, T=types[k], n=number))
                operation.operands[k] = new
        return "\n".join([*lines, str(operation)])

    return each(names, change, **conditions)


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    parts: list[str] = []
    depth, start = 0, 0
    for at, letter in enumerate(text):
        if letter in "(<[{":
            depth += 1
        elif letter in ")>]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts
