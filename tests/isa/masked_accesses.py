"""Every form of a masked access that loops make, run beside pages that nothing may touch: a program for one level.

A case is an element type, a count of lanes, an operation and a mask: constants, a scalar, lanes known at run time, and
what becomes of their combinations. The oracle is Python's logic on lists. Called as ``masked_accesses.py LEVEL PART
PARTS``, it compiles a share of the cases for a level (all for ``0 1``) and `halves`, runs them in a `Guest`, and prints JSON: how
many there were, which were wrong, and what keeps the level from running here, where they were only compiled.
"""

from __future__ import annotations

import functools
import json
import os
import random
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from guest import PAGE, Guest, GuestDied, cannot_run

from triton_porting_kit.compiler import ISA_LEVELS, CpuTarget, codegen
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.tiles import lane_memory

ELEMENTS = ("i1", "i8", "i16", "i32", "i64", "f16", "f32", "f64", "!llvm.ptr")
LANES = (1, 2, 4, 8, 16, 32, 64)
OPERATIONS = (
    "load-zero", "load-scalar", "load-tile", "store", "gather-scalar", "gather-tile", "gather_all-scalar",
    "gather_all-tile", "scatter",
)  # fmt: skip
"""What is done, and what fills the other lanes; `gather_all` loads in all of them, from memory that may be read."""
FIELDS = ("array", "values", "lanes", "fills", "offsets", "row", "bound")
"""Of the argument block: pointers, then two i64; the mask's scalar is whether the row is 0."""

Bits = list[bool]


@functools.cache
def constants(lanes: int) -> dict[str, Bits]:
    """Constant masks by name: whole registers off or on, and halves, edges and holes."""
    places = range(lanes)
    half, quarter = lanes // 2, lanes // 4
    found = {
        "off": [False for _ in places],
        "on": [True for _ in places],
        "low": [i < half for i in places],
        "high": [i >= half for i in places],
        "first": [i == 0 for i in places],
        "last": [i == lanes - 1 for i in places],
        "ends": [i in (0, lanes - 1) for i in places],
        "hole": [i != half for i in places],
        "even": [i % 2 == 0 for i in places],
        "quarter": [i < quarter for i in places],
        "inner": [quarter <= i < lanes - quarter for i in places],
        "short": [i < half - 1 for i in places],
        "long": [i < half + 1 for i in places],
        "mixed": [random.Random(lanes + i).random() < 0.5 for i in places],
    }
    distinct: dict[tuple[bool, ...], str] = {}
    return {name: bits for name, bits in found.items() if distinct.setdefault(tuple(bits), name) == name}


@dataclass(frozen=True)
class Kind:
    """How a mask is made of a constant `k`, the scalar `c`, loaded lanes `l`, and lanes below a bound, `b`.

    In `q` the bound is at most a quarter of the lanes.
    """

    truth: Callable[[bool, bool, bool, bool], bool]
    """Of one lane: whether it is on, from k, c, l, b."""
    emit: Callable[[Masks], Value]
    uses: str


class Masks:
    """The parts of masks as values of a builder; scalars are broadcast."""

    def __init__(
        self, builder: LoopBuilder, lanes: int, constant: Bits, arguments: dict[str, Value], row: Value
    ) -> None:
        self.builder, self.lanes, self._constant, self._arguments = builder, lanes, constant, arguments
        self._row = row

    @property
    def k(self) -> Value:
        literal = ", ".join("true" if lane else "false" for lane in self._constant)
        if self.lanes == 1:
            return self.builder.constant(int(self._constant[0]), "i1")
        type = f"vector<{self.lanes}xi1>"
        return self.builder.pure(f"arith.constant dense<[{literal}]> : {type}", type, ())

    @property
    def scalar(self) -> Value:
        return self.builder.compare("slt", self._row, self._arguments["row"])

    @property
    def c(self) -> Value:
        return self.builder.broadcast(self.scalar, self.lanes)

    @property
    def lane(self) -> Value:
        return lane_memory.read(self.builder, self._arguments["lanes"], "i1", self.lanes, floor=0)

    @property
    def b(self) -> Value:
        builder = self.builder
        bound = builder.cast("arith.trunci", self._arguments["bound"], "i32")
        return builder.compare("slt", builder.iota(self.lanes), builder.broadcast(bound, self.lanes))

    @property
    def numbers(self) -> Value:
        """The scalar in the lanes of the constant, by arithmetic on i32."""
        builder, type = self.builder, vector_type("i32", self.lanes)
        literal = ", ".join(str(int(lane)) for lane in self._constant)
        if self.lanes == 1:
            factors = builder.constant(int(self._constant[0]), "i32")
        else:
            factors = builder.pure(f"arith.constant dense<[{literal}]> : {type}", type, ())
        scalar = builder.broadcast(builder.cast("arith.extui", self.scalar, "i32"), self.lanes)
        return builder.compare("ne", builder.mul(scalar, factors), builder.constant(0, type))

    @property
    def few(self) -> Value:
        """Lanes below a bound that is known to be at most a quarter of them."""
        builder = self.builder
        bound = builder.cast("arith.trunci", self._arguments["bound"], "i32")
        bound = builder.binary("arith.minui", bound, builder.constant(self.lanes // 4, "i32"))
        return builder.compare("slt", builder.iota(self.lanes), builder.broadcast(bound, self.lanes))

    def both(self, *masks: Value) -> Value:
        result = masks[0]
        for mask in masks[1:]:
            result = self.builder.logical_and(result, mask)
        return result

    def either(self, a: Value, b: Value) -> Value:
        return self.builder.binary("arith.ori", a, b)

    def no(self, mask: Value) -> Value:
        return self.builder.binary("arith.xori", mask, self.builder.constant(1, mask.type))


KINDS = {
    "k": Kind(lambda k, c, l, b: k, lambda m: m.k, "k"),
    "c": Kind(lambda k, c, l, b: c, lambda m: m.scalar, "c"),
    "l": Kind(lambda k, c, l, b: l, lambda m: m.lane, "l"),
    "b": Kind(lambda k, c, l, b: b, lambda m: m.b, "b"),
    "c&k": Kind(lambda k, c, l, b: c and k, lambda m: m.both(m.c, m.k), "kc"),
    "l&k": Kind(lambda k, c, l, b: l and k, lambda m: m.both(m.lane, m.k), "kl"),
    "b&k": Kind(lambda k, c, l, b: b and k, lambda m: m.both(m.b, m.k), "kb"),
    "c&l": Kind(lambda k, c, l, b: c and l, lambda m: m.both(m.c, m.lane), "cl"),
    "c&b": Kind(lambda k, c, l, b: c and b, lambda m: m.both(m.c, m.b), "cb"),
    "l&b": Kind(lambda k, c, l, b: l and b, lambda m: m.both(m.lane, m.b), "lb"),
    "c&l&k": Kind(lambda k, c, l, b: c and l and k, lambda m: m.both(m.c, m.lane, m.k), "kcl"),
    "c&b&k": Kind(lambda k, c, l, b: c and b and k, lambda m: m.both(m.c, m.b, m.k), "kcb"),
    "c|k": Kind(lambda k, c, l, b: c or k, lambda m: m.either(m.c, m.k), "kc"),
    "(c|b)&k": Kind(lambda k, c, l, b: (c or b) and k, lambda m: m.both(m.either(m.c, m.b), m.k), "kcb"),
    "!c&k": Kind(lambda k, c, l, b: not c and k, lambda m: m.both(m.no(m.c), m.k), "kc"),
    "!(l|k)": Kind(lambda k, c, l, b: not (l or k), lambda m: m.no(m.either(m.lane, m.k)), "kl"),
    "c?k:b": Kind(lambda k, c, l, b: k if c else b, lambda m: m.builder.select(m.scalar, m.k, m.b), "kcb"),
    "c?k:0": Kind(
        lambda k, c, l, b: c and k,
        lambda m: m.builder.select(m.scalar, m.k, m.builder.constant(0, vector_type("i1", m.lanes))),
        "kc",
    ),
    "c*k": Kind(lambda k, c, l, b: c and k, lambda m: m.numbers, "kc"),
    "q": Kind(lambda k, c, l, b: b, lambda m: m.few, "q"),
    "c&q": Kind(lambda k, c, l, b: c and b, lambda m: m.both(m.c, m.few), "cq"),
    "l&q": Kind(lambda k, c, l, b: l and b, lambda m: m.both(m.lane, m.few), "lq"),
    "l?k:c": Kind(lambda k, c, l, b: k if l else c, lambda m: m.builder.select(m.lane, m.k, m.c), "kcl"),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One access; `name` says which."""

    element: str
    lanes: int
    operation: str
    kind: str
    constant: str

    @property
    def name(self) -> str:
        element = self.element.removeprefix("!llvm.")
        return f"{self.lanes}x{element} {self.operation} under {self.kind.replace('k', f'<{self.constant}>')}"

    @property
    def bits(self) -> Bits:
        return constants(self.lanes).get(self.constant) or [True] * self.lanes


def cases(part: int, parts: int) -> Iterator[Case]:
    """One in `parts` cases, the same on every level but for the share `part`."""
    for element in ELEMENTS:
        for lanes in LANES:
            for operation in OPERATIONS if lanes > 1 else OPERATIONS[:4]:
                for kind, mask in KINDS.items():
                    for constant in constants(lanes) if "k" in mask.uses else ("",):
                        case = Case(element, lanes, operation, kind, constant)
                        if zlib.crc32(case.name.encode()) % parts == part:
                            yield case


def halves(target: CpuTarget) -> Iterator[Case]:
    """Accesses of two registers, of which LLVM may know that one is off: where it has been wrong."""
    for element in ELEMENTS:
        lanes = 2 * target.vector_bytes // types.byte_size(element)
        for operation in ("load-scalar", "store") if lanes in LANES else ():
            for kind in ("c&k", "l&k", "c&b&k", "!c&k", "c?k:0"):
                for constant in ("low", "high", "quarter"):
                    yield Case(element, lanes, operation, kind, constant)


# --- what is compiled --------------------------------------------------------------------------------


def module(group: list[Case]) -> str:
    """A loops module with a kernel for each case."""
    lines = []
    for number, case in enumerate(group):
        body = "\n".join(_body(case))
        lines.append(
            f"llvm.func @case_{number}(%args: !llvm.ptr, %scratch: !llvm.ptr, %begin: i64, %end: i64, "
            f"%x: i32, %y: i32, %z: i32) -> i32 {{\n{body}\n%zero = arith.constant 0 : i32\nllvm.return %zero : i32\n}}"
        )
    return "module {\n" + "\n".join(lines) + "\n}\n"


def _body(case: Case) -> list[str]:
    builder = LoopBuilder()
    builder.readable = block = Value("%args", "!llvm.ptr", 0)
    arguments = {}
    for at, name in enumerate(FIELDS):
        place = builder.address(block, [builder.i64(8 * at)], "i8")
        type = "i64" if name in ("row", "bound") else "!llvm.ptr"
        arguments[name] = lane_memory.read(builder, place, type, 1, floor=0)
    begin, end = Value("%begin", "i64", 0), Value("%end", "i64", 0)
    with builder.loop(begin, end, builder.i64(1)) as rows:
        masks = Masks(builder, case.lanes, case.bits, arguments, rows.induction)
        _access(case, builder, arguments, KINDS[case.kind].emit(masks), rows.induction)
    return builder.text()


def _access(case: Case, builder: LoopBuilder, arguments: dict[str, Value], mask: Value, row: Value) -> None:
    element, lanes = case.element, case.lanes
    operation, _, filled = case.operation.partition("-")
    unit = types.storage(element)
    floor = builder.level
    array = builder.address(arguments["array"], [builder.mul(row, builder.i64(lanes))], unit)
    if operation.startswith("gather") or operation == "scatter":
        offsets = lane_memory.read(builder, arguments["offsets"], "i64", lanes, floor=floor)
        array = lane_memory.pointers_at(builder, array, offsets, unit)
    if operation in ("store", "scatter"):
        value = lane_memory.read(builder, arguments["values"], element, lanes, floor=floor)
        if operation == "store":
            lane_memory.write(builder, array, value, mask)
        else:
            lane_memory.scatter(builder, array, value, mask)
        return
    fill = None
    if filled != "zero":
        fill = lane_memory.read(
            builder, arguments["fills"], element, lanes if filled == "tile" else 1, floor=floor
        )
    if operation == "load":
        value = lane_memory.read(builder, array, element, lanes, floor=floor, mask=mask, fill=fill)
    else:
        branches = operation != "gather_all"
        value = lane_memory.gather(
            builder, array, element, floor=floor, mask=mask, fill=fill, branches=branches
        )
    lane_memory.write(builder, arguments["values"], value)


def compiled(group: list[Case], target: CpuTarget, findings: list[str]) -> Iterator[tuple[list[Case], bytes]]:
    """Objects of the cases. LLVM ends the process where it meets what it cannot do: it runs in a child."""
    with tempfile.NamedTemporaryFile() as file:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                Path(file.name).write_bytes(
                    codegen.emit_object(codegen.lower_to_llvm_ir(module(group)), target)
                )
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        if status == 0:
            yield group, Path(file.name).read_bytes()
            return
    if len(group) == 1:
        findings.append(f"{group[0].name}: does not compile (wait status {status})")
        return
    middle = len(group) // 2
    for half in (group[:middle], group[middle:]):
        yield from compiled(half, target, findings)


# --- what is run -------------------------------------------------------------------------------------


class Bench:
    """Memory of the guest: a page between two that no kernel may touch, and what else the cases need."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        before = guest.allocate(3 * PAGE, PAGE)
        self.page, self.behind = before + PAGE, before + 2 * PAGE
        for edge in (before, self.behind):
            guest.protect(edge, PAGE, 0)
        self.block = guest.allocate(8 * len(FIELDS))
        self.values, self.lanes, self.fills, self.offsets = (guest.allocate(PAGE, PAGE) for _ in range(4))
        guest.view(self.offsets, 64 * 8)[:] = struct.pack("<64q", *range(64))

    def wrong(self, case: Case, function: int) -> str | None:
        """What a case does wrong, tried at both ends of the page; None: nothing."""
        kind = KINDS[case.kind]
        choice = random.Random(case.name)
        some = [choice.random() < 0.5 for _ in range(case.lanes)]
        bounds = [choice.randint(0, case.lanes), case.lanes]
        for on in (False, True) if "c" in kind.uses else (True,):
            for lanes in (some, [True] * case.lanes) if "l" in kind.uses else (some,):
                for bound in bounds if set("bq") & set(kind.uses) else bounds[:1]:
                    below = min(bound, case.lanes // 4) if "q" in kind.uses else bound
                    parts = zip(case.bits, lanes, range(case.lanes), strict=True)
                    mask = [kind.truth(k, on, lane, i < below) for k, lane, i in parts]
                    for at_the_end in (True, False):
                        self.guest.view(self.lanes, case.lanes)[:] = bytes(lanes)
                        error = self._wrong(case, function, mask, at_the_end, int(on), bound)
                        if error:
                            shown = "".join("01"[lane] for lane in mask)
                            return f"{error}; the mask is {shown}, at the page's {'end' if at_the_end else 'beginning'}"
        return None

    def _wrong(
        self, case: Case, function: int, mask: Bits, at_the_end: bool, row: int, bound: int
    ) -> str | None:
        size = types.byte_size(case.element)
        wanted = [i for i, lane in enumerate(mask) if lane]
        # What is wanted ends, or begins, with the page; of nothing, all lies where nothing may be touched.
        if at_the_end:
            array = self.behind - size * (wanted[-1] + 1) if wanted else self.behind + 64
        else:
            array = self.page - size * wanted[0] if wanted else self.page - size * case.lanes - 64
        data, fill = (self._elements(case, 37, 11), self._elements(case, 13, 90))
        page = bytearray(b"\xee" * PAGE)
        reads = case.operation.startswith(("load", "gather"))
        inside = [(array + size * i - self.page, size * i) for i in wanted]
        stored = bytearray(page)
        for place, at in inside:
            stored[place : place + size] = data[at : at + size]
        self.guest.view(self.page, PAGE)[:] = bytes(stored if reads else page)
        self.guest.view(self.values, PAGE)[:] = b"\xcc" * PAGE
        if not reads:
            self.guest.view(self.values, len(data))[:] = data
        self.guest.view(self.fills, len(fill))[:] = fill
        pointers = (array, self.values, self.lanes, self.fills, self.offsets, row, bound)
        self.guest.view(self.block, 8 * len(FIELDS))[:] = struct.pack("<7q", *pointers)
        try:
            self.guest.call(function, self.block)
        except GuestDied as error:
            return f"a stray access: {error}"
        if bytes(self.guest.view(self.page, PAGE)) != bytes(stored):
            return "what lies in memory is not what was to be stored"
        if not reads:
            return None
        filled = case.operation.partition("-")[2]
        expected = bytearray(
            {"zero": bytes(len(fill)), "scalar": fill[:size] * case.lanes, "tile": fill}[filled]
        )
        for i in wanted:
            expected[size * i : size * (i + 1)] = data[size * i : size * (i + 1)]
        got = bytes(self.guest.view(self.values, len(expected)))
        return None if got == bytes(expected) else f"the lanes are {got.hex()}, not {bytes(expected).hex()}"

    @staticmethod
    def _elements(case: Case, step: int, start: int) -> bytes:
        if case.element == "i1":
            return bytes((i * step + start) >> 2 & 1 for i in range(case.lanes))
        return bytes((i * step + start) & 0xFF for i in range(case.lanes * types.byte_size(case.element)))


def main() -> None:
    level = ISA_LEVELS[sys.argv[1]]
    findings: list[str] = []
    count = run = 0
    lacks = cannot_run(level)
    target = level.target()
    groups: dict[tuple[str, int], list[Case]] = {}
    chosen = dict.fromkeys([*halves(target), *cases(int(sys.argv[2]), int(sys.argv[3]))])
    for case in chosen:
        groups.setdefault((case.element, case.lanes), []).append(case)
    with Guest(target if not lacks else CpuTarget.host()) as guest:
        bench = Bench(guest)
        for group in groups.values():
            count += len(group)
            for some, data in compiled(group, target, findings):
                if lacks:
                    continue
                symbols = guest.load(data)
                run += len(some)
                for number, case in enumerate(some):
                    error = bench.wrong(case, symbols[f"case_{number}"])
                    if error:
                        findings.append(f"{case.name}: {error}")
    print(json.dumps({"compiled": count, "run": run, "lacks": lacks, "findings": findings}))


if __name__ == "__main__":
    main()
