"""Assertions and prints: calls of external functions, whose declarations hold the texts.

``tpk_fail_N(x, y, z, element)`` does not return. ``tpk_print_N(x, y, z, values)`` shows the elements of a memref.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from triton_porting_kit.compiler.dialect.operations import Assert, Print
from triton_porting_kit.compiler.dialect.types import element_of, shape_of
from triton_porting_kit.compiler.locations import source_location
from triton_porting_kit.compiler.loops.control.host_calls import described, heading, shown_type
from triton_porting_kit.compiler.loops.ir.element_types import FLOAT8
from triton_porting_kit.toolchain.mlir import ir

from .expansion import Text, memref_type, nest
from .rewriting import Rewriting

FAIL, PRINT = "tpk_fail_", "tpk_print_"
"""What the functions' names begin with."""

_WHERE = "%a0, %a1, %a2"


def check(rewriting: Rewriting, operation: Any) -> None:
    """`tpk.assert`: a call for the first element, in row-major order, that is false."""
    _refuse(rewriting, operation)
    op, body = Assert(operation), Text()
    shape = shape_of(op.condition) or ()
    text = described(source_location(operation.location), op.message)
    sizes = f"array<i64: {', '.join(map(str, (len(shape), *shape)))}>"
    name = _declare(rewriting, FAIL, "i32, i32, i32, i64", {"message": _quoted(text), "shape": sizes})
    kind = str(op.condition.type)
    for indices in nest(body, shape):
        holds = body.let(f"tensor.extract %a3[{', '.join(indices)}] : {kind}") if shape else "%a3"
        element = body.constant(0)
        for index, size in zip(indices, shape, strict=True):
            scaled = body.let(f"arith.muli {element}, {body.constant(size)} : index")
            element = body.let(f"arith.addi {scaled}, {index} : index")
        fails = body.let(f"arith.xori {holds}, {body.constant('true', 'i1')} : i1")
        body.do(f"scf.if {fails} {{")
        number = body.let(f"arith.index_cast {element} : index to i64")
        body.do(f"func.call @{name}({_WHERE}, {number}) : (i32, i32, i32, i64) -> ()")
        body.do("}")
    _replace(rewriting, operation, "check", [op.condition], body)


def show(rewriting: Rewriting, operation: Any) -> None:
    """`tpk.print`: a call for each value, whose elements lie in memory."""
    _refuse(rewriting, operation)
    op, body = Print(operation), Text()
    hexadecimal = f"{int(op.hex)} : i32"
    if not op.values:
        facts = {"message": _quoted(heading(op)), "hex": hexadecimal}
        name = _declare(rewriting, PRINT, "i32, i32, i32", facts)
        body.do(f"func.call @{name}({_WHERE}) : (i32, i32, i32) -> ()")
    for index, value in enumerate(op.values):
        memory, kind = _in_memory(body, f"%a{3 + index}", value)
        element = str(ir.ShapedType(ir.Type.parse(kind)).element_type)
        shape = shape_of(value) or ()
        facts = {
            "message": _quoted(heading(op, index)),
            "hex": hexadecimal,
            "element": _quoted(shown_type(op, index, element)),
            "shape": f"array<i64: {', '.join(map(str, (len(shape), *shape)))}>",
        }
        name = _declare(rewriting, PRINT, f"i32, i32, i32, {kind}", facts)
        body.do(f"func.call @{name}({_WHERE}, {memory}) : (i32, i32, i32, {kind}) -> ()")
    _replace(rewriting, operation, "show", list(op.values), body)


def _in_memory(body: Text, name: str, value: Any) -> tuple[str, str]:
    """A memref with the elements of a value, and its type. 8-bit floats become f32."""
    shape, element = shape_of(value), element_of(value)
    kind = str(value.type)
    if element in FLOAT8:
        wide = kind.replace(element, "f32")
        name, kind, element = body.let(f"arith.extf {name} : {kind} to {wide}"), wide, "f32"
    target = memref_type(shape or (), element)
    memory = body.let(f"memref.alloc() : {target}")
    if shape is None:
        body.do(f"memref.store {name}, {memory}[] : {target}")
    else:
        body.do(
            f"bufferization.materialize_in_destination {name} in writable {memory} : ({kind}, {target}) -> ()"
        )
    return memory, target


def _refuse(rewriting: Rewriting, operation: Any) -> None:
    if not rewriting.convention.messages:
        raise rewriting.unsupported(
            operation, "it has no functions for messages", "remove it for this compiler"
        )


def _declare(rewriting: Rewriting, prefix: str, kinds: str, facts: Mapping[str, str]) -> str:
    """Declare the external function of those facts. Returns its name."""
    attributes = ", ".join(f"{name} = {text}" for name, text in facts.items())
    key = f"{prefix}({kinds}) {attributes}"
    known = rewriting.messages.get(key)
    if known is None:
        known = rewriting.messages[key] = f"{prefix}{len(rewriting.messages)}"
        rewriting.functions.declare(f"func.func private @{known}({kinds}) attributes {{{attributes}}}")
    return known


def _quoted(text: str) -> str:
    return str(ir.StringAttr.get(text))


def _replace(rewriting: Rewriting, operation: Any, label: str, values: list[Any], body: Text) -> None:
    where = [rewriting.program(axis) for axis in range(3)]
    rewriting.functions.call(operation, label, [*where, *values], [], body, [])
    operation.erase()
