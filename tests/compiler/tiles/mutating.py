"""Mutants of kernels in the stage ``placed``: each lacks one thing that the compiler has planned.

| kind | |
|---|---|
| wait | the core does not wait for a command |
| order | a unit does not wait for a command of another one |
| copies | both copies of a buffer are one |
| bound | a bound of a descriptor is one more or one less; if it has none, its first size; or a list's length |

A bound that cuts nothing off is only changed so that it cuts something off: the engine clips it to the tile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

ONE, ZERO = "%mutant_one", "%mutant_zero"
_HEAD = (
    f"\n    {ONE} = arith.constant 1 : i64\n    {ZERO} = arith.constant 0 : i64\n"
    f"    %mutant_nowhere = llvm.inttoptr {ONE} : i64 to !llvm.ptr"
)
_FUNCTION = re.compile(r"^  func\.func [^\n]*tpk\.kernel[^\n]*\{(?: loc\([^\n]*\))?$", re.MULTILINE)
TRAP = (
    '"tpk.npu_element_store"(%mutant_nowhere, %mutant_zero, %mutant_one) '
    "{operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!llvm.ptr, i64, i64) -> ()"
)
"""An access outside of all memory."""


@dataclass(frozen=True)
class Mutant:
    """A changed kernel. `what` it lacks, at which line of the text; `trap`: the kernel as it was, which fails where the
    change is.
    """

    kind: str
    what: str
    text: str
    trap: str


def mutants(text: str) -> Iterator[Mutant]:
    """All mutants of a kernel in the stage ``placed``."""
    for name in ("wait", "order"):
        for match in re.finditer(rf'^ *"tpk\.npu_{name}".*\n', text, re.MULTILINE):
            yield _mutant(name, "is removed", text, match.start(), match.end(), "")
    yield from _copies(text)
    for match in re.finditer(
        r'^ *%\S+ = "tpk\.npu_(?:dma|gather|scatter)"\(([^)]*)\) \{([^}]*)\}.*\n', text, re.MULTILINE
    ):
        for what, changed in _bounds(text, match):
            yield _mutant("bound", what, text, match.start(), match.end(), changed)


def _mutant(kind: str, what: str, text: str, start: int, end: int, instead: str) -> Mutant:
    line = text.count("\n", 0, start) + 1
    trap = text[:start] + f"    {TRAP}\n" + text[start:]
    return Mutant(kind, f"{line}: {what}", _headed(text[:start] + instead + text[end:]), _headed(trap))


def _headed(text: str) -> str:
    """The text with the constants that mutants use."""
    match = _FUNCTION.search(text)
    assert match is not None, text[:2000]
    return text[: match.end()] + _HEAD + text[match.end() :]


def _copies(text: str) -> Iterator[Mutant]:
    for match in re.finditer(
        r'^ *(%\w+) = "tpk\.npu_buffer"\(\)[^\n]*copies = 2 : i64.*\n', text, re.MULTILINE
    ):
        pattern = rf"= llvm\.getelementptr {re.escape(match[1])}\[%\w+\]"
        changed = re.sub(pattern, f"= llvm.getelementptr {match[1]}[{ZERO}]", text)
        if changed == text:
            raise ValueError(f"no use of the second copy of {match[1]}")
        line = text.count("\n", 0, match.start()) + 1
        yield Mutant("copies", f"{line}: are one", _headed(changed), "")


def _bounds(text: str, match: re.Match[str]) -> Iterator[tuple[str, str]]:
    """What is changed in a command, and its line instead."""
    line, attributes = match[0], match[2]
    count = re.search(r"count = (\d+) : i64", attributes)
    if count is not None:
        yield "count - 1", line.replace(count[0], f"count = {int(count[1]) - 1} : i64")
        return
    if 'direction = "move"' in attributes:
        return
    shape = [int(size) for size in _array(attributes, "shape")]
    segments = [int(size) for size in _array(attributes, "operandSegmentSizes")]
    operands = match[1].split(", ")
    low = sum(segments[:4])
    if not segments[4]:
        sizes = ", ".join(str(size) for size in shape)
        for step in (-1, 1):
            if shape[0] + step:
                other = ", ".join(str(size) for size in (shape[0] + step, *shape[1:]))
                yield (
                    f"size 0 {step:+}",
                    line.replace(f"shape = array<i64: {sizes}>", f"shape = array<i64: {other}>"),
                )
        return
    for d, size in enumerate(shape):
        at = (low + d, low + len(shape) + d)
        steps = [(at[0], "low", 1), (at[1], "high", -1)]
        if _constant(text, operands[at[0]]) != 0:
            steps.append((at[0], "low", -1))
        if _constant(text, operands[at[1]]) != size:
            steps.append((at[1], "high", 1))
        for number, name, step in steps:
            moved = [*operands]
            moved[number] = "%mutant_bound"
            operation = "arith.addi" if step > 0 else "arith.subi"
            head = f"    %mutant_bound = {operation} {operands[number]}, {ONE} : i64\n"
            yield f"{name} {d} {step:+}", head + line.replace(f"({match[1]})", f"({', '.join(moved)})", 1)


def _array(attributes: str, name: str) -> list[str]:
    found = re.search(rf"{name} = array<i\d+: ([^>]*)>", attributes)
    assert found is not None, attributes
    return found[1].split(", ")


def _constant(text: str, value: str) -> int | None:
    found = re.search(rf"{re.escape(value)} = arith\.constant (-?\d+) : i64", text)
    return None if found is None else int(found[1])
