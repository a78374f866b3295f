"""Writing loop-level MLIR: typed SSA values, open regions, and placement by dependence.

A pure operation is placed in the outermost open region that already holds all its operands, and is written once per
region. So the emitted text has no loop-invariant or common sub-expressions, without passes over it afterwards. A memory
read stays in the innermost branch: the memory may be valid under the branch's condition only.

What is recorded about a region is valid while the region is open: after it, its code may not have run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from triton_porting_kit.compiler.loops.ir import regions
from triton_porting_kit.compiler.loops.ir.regions import Branch, LoopRegion, Region
from triton_porting_kit.compiler.loops.ir.values import (
    KEEPS_ZEROS,
    PREDICATES,
    ZEROS,
    Value,
    float_literal,
    fold,
    parts,
    trailing_zeros,
    vector_type,
    wrapped,
)

INDENT = "  "


class LoopBuilder:
    """Emits the body of one function. Region 0 is the function's entry block."""

    def __init__(self, *, converts_f16: bool = True, lookup_lanes: int = 0, lookup_bytes: int = 0) -> None:
        self.converts_f16 = converts_f16
        self.lookup_lanes, self.lookup_bytes = lookup_lanes, lookup_bytes
        """These three are the target's: see `CpuTarget`."""
        self._regions = [Region()]
        self._next = 0
        self._integers: dict[tuple[int, str], Value] = {}
        self._zeros: dict[str, int] = {}
        """Trailing zero bits of scalars, by name, where any are known."""
        self._sums: dict[str, tuple[Value, int]] = {}
        """What a constant has been added to, and the constant, by the name of the i64."""
        self.mark = ""
        """A suffix of every line (see `source_lines`)."""
        self.names_functions = False
        """Whether the operations of an expanded function are named as one (see `function`)."""
        self._functions = 0
        self._tag = ""
        self.marks_points = False
        """Whether loops over points of a tile are marked (see `regions.points_attributes`)."""
        self.readable: Value | None = None
        """The address of eight bytes that masked-off lanes may read, if gathers take no mask (`lane_memory.gather`)."""

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
        return Value(f"%{self._next}", type, self.level if level is None else level, constant)

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
        value = self.fresh(type, level=level)
        region.lines.append(f"{value.name} = {text}{self._tag}{self.mark}")
        region.known[text] = value
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
        return self.constant(value, "i64")

    def iota(self, lanes: int, element: str = "i32") -> Value:
        """The vector 0, 1, ..., lanes - 1."""
        type = vector_type(element, lanes)
        if lanes == 1:
            return self.constant(0, element)
        literal = "[" + ", ".join(str(i) for i in range(lanes)) + "]"
        return self.pure(f"arith.constant dense<{literal}> : {type}", type, ())

    def binary(self, op: str, a: Value, b: Value, flags: str = "") -> Value:
        """``arith``-style operation of two operands of one type; integer identities with 0 and 1 are folded."""
        folded = fold(self.constant, op, a, b)
        if folded is not None:
            return folded
        if op == "arith.andi" and isinstance(b.constant, int):
            base, more = self._sums.get(a.name, (a, 0))
            if 0 <= b.constant < 1 << self.zeros(base):
                return self.constant(more & b.constant, a.type)
        value = self.pure(f"{op} {a.name}, {b.name}{flags} : {a.type}", a.type, (a, b))
        if a.type == "i64" or a.type == "i32":
            rule = ZEROS.get(op)
            if rule is not None and (zeros := rule(self.zeros(a), self.zeros(b))):
                self._zeros[value.name] = zeros
        return value

    def aligned(self, value: Value, multiple: int) -> None:
        """Note that a scalar is a multiple of a number."""
        self._zeros[value.name] = trailing_zeros(multiple)

    def zeros(self, value: Value) -> int:
        """How many trailing bits of a scalar integer are known to be zero."""
        if isinstance(value.constant, int):
            return trailing_zeros(value.constant)
        return self._zeros.get(value.name, 0)

    def add(self, a: Value, b: Value) -> Value:
        total = self.binary("arith.addi", a, b)
        if isinstance(b.constant, int) and total.type == "i64" and total.constant is None:
            self._sums[total.name] = (a, b.constant)
        return total

    def mul(self, a: Value, b: Value) -> Value:
        """A product. Neighbours' products with a constant are one product, and constants that are added to it."""
        known = self._sums.get(a.name)
        if known is None or not isinstance(b.constant, int):
            return self.binary("arith.muli", a, b)
        product = self.binary("arith.muli", known[0], b)
        return self.add(product, self.i64(known[1] * b.constant))

    def sub(self, a: Value, b: Value) -> Value:
        return self.binary("arith.subi", a, b)

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """``arith.cmpi``."""
        type = vector_type("i1", a.lanes) if a.is_vector else "i1"
        if isinstance(a.constant, int) and isinstance(b.constant, int) and predicate in PREDICATES:
            return self.constant(int(PREDICATES[predicate](a.constant, b.constant)), type)
        return self.pure(f"arith.cmpi {predicate}, {a.name}, {b.name} : {a.type}", type, (a, b))

    def logical_and(self, a: Value, b: Value) -> Value:
        for x, y in ((a, b), (b, a)):
            if x.constant == 1:
                return y
        return self.pure(f"arith.andi {a.name}, {b.name} : {a.type}", a.type, (a, b))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        if condition.constant is not None:
            return a if condition.constant else b
        types = f"{condition.type}, {a.type}" if condition.is_vector else a.type
        text = f"arith.select {condition.name}, {a.name}, {b.name} : {types}"
        return self.pure(text, a.type, (condition, a, b))

    def cast(self, op: str, value: Value, type: str, flags: str = "") -> Value:
        """``op value : from to type``; the element type may change, not the lanes."""
        if value.type == type:
            return value
        found = self.pure(f"{op} {value.name}{flags} : {value.type} to {type}", type, (value,))
        if op in KEEPS_ZEROS and value.name in self._zeros:
            self._zeros[found.name] = self._zeros[value.name]
        return found

    def broadcast(self, value: Value, lanes: int) -> Value:
        """A scalar in every lane; vectors and one-lane requests pass through."""
        if lanes == 1 or value.is_vector:
            return value
        type = vector_type(value.type, lanes)
        if value.constant is not None:
            return self.constant(value.constant, type)
        found = self.pure(f"vector.broadcast {value.name} : {value.type} to {type}", type, (value,))
        return found._replace(scalar=value)

    def extract(self, vector: Value, lane: int) -> Value:
        text = f"vector.extract {vector.name}[{lane}] : {vector.element} from {vector.type}"
        return self.pure(text, vector.element, (vector,))

    def address(self, base: Value, terms: Sequence[Value], element: str) -> Value:
        """`base` plus a sum of i64 element offsets. Loop-invariant terms are added outside the loops."""
        pointer = base
        for term in sorted(terms, key=lambda term: term.level):
            if term.constant == 0:
                continue
            text = (
                f"llvm.getelementptr {pointer.name}[{term.name}] : (!llvm.ptr, i64) -> !llvm.ptr, {element}"
            )
            pointer = self.pure(text, "!llvm.ptr", (pointer, term))
        return pointer

    # --- structured control flow -----------------------------------------------------------------

    @contextmanager
    def loop(
        self,
        start: Value,
        stop: Value,
        step: Value,
        carried: Sequence[Value] = (),
        *,
        attributes: str = "",
        points: int = 0,
        continues: bool = False,
    ) -> Iterator[LoopRegion]:
        """``scf.for``. Set ``region.yields`` inside if values are carried; ``region.results`` holds them afterwards.

        `attributes` is the text of an attribute dictionary; `points`, `continues`: see `regions.points_attributes`.
        """
        if self.marks_points:
            attributes = attributes or regions.points_attributes(points, continues=continues)
        self.open()
        induction = self.fresh(start.type)
        arguments = [self.fresh(value.type) for value in carried]
        region = LoopRegion(induction, arguments)
        self._zeros[induction.name] = min(self.zeros(start), self.zeros(step))
        yield region
        if carried:
            self.line(regions.yield_of(region.yields))
        lines = self.close()
        header = f"scf.for {induction.name} = {start.name} to {stop.name} step {step.name}"
        if carried:
            pairs = ", ".join(f"{a.name} = {v.name}" for a, v in zip(arguments, carried, strict=True))
            header += f" iter_args({pairs}) -> ({', '.join(v.type for v in carried)})"
        header += f" : {start.type} {{"
        region.results = self.region_operation(header, [value.type for value in carried], lines, attributes)

    @contextmanager
    def loop_below(self, stop: Value, carried: Sequence[Value]) -> Iterator[LoopRegion]:
        """``scf.while`` that runs while the first carried value, a signed integer, is below `stop`, as `loop` else."""
        types = ", ".join(value.type for value in carried)
        self.open()
        tested = [self.fresh(value.type) for value in carried]
        below = self.compare("slt", tested[0], stop)
        self.line(f"scf.condition({below.name}) {', '.join(v.name for v in tested)} : {types}")
        lines = self.close()
        self.open()
        arguments = [self.fresh(value.type) for value in carried]
        region = LoopRegion(arguments[0], arguments)
        yield region
        self.line(regions.yield_of(region.yields))
        header = f"^bb0({', '.join(f'{value.name}: {value.type}' for value in arguments)}):"
        lines += ["} do {", header, *self.close()]
        pairs = ", ".join(f"{a.name} = {v.name}" for a, v in zip(tested, carried, strict=True))
        region.results = self.region_operation(
            f"scf.while ({pairs}) : ({types}) -> ({types}) {{", [value.type for value in carried], lines
        )

    def if_else(self, condition: Value, then: Branch, otherwise: Branch | None = None) -> list[Value]:
        """``scf.if``: the callables emit the branches and return the values they yield."""
        if condition.constant is not None:
            branch = then if condition.constant else otherwise
            return list(branch()) if branch else []
        self.open(branch=True)
        values = list(then())
        if values:
            self.line(regions.yield_of(values))
        lines = self.close()
        if otherwise is not None:
            self.open(branch=True)
            others = list(otherwise())
            if others:
                self.line(regions.yield_of(others))
            lines += ["} else {", *self.close()]
        header = f"scf.if {condition.name}"
        if values:
            header += f" -> ({', '.join(value.type for value in values)})"
        return self.region_operation(header + " {", [value.type for value in values], lines)

    def region_operation(
        self, header: str, types: list[str], body: list[str], attributes: str = ""
    ) -> list[Value]:
        """Write an operation that holds `body`, with `attributes` after it, and return its results."""
        results = [self.fresh(type) for type in types]
        if len(results) == 1:
            header = f"{results[0].name} = {header}"
        elif results:
            # One name with a count, as MLIR prints it; `%7:2` is used as `%7#0`, `%7#1`.
            name = results[0].name
            header = f"{name}:{len(results)} = {header}"
            results = [Value(f"{name}#{i}", v.type, v.level) for i, v in enumerate(results)]
        self.line(header)
        self._regions[-1].lines += body
        self.line(f"}} {attributes}" if attributes else "}")
        return results
