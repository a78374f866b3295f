"""Writing typed SSA values into open regions, and where each operation is placed.

A pure operation is placed in the outermost open region that already holds all its operands, and is written once per
region. So the emitted text has no loop-invariant or common sub-expressions, without passes over it afterwards. A memory
read stays in the innermost branch: the memory may be valid under the branch's condition only.

What is recorded about a region is valid while the region is open: after it, its code may not have run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from triton_porting_kit.compiler.loops.ir.regions import Region
from triton_porting_kit.compiler.loops.ir.values import Value, float_literal, parts, vector_type, wrapped

INDENT = "  "


class RegionWriter:
    """Writes the body of one function. Region 0 is the function's entry block."""

    def __init__(self) -> None:
        self._regions = [Region()]
        self._next = 0
        self._integers: dict[tuple[int, str], Value] = {}
        self.mark = ""
        """A suffix of every line (see `source_lines`)."""
        self.names_functions = False
        """Whether the operations of an expanded function are named as one (see `function`)."""
        self._functions = 0
        self._tag = ""

    # --- regions ---------------------------------------------------------------------------------

    @property
    def level(self) -> int:
        """Depth of the innermost open region."""
        return len(self._regions) - 1

    @property
    def region(self) -> Region:
        """The innermost open region."""
        return self._regions[-1]

    def at_end(self, forget: Callable[[], None]) -> None:
        """Call `forget` when the innermost region is closed, where its values become invalid."""
        self._regions[-1].endings.append(forget)

    def fresh(self, type: str, *, level: int | None = None, constant: int | float | None = None) -> Value:
        """A new value name, defined at `level` (the innermost region by default)."""
        self._next += 1
        return Value(f"%{self._next}", type, len(self._regions) - 1 if level is None else level, constant)

    def here(self, value: Value) -> Value:
        """`value`, marked so that operations on it stay in the innermost region, the only one that may need them."""
        return value._replace(level=self.level)

    def line(self, text: str, *, level: int | None = None) -> None:
        """Write a line into the region at `level` (the innermost by default)."""
        self._regions[self.level if level is None else level].lines.append(text + self.mark)

    def comment(self, text: str) -> None:
        """Write a comment for the reader of the artefact."""
        self.line(f"// {text}")

    def open(self, *, branch: bool = False) -> None:
        """Open a region; a `branch` runs on a condition."""
        self._regions.append(Region(len(self._regions) if branch else self._regions[-1].branch))

    def close(self) -> list[str]:
        """Close the innermost region and return its lines, indented."""
        region = self._regions.pop()
        region.is_open = False
        for forget in reversed(region.endings):
            forget()
        return [INDENT + line for line in region.lines]

    def text(self) -> list[str]:
        """The lines of the function body; only the entry region may be open."""
        assert self.level == 0, "a region was left open"
        return self._regions[0].lines

    # --- operations ------------------------------------------------------------------------------

    def pure(self, text: str, type: str, operands: Sequence[Value], *, floor: int = 0) -> Value:
        """Write ``%r = text`` at the outermost level that dominates its operands, but not above `floor`."""
        level = floor
        for operand in operands:
            if operand.level > level:
                level = operand.level
        region = self._regions[level]
        known = region.known.get(text)
        if known is not None:
            return known
        self._next += 1
        name = f"%{self._next}"
        value = region.known[text] = Value(name, type, level)
        region.lines.append(f"{name} = {text}{self._tag}{self.mark}")
        return value

    @contextmanager
    def function(self) -> Iterator[None]:
        """Pure operations written inside are those of one expanded function, if that is of interest: their location is
        named ``function:`` and a number.
        """
        before = self._tag
        if self.names_functions:
            self._functions += 1
            self._tag = f' loc("function:{self._functions}")'
        yield
        self._tag = before

    def effect(self, text: str, type: str | None = None) -> Value | None:
        """Write an operation that must stay where it is; returns its result when `type` is given."""
        value = None if type is None else self.fresh(type)
        self.line(text if value is None else f"{value.name} = {text}")
        return value

    def read(self, text: str, type: str, operands: Sequence[Value], *, floor: int) -> Value:
        """An operation that reads memory: placed like a pure one, not above `floor`, and reused until `forget_reads`.

        It is not placed above the innermost branch either: the memory may be valid under its condition only.
        """
        level = max(floor, self._regions[-1].branch, *(operand.level for operand in operands))
        region = self._regions[level]
        known = region.reads.get(text)
        if known is None:
            known = self.fresh(type, level=level)
            region.lines.append(f"{known.name} = {text}{self.mark}")
            region.reads[text] = known
        return known

    def forget_reads(self) -> None:
        """Memory may have changed: no earlier read may be reused."""
        for region in self._regions:
            region.reads.clear()

    # --- constants and scalars -------------------------------------------------------------------

    def constant(self, value: int | float | str, type: str) -> Value:
        """A scalar constant, or a splat of it for a vector type. Strings are MLIR literals (``0x7F800000``)."""
        if value.__class__ is not int:  # of floats, -0.0 equals 0.0
            return self._constant(value, type)
        known = self._integers.get((value, type))
        if known is None:
            known = self._integers[value, type] = self._constant(value, type)
        return known

    def _constant(self, value: int | float | str, type: str) -> Value:
        element = parts(type)[1]
        if isinstance(value, str):
            literal, number = value, None
        elif element.startswith(("f", "bf")):
            literal, number = float_literal(float(value), element), float(value)
        elif element == "i1":
            literal, number = ("true" if value else "false"), int(value)
        else:
            number = wrapped(int(value), 64 if element == "index" else int(element[1:]))
            literal = str(number)
        if type.startswith("vector<"):
            text = f"arith.constant dense<{literal}> : {type}"
        elif element == "i1" and literal in ("true", "false"):
            text = f"arith.constant {literal}"
        else:
            text = f"arith.constant {literal} : {type}"
        region = self._regions[0]
        known = region.known.get(text)
        if known is None:
            known = self.fresh(type, level=0, constant=number)
            region.lines.append(f"{known.name} = {text}")
            region.known[text] = known
        return known

    def i64(self, value: int) -> Value:
        """A constant of type i64."""
        known = self._integers.get((value, "i64"))
        return self.constant(value, "i64") if known is None else known

    def iota(self, lanes: int, element: str = "i32") -> Value:
        """The vector 0, 1, ..., lanes - 1."""
        type = vector_type(element, lanes)
        if lanes == 1:
            return self.constant(0, element)
        literal = "[" + ", ".join(str(i) for i in range(lanes)) + "]"
        return self.pure(f"arith.constant dense<{literal}> : {type}", type, ())
