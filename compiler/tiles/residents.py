"""Sums of products that a loop carries, kept in the memory of sums from before the loop until behind it.

A loop carries sums if a product's result is only yielded, and its initial value is the carried one, or made of it
element by element (as attention scales what it has summed up). Then the loop carries nothing: the product adds to the
buffer, in which the core changes what has to be changed. If the core does not access the memory of sums, the initial
value must be the carried one, and zero before the loop: the first iteration's product does not add.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.chips.description import MatrixUnit
from triton_porting_kit.compiler.dialect import ELEMENTWISE
from triton_porting_kit.compiler.dialect.npu import MOVE
from triton_porting_kit.toolchain.mlir import ir

from .editing import NE, SLT, Editor, bytes_of
from .loops import without_carried


@dataclass(frozen=True)
class Resident:
    """The sums of one product in a loop: their buffer, and their value at the start of an iteration. `accumulates`: an
    i1, whether the product adds to them; None: always.
    """

    sums: Any
    before: Any
    accumulates: Any | None = None

    def update(self, editor: Editor, initial: Any) -> None:
        """Change the sums to the product's initial value."""
        if initial != self.before:
            editor.write(self.sums, initial)

    def result(self, editor: Editor, kind: Any) -> Any:
        """The sums behind the product, which nothing uses if the core cannot read them."""
        return self.before if self.accumulates is not None else editor.read(self.sums, kind)


def residents(editor: Editor, unit: MatrixUnit, products: Sequence[Any]) -> dict[Any, Resident]:
    """The products whose sums stay, as far as their memory has room beside the sums of the others."""
    memory = editor.chip.memory(unit.sums)
    found: dict[Any, Resident] = {}
    sizes = {product: bytes_of(product.results[0]) for product in products}
    numbers = {product: number for product in products if (number := _carried(product)) is not None}
    if not memory.core_access:
        numbers = {product: number for product, number in numbers.items() if _begins_at_zero(product, number)}
    room = editor.chip.local_bytes(memory) - max(
        (size for product, size in sizes.items() if product not in numbers), default=0
    )
    keep = _keep if memory.core_access else _keep_apart
    for product in numbers:
        if sizes[product] <= room:
            room -= sizes[product]
            number = _carried(product)  # the loop no longer carries the sums of earlier products
            assert number is not None
            found[product] = keep(editor, unit, product, number)
    return found


def is_zero(value: Any) -> bool:
    """Whether a tensor is known to be zero everywhere."""
    owner = value.owner
    if getattr(owner, "name", "") != "arith.constant" or not owner.attributes["value"].is_splat:
        return False
    literal = owner.attributes["value"].get_splat_value()
    return bool(literal.value == 0) and not str(literal).startswith("-")


def _begins_at_zero(product: Any, number: int) -> bool:
    loop = product.parent.operation
    carried = loop.regions[0].blocks[0].arguments[1 + number]
    return product.operands[2] == carried and is_zero(loop.operands[3 + number])


def _carried(product: Any) -> int | None:
    """The number of the loop's carried value that a product adds to; None if it does not add to one."""
    loop = product.parent
    if loop is None or loop.name != "scf.for":
        return None
    uses = list(product.results[0].uses)
    if len(uses) != 1 or uses[0].owner.name != "scf.yield" or uses[0].owner.parent != loop:
        return None
    number = int(uses[0].operand_number)
    value: Any = loop.regions[0].blocks[0].arguments[1 + number]
    while True:
        uses = list(value.uses)
        if len(uses) != 1:
            return None
        user = uses[0].owner.operation
        if user == product:
            return number if uses[0].operand_number == 2 else None
        if user.name not in ELEMENTWISE or user.parent != loop:
            return None
        value = user.results[0]


def _keep_apart(editor: Editor, unit: MatrixUnit, product: Any, number: int) -> Resident:
    """Sums that the core does not access: it gets them behind the loop, by a transfer."""
    loop = product.parent.operation
    result, zero = loop.results[number], loop.operands[3 + number]
    lower, upper = list(loop.operands)[:2]
    editor.before(loop)
    sums = editor.buffer(tuple(result.type.shape), str(result.type.element_type), "sums", unit.sums)
    some = editor.compare(SLT, lower, upper)
    block = loop.regions[0].blocks[0]
    block.arguments[1 + number].replace_all_uses_with(zero)
    editor.at = ir.InsertionPoint.at_block_begin(block)
    accumulates = editor.compare(NE, block.arguments[0], lower)
    editor.at = ir.InsertionPoint.after(loop)
    if list(result.uses):
        value = read_apart(editor, unit, sums, result.type)
        everywhere = editor.splat(some, tuple(result.type.shape))
        selected = editor.value("arith.select", [everywhere, value, zero], result.type)
        result.replace_all_uses_with(selected)
    without_carried(loop, number)
    return Resident(sums, zero, accumulates)


def read_apart(editor: Editor, unit: MatrixUnit, sums: Any, kind: Any) -> Any:
    """Sums that the core does not access as a tensor, by a transfer."""
    target = editor.buffer(tuple(kind.shape), str(kind.element_type), "sums")
    element = str(kind.element_type)
    channel = editor.unit(unit.sums, editor.vector, element)
    assert channel is not None
    token = editor.dma(channel, MOVE, (math.prod(kind.shape),), element, target=target, source=sums)
    editor.wait(token, channel)
    return editor.read(target, kind)


def _keep(editor: Editor, unit: MatrixUnit, product: Any, number: int) -> Resident:
    loop = product.parent.operation
    result = loop.results[number]
    kind = result.type
    editor.before(loop)
    sums = editor.buffer(tuple(kind.shape), str(kind.element_type), "sums", unit.sums)
    editor.write(sums, loop.operands[3 + number])
    block = loop.regions[0].blocks[0]
    editor.at = ir.InsertionPoint.at_block_begin(block)
    before = editor.read(sums, kind)
    block.arguments[1 + number].replace_all_uses_with(before)
    editor.at = ir.InsertionPoint.after(loop)
    result.replace_all_uses_with(editor.read(sums, kind))
    without_carried(loop, number)
    return Resident(sums, before)
