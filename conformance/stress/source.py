"""A program as the text of a Triton kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator

from triton_porting_kit.conformance.rounding import wrap
from triton_porting_kit.conformance.stress.operations import OPERATIONS
from triton_porting_kit.conformance.stress.operations.base import Parameter, Words
from triton_porting_kit.conformance.stress.operations.memory import index_text, modulo_text
from triton_porting_kit.conformance.stress.oracle import slot_size
from triton_porting_kit.conformance.stress.program import (
    Atomic,
    Branch,
    Fetch,
    Let,
    Loop,
    Program,
    Put,
    Region,
    Statement,
    Store,
    given_twice,
    walk,
)
from triton_porting_kit.conformance.stress.typing import Types, types_of
from triton_porting_kit.conformance.types import KINDS


def parameters(program: Program) -> list[Parameter]:
    """The parameters of the kernel for its inputs, in order. Those of the outputs follow, by number."""
    found = []
    for statement in walk(program.body):
        if isinstance(statement, Let):
            operation = OPERATIONS[statement.op]
            if operation.parameter is not None:
                found.append(operation.parameter(_parameter(statement), statement.attrs))
        elif isinstance(statement, Loop) and statement.style == "argument":
            found.append(Parameter(f"iterations{statement.index}", "i32", value=statement.iterations))
    found += [
        Parameter(f"n{_name(r)}", "i64", value=_origin(r)) for r in program.regions if r.origin == "argument"
    ]
    return found


def _name(region: Region) -> str:
    return f"A{region.number}"


def _origin(region: Region) -> int:
    """The offset from the first element of a region to element 0, wrapped to i64 as addresses are."""
    return int(wrap(-region.low, KINDS["i64"]))


def output_names(program: Program) -> list[str]:
    numbers = sorted(s.number for s in walk(program.body) if isinstance(s, Store | Atomic))
    return [*(f"O{number}" for number in numbers), *map(_name, program.regions)]


def source_of(program: Program) -> str:
    """The source of the kernel, an undecorated function, preceded by the decorated functions that it calls."""
    helpers: dict[str, None] = {}
    for statement in walk(program.body):
        if isinstance(statement, Let):
            helpers |= dict.fromkeys(OPERATIONS[statement.op].helpers)
    names = [p.name for p in parameters(program)] + output_names(program)
    names += [f"B{number}" for number in given_twice(program)]
    lines = [*_origins(program), *_Writer(program, types_of(program)).body(program.body, 1)]
    return "".join(helpers) + f"def kernel({', '.join(names)}):\n" + "".join(f"{line}\n" for line in lines)


def _origins(program: Program) -> Iterator[str]:
    """Lines that move pointers to the position of element 0 of a region."""
    twice = given_twice(program)
    for region in program.regions:
        for name in (f"A{region.number}", f"B{region.number}")[: 1 + (region.number in twice)]:
            if region.origin == "argument":
                yield f"    {name} = {name} + n{_name(region)}"
            elif abs(region.low) >= 1 << 31:  # Triton would compute with a 32-bit literal
                yield f"    {name} = {name} + tl.full((), {_origin(region)}, tl.int64)"
            elif region.low:
                yield f"    {name} = {name} {'-' if region.low > 0 else '+'} {abs(region.low)}"


def _parameter(statement: Let) -> str:
    return f"{'n' if statement.op == 'argument' else 'X'}{statement.outs[0]}"


def loaded_regions(program: Program) -> set[int]:
    """The numbers of the regions that a program may load from."""
    regions: dict[int, set[int]] = {}
    before = -1
    while before != (before := sum(map(len, regions.values()))):  # again for what loops carry
        for statement in walk(program.body):
            for out, values in _pointers(statement):
                regions.setdefault(out, set()).update(*(regions.get(v, ()) for v in values))
            if isinstance(statement, Let) and statement.op == "address":
                regions.setdefault(statement.outs[0], set()).add(statement.attrs["region"])
    loads = (s.pointer for s in walk(program.body) if isinstance(s, Fetch))
    return {number for pointer in loads for number in regions[pointer]}


def _pointers(statement: Statement) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The results of a statement, and the values whose regions they may point into."""
    match statement:
        case Let():
            yield from ((out, statement.args) for out in statement.outs)
        case Loop():
            yield from ((c.param, (c.initial, c.next)) for c in statement.carried)
        case Branch():
            yield from ((r.out, (r.then, r.other)) for r in statement.results)


class _Writer:
    def __init__(self, program: Program, types: Types) -> None:
        self._types = types
        x, y, _ = (*program.grid, 1, 1)[:3]
        linear = ["tl.program_id(0)"]
        linear += [f"tl.program_id(1) * {x}"] if len(program.grid) > 1 else []
        linear += [f"tl.program_id(2) * {x * y}"] if len(program.grid) > 2 else []
        self._linear = linear[0] if len(linear) == 1 else f"({' + '.join(linear)})"
        self._single = program.programs == 1
        self._blocks = {
            s.outs[0]: f"[{', '.join(f'v{v}' for v in s.args[1 + len(s.attrs['shape']) :])}]"
            for s in walk(program.body)
            if isinstance(s, Let) and s.op == "tl.make_tensor_descriptor"
        }
        """The indices of the first element of each block of a tensor descriptor."""
        loaded = loaded_regions(program)
        self._accesses_stored = any(
            r.use == "store" and (r.rewritten or r.number in loaded) for r in program.regions
        )

    def body(self, body: tuple[Statement, ...], depth: int, last: list[str] | None = None) -> list[str]:
        """The lines of a body, followed by `last`."""
        indent = "    " * depth
        lines = [f"{indent}{line}" for statement in body for line in self._statement(statement)]
        lines += [f"{indent}{line}" for line in last or []]
        return lines or [f"{indent}pass"]

    def _statement(self, statement: Statement) -> Iterator[str]:
        match statement:
            case Let():
                yield from self._let(statement)
            case Loop():
                yield from self._loop(statement)
            case Branch():
                yield f"if v{statement.condition}:"
                yield from self.body(statement.then, 1, [f"v{r.out} = v{r.then}" for r in statement.results])
                yield "else:"
                yield from self.body(
                    statement.other, 1, [f"v{r.out} = v{r.other}" for r in statement.results]
                )
            case Store():
                yield self._store(statement)
            case Atomic():
                at = modulo_text(f"v{statement.at}", statement.size)
                mask = "" if statement.mask is None else f", mask=v{statement.mask}"
                yield f"tl.atomic_{statement.kind}(O{statement.number} + {at}, v{statement.value}{mask})"
            case Fetch() if statement.pointer in self._blocks:
                yield f"v{statement.out} = v{statement.pointer}.load({self._blocks[statement.pointer]})"
            case Fetch():
                yield f"v{statement.out} = {self._fetch(statement)}"
            case Put() if statement.pointer in self._blocks:
                at = self._blocks[statement.pointer]
                yield f"v{statement.pointer}.store({at}, v{statement.value})"
            case Put():
                mask = "" if statement.mask is None else f", mask=v{statement.mask}"
                call = "store" if statement.kind == "store" else f"atomic_{statement.kind}"
                put = f"tl.{call}(v{statement.pointer}, v{statement.value}{mask})"
                yield from (
                    ("tl.debug_barrier()", put, "tl.debug_barrier()") if self._orders(statement) else (put,)
                )

    def _fetch(self, fetch: Fetch) -> str:
        load = f"tl.load(v{fetch.pointer}"
        if fetch.mask is None:
            return f"{load})"
        if fetch.rest is not None:
            return f"{load}, mask=v{fetch.mask}, other=v{fetch.rest})"
        if fetch.other is not None:
            other = float(fetch.other) if self._types[fetch.out].kind.is_minifloat else fetch.other
            return f"{load}, mask=v{fetch.mask}, other={other})"
        zero = f"tl.full((), 0, {self._types[fetch.out].kind.language})"
        return f"tl.where(v{fetch.mask}, {load}, mask=v{fetch.mask}), {zero})"

    def _orders(self, put: Put) -> bool:
        """Whether a store needs barriers: another thread may load what one thread stores, or store there, too.

        Those of one warp need them as well: PTX does not order stores of two threads to one element.
        """
        return put.kind == "store" and self._accesses_stored

    def _let(self, let: Let) -> Iterator[str]:
        operation = OPERATIONS[let.op]
        outs = [self._types[v] for v in let.outs]
        text = operation.text(
            Words(
                [f"v{v}" for v in let.args],
                [self._types[v] for v in let.args],
                let.attrs,
                outs,
                _parameter(let),
            )
        )
        if len(outs) == 1:
            yield f"v{let.outs[0]} = {f'({text}).to({outs[0].kind.language})' if operation.casts else text}"
            return
        yield f"{', '.join(f'v{v}' for v in let.outs)} = {text}"
        if operation.casts:
            yield from (f"v{v} = v{v}.to({t.kind.language})" for v, t in zip(let.outs, outs, strict=True))

    def _loop(self, loop: Loop) -> Iterator[str]:
        for carried in loop.carried:
            yield f"v{carried.param} = v{carried.initial}"
        last = []
        if loop.carried:
            names = ", ".join(f"v{c.param}" for c in loop.carried)
            last.append(f"{names} = {', '.join(f'v{c.next}' for c in loop.carried)}")
        index, bound = f"v{loop.index}", f"(v{loop.bound}.to(tl.int32) & {loop.iterations})"
        first: list[str] = []
        match loop.style:
            case "range":
                yield f"for {index} in range({loop.iterations}):"
            case "stepped":
                yield f"for {index} in range(3, {3 + 2 * loop.iterations}, 2):"
            case "argument":
                yield f"for {index} in range(iterations{loop.index}):"
            case "between":
                step = loop.stride if loop.step is None else f"v{loop.step}"
                yield f"for {index} in range(v{loop.start}, v{loop.bound}, {step}):"
            case "static":
                yield f"for s{loop.index} in tl.static_range({loop.iterations}):"
                first = [f"    {index} = tl.full((), s{loop.index}, tl.int32)"]
            case "scalar":
                yield f"for {index} in range({bound}):"
            case "while":
                yield f"{index} = tl.full((), 0, tl.int32)"
                yield f"while {index} < {loop.iterations}:"
                last.append(f"{index} = {index} + 1")
            case "halving":
                yield f"{index} = {bound}"
                yield f"while {index} > 0:"
                last.append(f"{index} = {index} >> 1")
        yield from first
        yield from self.body(loop.body, 1, last)

    def _store(self, store: Store) -> str:
        type_ = self._types[store.value]
        shape, slot = type_.shape, slot_size(store, type_)
        extents = shape if store.form == "permuted" else store.extents
        terms, stride = [], 1
        for d in reversed(range(len(shape))):
            along = index_text(shape, d)
            terms.append(along if stride == 1 else f"{along} * {stride}")
            stride *= extents[d]
        offsets = " + ".join(terms)
        match store.form:
            case "spaced" if terms:
                offsets = f"({offsets}) * 2"
            case "permuted" if terms:
                offsets = f"(({offsets}) * 5 + 3) % {math.prod(shape)}"
            case "reversed" if terms:
                offsets = f"{stride - 1} - ({offsets})"
        base = [] if self._single else [f"{self._linear} * {slot}"]
        at = " + ".join([f"O{store.number}", *base, *([offsets] if terms else [])])
        masks = [
            f"({index_text(shape, d)} < {e})"
            for d, (e, s) in enumerate(zip(store.extents, shape, strict=True))
            if e < s
        ]
        masks += [] if store.mask is None else [f"v{store.mask}"]
        value = f"v{store.value}"
        if len(masks) < len(shape) and masks and store.mask is None and len(shape) > 1:
            mask = f"tl.broadcast_to({' & '.join(masks)}, {shape})"  # a mask of the full shape
        else:
            mask = " & ".join(masks)
        return f"tl.store({at}, {value}{f', mask={mask}' if mask else ''})"
