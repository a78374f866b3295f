"""Operations of loop-level MLIR, and what they make of what is known of their operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from triton_porting_kit.compiler.loops.ir import regions
from triton_porting_kit.compiler.loops.ir.regions import Branch, LoopRegion
from triton_porting_kit.compiler.loops.ir.values import (
    KEEPS_ZEROS,
    PREDICATES,
    ZEROS,
    Value,
    fold,
    trailing_zeros,
    vector_type,
)
from triton_porting_kit.compiler.loops.ir.writer import RegionWriter

_DIVIDES = ("arith.divui", "arith.remui")


class LoopBuilder(RegionWriter):
    """Emits the body of one function."""

    def __init__(self, *, converts_f16: bool = True, lookup_lanes: int = 0, lookup_bytes: int = 0) -> None:
        super().__init__()
        self.converts_f16 = converts_f16
        self.lookup_lanes, self.lookup_bytes = lookup_lanes, lookup_bytes
        """These three are the target's: see `CpuTarget`."""
        self._zeros: dict[str, int] = {}
        """Trailing zero bits of scalars, by name, where any are known."""
        self._sums: dict[str, tuple[Value, int]] = {}
        """What a constant has been added to, and the constant, by the name of the i64."""
        self._quotients: dict[str, tuple[Value, int]] = {}
        """What has been divided by a constant without a remainder, and the constant, by the name of the i64."""
        self.marks_points = False
        """Whether loops over points of a tile are marked (see `regions.points_attributes`)."""
        self.readable: Value | None = None
        """The address of eight bytes that masked-off lanes may read, if gathers take no mask (`lane_memory.gather`)."""

    # --- scalars and vectors ---------------------------------------------------------------------

    def binary(self, op: str, a: Value, b: Value, flags: str = "") -> Value:
        """``arith``-style operation of two operands of one type; integer identities with 0 and 1 are folded."""
        divisor = 0  # of a division without a remainder
        if a.constant is not None or b.constant is not None:
            folded = fold(self.constant, op, a, b)
            if folded is not None:
                return folded
        if isinstance(b.constant, int):
            if op == "arith.andi":
                base, more = self._sums.get(a.name, (a, 0))
                if 0 <= b.constant < 1 << self.zeros(base):
                    return self.constant(more & b.constant, a.type)
            elif op in _DIVIDES and b.constant > 0 and (1 << self.zeros(a)) % b.constant == 0:
                if op == "arith.remui":
                    return self.constant(0, a.type)
                divisor = b.constant if a.type == "i64" else 0
        value = self.pure(f"{op} {a.name}, {b.name}{flags} : {a.type}", a.type, (a, b))
        if a.type == "i64" or a.type == "i32":
            rule = ZEROS.get(op)
            if rule is not None and (zeros := rule(self.zeros(a), self.zeros(b))):
                self._zeros[value.name] = zeros
        if divisor:
            self._quotients[value.name] = (a, divisor)
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
        factor = b.constant
        if not isinstance(factor, int):
            return self.binary("arith.muli", a, b)
        if a.name in self._quotients:
            dividend, divisor = self._quotients[a.name]
            if factor % divisor == 0:
                return self.mul(dividend, self.i64(factor // divisor))
        if a.name not in self._sums:
            return self.binary("arith.muli", a, b)
        base, more = self._sums[a.name]
        return self.add(self.binary("arith.muli", base, b), self.i64(more * factor))

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
