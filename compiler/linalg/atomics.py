"""Atomic operations: `memref.atomic_rmw` and `memref.generic_atomic_rmw`, one element after the other.

Both are lowered to instructions that give the old element, which is what Triton wants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.abi.kernel import CLOCK
from triton_porting_kit.compiler.dialect.operations import Atomic, AtomicCas, AtomicPoll, AtomicRmw
from triton_porting_kit.compiler.dialect.types import element_of, shape_of

from .accesses import filled, mask_reader
from .expansion import Text, width
from .rewriting import Rewriting
from .tile import one_element, zero

_KINDS = {
    "add": "addi", "fadd": "addf", "and": "andi", "or": "ori", "xor": "xori", "exch": "assign",
    "max": "maxs", "min": "mins", "umax": "maxu", "umin": "minu",
}  # fmt: skip
_OF_FLOATS = {"max": "maxnumf", "min": "minnumf"}


def read_modify_write(rewriting: Rewriting, operation: Any) -> None:
    op = AtomicRmw(operation)
    element = element_of(op.result)
    kind = _KINDS[op.kind]
    if _is_float(element):
        kind = _OF_FLOATS.get(op.kind, kind)

    def perform(body: Text, view: str, memref: str, values: list[str]) -> str:
        place = f"{view}[{body.constant(0)}]"
        if kind == "xori" and rewriting.convention.llvm_19:  # whose atomic operations have no exclusive or
            return _updated(body, place, memref, element, f"arith.xori %current, {values[0]} : {element}")
        return body.let(f"memref.atomic_rmw {kind} {values[0]}, {place} : ({element}, {memref}) -> {element}")

    _each(rewriting, op, "atomic", ["value"], perform)


def _updated(body: Text, place: str, memref: str, element: str, update: str) -> str:
    """Change an element by an operation on `%current`. Returns the element before."""
    found, current = body.name(), body.name()
    body.do(f"{found} = memref.generic_atomic_rmw {place} : {memref} {{")
    body.do(f"^bb0({current}: {element}):")
    new = body.let(update.replace("%current", current))
    body.do(f"memref.atomic_yield {new} : {element}")
    body.do("}")
    return found


def compare_and_swap(rewriting: Rewriting, operation: Any) -> None:
    """Compares bits. Upstream has no such operation on floats, whose memory is therefore used as integers."""
    op = AtomicCas(operation)
    element = element_of(op.result)
    integer = f"i{width(element)}"

    def perform(body: Text, view: str, memref: str, values: list[str]) -> str:
        bits = [cast(body, value, element, integer) for value in values]
        found, current = body.name(), body.name()
        body.do(f"{found} = memref.generic_atomic_rmw {view}[{body.constant(0)}] : {memref} {{")
        body.do(f"^bb0({current}: {integer}):")
        same = body.let(f"arith.cmpi eq, {current}, {bits[0]} : {integer}")
        new = body.let(f"arith.select {same}, {bits[1]}, {current} : {integer}")
        body.do(f"memref.atomic_yield {new} : {integer}")
        body.do("}")
        return cast(body, found, integer, element)

    _each(rewriting, op, "compare_and_swap", ["compare", "value"], perform, memory=integer)


def poll(rewriting: Rewriting, operation: Any) -> None:
    """Reads each element, by an operation that changes nothing, until it is found or the time is over."""
    op = AtomicPoll(operation)
    element = element_of(op.expected)
    integer = f"i{width(element)}"
    timeout = next(iter(rewriting.names(op)["timeout"]), None)
    begun = ""

    def begin(body: Text) -> None:
        nonlocal begun
        if timeout is not None:
            rewriting.functions.declare(f"func.func private @{CLOCK}() -> i64")
            begun = body.let(f"func.call @{CLOCK}() : () -> i64")

    def perform(body: Text, view: str, memref: str, values: list[str]) -> str:
        wanted = cast(body, values[0], element, integer)
        nothing, place = body.constant(0, integer), f"{view}[{body.constant(0)}]"
        result = body.name()
        body.do(f"{result} = scf.while : () -> i1 {{")
        found = body.let(f"memref.atomic_rmw ori {nothing}, {place} : ({integer}, {memref}) -> {integer}")
        same = body.let(f"arith.cmpi eq, {found}, {wanted} : {integer}")
        again = body.let(f"arith.xori {same}, {body.constant('true', 'i1')} : i1")
        if timeout is not None:
            now = body.let(f"func.call @{CLOCK}() : () -> i64")
            waited = body.let(f"arith.subi {now}, {begun} : i64")
            early = body.let(f"arith.cmpi ult, {waited}, {timeout} : i64")
            again = body.let(f"arith.andi {again}, {early} : i1")
        body.do(f"scf.condition({again}) {same} : i1")
        body.do("} do {")
        body.do(f"^bb0({body.name()}: i1):")
        body.do("scf.yield")
        body.do("}")
        return result

    _each(rewriting, op, "poll", ["expected"], perform, memory=integer, begin=begin)


def cast(body: Text, value: str, source: str, target: str) -> str:
    """The bits of a scalar as another type of the same width."""
    return value if source == target else body.let(f"arith.bitcast {value} : {source} to {target}")


def _is_float(element: str) -> bool:
    return element.startswith(("f", "bf"))


def _each(
    rewriting: Rewriting,
    op: Atomic[Any],
    label: str,
    groups: list[str],
    perform: Callable[[Text, str, str, list[str]], str],
    memory: str = "",
    begin: Callable[[Text], None] = lambda body: None,
) -> None:
    """`begin` once, and `perform` at each place whose mask is set, with the elements of `groups` there.

    Its values are the result.
    """
    element, shape = element_of(op.result), shape_of(op.result)
    memory = memory or element
    rewriting.point_to(op, memory)
    body, names, values = Text(), rewriting.names(op), op.by_name()
    begin(body)
    masks = [*zip(names.get("mask", ()), values.get("mask", ()), strict=True), (None, None)]
    mask_at = mask_reader(rewriting, body, *masks[0])

    def at(group: str, where: str) -> str:
        value, name = values[group][0], names[group][0]
        return name if shape_of(value) is None else body.let(f"tensor.extract {name}{where} : {value.type}")

    def one(where: str) -> str:
        offset = rewriting.shifted(
            body, op, body.index(at("offsets", where), element_of(values["offsets"][0]))
        )
        elements = [at(group, where) for group in groups]
        condition, old = mask_at(where), None
        if condition is not None:
            old = body.name()
            body.do(f"{old} = scf.if {condition} -> ({element}) {{")
        view, kind = one_element(body, names["base"][0], str(op.base.type), memory, offset)
        found = perform(body, view, kind, elements)
        if old is None:
            return found
        body.do(f"scf.yield {found} : {element}")
        body.do("} else {")
        body.do(f"scf.yield {zero(body, element)} : {element}")
        body.do("}")
        return old

    if shape is None:
        rewriting.replace(op.operation, label, body, [one("")])
        return
    made = filled(body, shape, str(op.result.type), lambda indices: one(f"[{', '.join(indices)}]"))
    rewriting.replace(op.operation, label, body, [made])
