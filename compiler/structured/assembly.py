"""``tl.inline_asm_elementwise``: PTX as operations on elements, as far as the table of `compiler.ptx` goes.

A block processes `pack` elements at a time. Elements of less than 32 bits share registers, the first in the low bits.
Triton leaves open which elements a block gets together; here they are adjacent in row-major order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.compiler.dialect.operations import Map, Yield
from triton_porting_kit.compiler.ptx.errors import AssemblyError
from triton_porting_kit.compiler.ptx.machine import Machine, check
from triton_porting_kit.compiler.ptx.parser import Statement, parse
from triton_porting_kit.compiler.ptx.values import Values, bits_of
from triton_porting_kit.toolchain.mlir import ir

from .diagnostics import fail
from .regions import refuse_pointers
from .rewriter import Rewriter

_WIDTHS = {"h": 16, "r": 32, "f": 32, "l": 64, "d": 64}
_REMEDY = (
    "docs/inline-ptx.md lists the instructions that can be translated; write this one in triton.language, under a "
    "constexpr that says which backend compiles"
)


@dataclass(frozen=True)
class _Packing:
    """How the elements of an operand or a result are spread over registers."""

    kind: str
    registers: int
    elements: int
    """Elements in a register."""


def inline_assembly(rewriter: Rewriter, operation: Any) -> None:
    """tt.elementwise_inline_asm -> operations on whole tensors, or tpk.map of several elements."""
    try:
        statements = parse(ir.StringAttr(operation.attributes["asm_string"]).value)
        check(statements)
        refuse_pointers(rewriter, operation)
        _translate(rewriter, operation, statements)
    except AssemblyError as error:
        fail(operation, str(error), _REMEDY)


def _translate(rewriter: Rewriter, operation: Any, statements: Sequence[Statement]) -> None:
    pack = ir.IntegerAttr(operation.attributes["packed_element"]).value
    infos = [rewriter.types.info(value) for value in (*operation.operands, *operation.results)]
    packings = [_packing(info.element, pack) for info in infos]
    inputs, outputs = packings[: len(operation.operands)], packings[len(operation.operands) :]
    constraints = ir.StringAttr(operation.attributes["constraints"]).value
    widths = _register_widths(constraints, outputs, inputs)
    emitter = rewriter.emitter.before(operation)
    shape = rewriter.types.info(operation.results[0]).shape

    def create(
        name: str, operands: Sequence[Any], kinds: Sequence[Any], attributes: dict[str, Any]
    ) -> Sequence[Any]:
        return emitter.op(name, operands, kinds, attributes).results  # type: ignore[no-any-return]

    if pack == 1:
        values = Values(create, shape)
        results = _run(values, statements, widths, inputs, outputs, list(operation.operands))
        rewriter.replace(operation, *results)
        return
    if shape is None or math.prod(shape) % pack:
        count = 1 if shape is None else math.prod(shape)
        raise AssemblyError(f"{count} elements cannot be divided into packs of {pack}")
    kinds = [result.type for result in operation.results]
    mapped = emitter.op(
        Map.OPERATION_NAME, list(operation.operands), kinds, {"pack": emitter.integer(pack)}, regions=1
    )
    elements = [rewriter.types.element(info.element) for info in infos[: len(inputs)] for _ in range(pack)]
    block = ir.Block.create_at_start(mapped.regions[0], elements, [operation.location] * len(elements))
    emitter.at = ir.InsertionPoint(block)
    results = _run(Values(create, None), statements, widths, inputs, outputs, list(block.arguments))
    emitter.create(Yield, [], values=results)
    rewriter.replace(operation, *mapped.results)


def _packing(element: str, pack: int) -> _Packing:
    bits = bits_of(element)
    if bits not in (8, 16, 32, 64):
        raise AssemblyError(f"operands of type {element} cannot be put into registers")
    elements = min(max(32 // bits, 1), pack)
    if pack % elements:
        raise AssemblyError(f"{pack} elements of {bits} bits do not fill registers of 32 bits")
    return _Packing(element, pack // elements, elements)


def _register_widths(constraints: str, outputs: Sequence[_Packing], inputs: Sequence[_Packing]) -> list[int]:
    """The width of each register, by the constraints: first those that the block writes."""
    given = [text.strip() for text in constraints.split(",")]
    needed = [*(("=", each) for each in outputs for _ in range(each.registers)),
              *(("", each) for each in inputs for _ in range(each.registers))]  # fmt: skip
    if len(given) != len(needed):
        raise AssemblyError(
            f"the constraints {constraints!r} are for {len(given)} registers, and the operands take {len(needed)}"
        )
    widths = []
    for text, (sign, packing) in zip(given, needed, strict=True):
        letter = text.removeprefix(sign).removeprefix("&")
        bits = bits_of(packing.kind) * packing.elements
        if not text.startswith(sign) or _WIDTHS.get(letter, 0) < bits:
            raise AssemblyError(f"the constraint {text!r} does not fit an operand of {bits} bits")
        widths.append(_WIDTHS[letter])
    return widths


def _run(
    values: Values,
    statements: Sequence[Statement],
    widths: Sequence[int],
    inputs: Sequence[_Packing],
    outputs: Sequence[_Packing],
    elements: Sequence[Any],
) -> list[Any]:
    """The results, each element by itself, for `elements`: those of each input, one input after the other."""
    written = sum(each.registers for each in outputs)
    registers: list[Any] = []
    place = 0
    for packing in inputs:
        for _ in range(packing.registers):
            parts = [values.as_bits(value) for value in elements[place : place + packing.elements]]
            registers.append(values.resized(values.join(parts), widths[written + len(registers)]))
            place += packing.elements
    machine = Machine(values, list(zip(widths, [*[None] * written, *registers], strict=True)))
    machine.run(statements)
    results: list[Any] = []
    number = 0
    for packing in outputs:
        for _ in range(packing.registers):
            bits = values.resized(machine.contents(number), bits_of(packing.kind) * packing.elements)
            results += [values.as_kind(part, packing.kind) for part in values.split(bits, packing.elements)]
            number += 1
    return results
