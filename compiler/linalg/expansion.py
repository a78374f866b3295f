"""Operations become calls of small functions in MLIR text, which upstream's inliner then puts in their places.

So an expansion reads like MLIR, is parsed and verified once for each combination of types, and keeps the locations of
the operation that it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from triton_porting_kit.compiler.loops.ir.element_types import BITS
from triton_porting_kit.toolchain.mlir import ir

GRID = 6
"""Trailing i32 of a kernel: the sizes of the grid, then the program's position, along x, y and z."""


class Text:
    """The lines of a function's body."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._lines: list[str] = []
        self._count = 0

    @property
    def lines(self) -> list[str]:
        """All lines. Constants and parameters as indices come first, once each: so less is parsed, and merged later."""
        return [*(f"{name} = {operation}" for operation, name in self._first.items()), *self._lines]

    def name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def let(self, operation: str) -> str:
        """Add an operation with one result, and return the result's name."""
        name = self.name()
        self._lines.append(f"{name} = {operation}")
        return name

    def do(self, operation: str) -> None:
        """Add an operation without results."""
        self._lines.append(operation)

    def index(self, value: str, kind: str = "i64") -> str:
        """An integer as an index."""
        operation = f"arith.index_cast {value} : {kind} to index"
        return self._once(operation) if value.startswith("%a") else self.let(operation)

    def constant(self, value: int | str, kind: str = "index") -> str:
        # MLIR's syntax has no type after `true` and `false`.
        return self._once(f"arith.constant {value}" + ("" if value in ("true", "false") else f" : {kind}"))

    def _once(self, operation: str) -> str:
        """The result of an operation that needs no more than the function's parameters."""
        name = self._first.get(operation)
        if name is None:
            name = self._first[operation] = self.name()
        return name


def unplaced(line: str) -> str:
    """A line of a function's text whose operation is at no place: the text is no file."""
    return line if line.endswith("{") or line.startswith("^") else f"{line} loc(unknown)"


def located(text: str) -> str:
    """A module's text where what was inlined from such lines, or into them, is at the kernel's line alone."""
    defined = text.find(" = loc(unknown)\n")
    if defined < 0:
        return text
    unknown = text[text.rfind("\n", 0, defined) + 1 : defined]
    return re.sub(rf"callsite\((?:{unknown} at (#loc\d*)|(#loc\d*) at {unknown})\)", r"\1\2", text)


class Functions:
    """The functions that expand operations."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._texts: list[str] = []
        self._types: dict[Any, str] = {}

    def _spelled(self, kind: Any) -> str:
        """A type as text. Printing one takes longer than finding it."""
        found = self._types.get(kind)
        if found is None:
            found = self._types[kind] = str(kind)
        return found

    def call(
        self,
        operation: Any,
        label: str,
        operands: Sequence[Any],
        results: Sequence[str],
        body: Text,
        returned: Sequence[str],
        types: Sequence[Any] | None = None,
    ) -> list[Any]:
        """Call a function at the place of `operation`; its parameters are ``%a0``, ``%a1``, ... Returns the results.

        `types` are the types that `results` spells, where they are known.
        """
        parameters = ", ".join([f"%a{i}: {self._spelled(value.type)}" for i, value in enumerate(operands)])
        ending = f"return {', '.join(returned)} : {', '.join(results)}" if results else "return"
        kinds = f" -> ({', '.join(results)})" if results else ""
        lines = "".join([f"  {unplaced(line)}\n" for line in (*body.lines, ending)])
        text = f"({parameters}){kinds} {{\n{lines}}}\n"
        name = self._names.get((label, text))
        if name is None:
            name = self._names[label, text] = f"tpk_{label}_{len(self._names)}"
            self._texts.append(f"func.func private @{name}{text}")
        call = ir.Operation.create(
            "func.call",
            results=[ir.Type.parse(kind) for kind in results] if types is None else types,
            operands=list(operands),
            attributes={"callee": ir.FlatSymbolRefAttr.get(name)},
            loc=operation.location,
            ip=ir.InsertionPoint(operation),
        )
        return list(call.results)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._texts)

    def declare(self, text: str) -> None:
        """Add a function as text, such as the declaration of one that is defined elsewhere."""
        if f"{text}\n" not in self._texts:
            self._texts.append(f"{text}\n")

    def add_to(self, module: Any) -> None:
        """Define the functions in `module`, without those that it has.

        Raises MLIR's error for a text that is wrong, which is a defect.
        """
        if not self._texts:
            return
        given = {str(view.operation.attributes["sym_name"]) for view in module.body.operations}
        made = ir.Module.parse("".join(self._texts))
        for view in list(made.body.operations):
            if str(view.operation.attributes["sym_name"]) not in given:
                module.body.append(view.operation)


def nest(
    body: Text, shape: Sequence[int], first: Sequence[str] = (), last: Sequence[str] = ()
) -> Iterator[list[str]]:
    """Yield once, with the names of the indices, inside of a nest of `scf.for` over `shape`."""
    zero, one = body.constant(0), body.constant(1)
    indices = []
    for dimension, size in enumerate(shape):
        index = body.name()
        low = first[dimension] if first else zero
        high = last[dimension] if last else body.constant(size)
        body.do(f"scf.for {index} = {low} to {high} step {one} {{")
        indices.append(index)
    yield indices
    for _ in shape:
        body.do("}")


def tensor_type(shape: Sequence[int | str], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def memref_type(shape: Sequence[int | str], element: str, layout: str = "") -> str:
    return f"memref<{''.join(f'{size}x' for size in shape)}{element}{layout and ', ' + layout}>"


def width(element: str) -> int:
    """The bits of an element in memory."""
    return max(8, BITS[element])
